#!/bin/sh
# Runs a program of several ranks under one implementation of MPI: ranks.sh <implementation> <program> <case>...
# Exits 77, so that the test is skipped by its name, where that implementation is not here.
set -eu
implementation=$1
. tests/support/mpi.sh
counts=${CALDERA_TEST_RANKS:-"1 2 3 4 5"}
program=$2
shift 2
for what in "$@"; do
  case $what in
    alone) "$program" alone ;;
    mismatch)
      # No hang: an error that names both operations.
      if ranks 2 "$program" mismatch >"$work/out" 2>"$work/err"; then fail "a mismatch was no error"; fi
      grep -q "ranks differ in what they run: operation 1 of rank .* is all_sum of [45] float32" "$work/err" ||
        fail "a mismatch was not named: $(cat "$work/err")"
      ;;
    vulkan)
      # Through memory of the host, on a GPU or what acts as one.
      code=0
      ranks 2 "$program" vulkan >"$work/out" 2>&1 || code=$?
      if grep -q "no device vulkan" "$work/out"; then
        echo "skipped: vulkan: there is no such device"
      elif [ $code -ne 0 ] || ! grep -q "^right: vulkan on 2 ranks" "$work/out"; then
        fail "vulkan: $(cat "$work/out")"
      fi
      ;;
    weights)
      ranks 3 "$program" weights >"$work/out" 2>&1 || fail "weights: $(cat "$work/out")"
      ;;
    stall)
      begin=$(date +%s)
      if ranks 3 "$program" stall >"$work/out" 2>"$work/err"; then fail "a rank that stalls was no error"; fi
      grep -q "rank 1 did not come to all_sum of 4 float32 within 1 s" "$work/err" ||
        fail "a rank that stalls was not named: $(cat "$work/err")"
      [ $(($(date +%s) - begin)) -le 10 ] || fail "ending took $(($(date +%s) - begin)) s"
      ;;
    behind)
      if ranks 3 "$program" behind >"$work/out" 2>"$work/err"; then fail "a rank that stalls was no error"; fi
      grep -q "rank 1 did not come to \(all_sum\|broadcast\) of 4 float32 within 1 s" "$work/err" ||
        fail "a rank that stalls was not named: $(cat "$work/err")"
      ;;
    frozen)
      if ranks 3 "$program" frozen >"$work/out" 2>"$work/err"; then fail "a rank that was stopped was no error"; fi
      grep -q "rank 1 \(did not come to\|came to it and stalled\)" "$work/err" ||
        fail "a rank that was stopped was not named: $(cat "$work/err")"
      ;;
    *)
      for count in $counts; do
        ranks "$count" "$program" "$what" >"$work/out" 2>&1 || fail "$what on $count ranks: $(cat "$work/out")"
        grep -q "^right: $what on $count ranks" "$work/out" || fail "$what on $count ranks: $(cat "$work/out")"
      done
      ;;
  esac
done
