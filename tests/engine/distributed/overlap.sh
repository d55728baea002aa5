#!/bin/sh
# Messages go on while others compute: overlap.sh <implementation of MPI>. Exits 77 without it.
#
# Each message is delayed (delayed_mpi.cpp), and the library counts what ranks compute while parts of the gradients are:
# eight parts, of two messages each, are delayed by two fifths of the step in all, which is less than the backward pass.
# A quarter to a third of what ranks compute is then, also beside other work, and a hundredth where each message is waited
# for. CPU time it is: a bound on the length of steps holds on quiet machines alone.
. tests/support/cli.sh
. tests/support/tiny_model.sh
implementation=$1
. tests/support/mpi.sh
: "${CALDERA_TEST_DELAYED:?the library of delayed_mpi.cpp}" "${CALDERA_TEST_MPI:?the library that it delays}"

make_data
make_config_of 128 320 4 4 4

# step_of NAME: the shortest step in milliseconds.
step_of() {
  ranks 2 "$CALDERA_BIN" pretrain --device cpu --threads 1 --config "$work/config.json" --data "$work/data" --overwrite \
    --out "$work/$1" --iterations 8 --batch-size 80 --grad-accumulation 2 --seq-len 64 --packing --val-every 0 \
    --save-every 0 --log "$work/$1.jsonl" >"$work/stdout" 2>"$work/stderr" || fail "$1: $(cat "$work/stderr")"
  sed -n 's/.*"tokens":\([0-9]*\),"tokens_per_second":\([0-9.e+]*\).*/\1 \2/p' "$work/$1.jsonl" |
    awk 'NR > 2 { ms = 1000 * $1 / $2; if (best == 0 || ms < best) best = ms } END { print best }'
}

plain=$(step_of plain)
delay=$(awk -v plain="$plain" 'BEGIN { printf "%d", plain / 40 + 1 }')
delayed=$(CALDERA_TEST_DELAY_MS=$delay CALDERA_MPI="$CALDERA_TEST_DELAYED" CALDERA_TEST_DELAY_LOG="$work/overlap" step_of delayed)
[ "$(wc -l <"$work/overlap")" -eq 2 ] || fail "not every rank says what it computed: $(cat "$work/overlap")"
share=$(awk '{ during += $1; all += $2 } END { printf "%.3f", during / all }' "$work/overlap")
echo "a step takes $plain ms, and $delayed ms with messages delayed by $delay ms; of what ranks compute, $share is during delays"
awk -v share="$share" 'BEGIN { exit !(share >= 0.12) }' || fail "ranks compute little while messages are delayed: $share"
