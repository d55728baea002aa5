# caldera explain: its numbers, and the files it writes, for each task.
. tests/support/cli.sh
. tests/support/tiny_model.sh

make_model
expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$work/base" --data "$work/data" \
  --out "$work/adapter" --iterations 1 --rank 4

explain() { # explain ARGUMENTS...: on the CPU, with --json
  expect_exit 0 "$CALDERA_BIN" explain --json --device cpu --model "$work/base" "$@"
  [ "$(wc -l <"$work/stdout")" -eq 1 ] || fail "not one line of JSON: $*"
  for field in nodes steps kernel kind ops flops bytes scratch_bytes dispatches barriers depth submits arena_bytes peak_bytes \
    recomputed cache; do
    grep -q "\"$field\":" "$work/stdout" || fail "no $field: explain $*"
  done
  grep -q '"cache":"hit"' "$work/stdout" || fail "no steady run: explain $*"
  [ "$(json_number submits "$work/stdout")" = 1 ] || fail "not one submit: explain $*"
  is_json "$work/stdout"
}
# is_json FILE: where Python can tell.
is_json() {
  if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$1" || fail "no JSON: $1"
  fi
}
steps() { grep -o '"kernel":' "$work/stdout" | wc -l; }
joined() { grep -o '"joined":true' "$work/stdout" | wc -l; }

check_files() { # of the last explain, with --dot, --html and --trace
  for file in dot html trace; do
    [ -s "$work/out.$file" ] || fail "no $file"
  done
  # The page stands alone: no address but the name of SVG.
  sed 's,http://www.w3.org/2000/svg,,g' "$work/out.html" >"$work/page"
  if grep -q -i -e 'https\{0,1\}:' -e 'src=' -e '<link' -e '@import' "$work/page"; then
    fail "the page refers to something outside of it"
  fi
  tail -c 16 "$work/out.html" | grep -q '</html>' || fail "the page has no end"
  grep -q 'kernel IR' "$work/out.html" || fail "the page has no code"
  is_json "$work/out.trace"
  head -n 1 "$work/out.dot" | grep -q '^digraph' || fail "no Graphviz source"
  [ "$(grep -c 'subgraph cluster_' "$work/out.dot")" -eq "$(steps)" ] || fail "not a cluster a step"
  if command -v nop >/dev/null; then # Graphviz's parser, without the layout
    nop -p "$work/out.dot" || fail "Graphviz does not read the graph"
  fi
  # On the CPU the trace has each step, the plan, and what the host did.
  events=$(grep -o '"ph":"X"' "$work/out.trace" | wc -l)
  [ "$events" -gt "$(steps)" ] || fail "$events events in the trace of $(steps) steps"
  for name in schedule submit wait plan; do
    grep -q "\"name\":\"$name\"" "$work/out.trace" || fail "no $name in the trace"
  done
  [ "$(grep -o '"gflop_per_s"' "$work/out.trace" | wc -l)" -eq "$(steps)" ] || fail "not a time a step in the trace"
}

outputs="--dot $work/out.dot --html $work/out.html --trace $work/out.trace"
for task in forward decode train; do
  explain --task $task $outputs
  [ "$(json_number dispatches "$work/stdout")" -eq $(($(steps) - $(joined))) ] || fail "$task: dispatches are not steps"
  check_files
done

# More tokens are more work, not more kernels.
explain --task forward --prompt-ids "1 2 3 4"
short=$(json_number dispatches "$work/stdout")
peak=$(json_number peak_bytes "$work/stdout")
explain --task forward --prompt-ids "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"
[ "$(json_number dispatches "$work/stdout")" = "$short" ] || fail "the length of a prompt changes the dispatches"
[ "$(json_number peak_bytes "$work/stdout")" -gt "$peak" ] || fail "a longer prompt takes no more memory"

# The flags of each task reach it.
explain --task decode --prompt "1 plus" --adapter "$work/adapter" --temperature 0.5 --seed 3
explain --task train --data "$work/data" --rank 4 --target-modules all-linear --batch-size 2
all=$(json_number nodes "$work/stdout")
explain --task train --data "$work/data" --rank 4 --target-modules q_proj --batch-size 2
[ "$(json_number nodes "$work/stdout")" -lt "$all" ] || fail "--target-modules changes nothing"

# For people: a table on standard output.
expect_exit 0 "$CALDERA_BIN" explain --device cpu --model "$work/base" --task forward
grep -q 'dispatches' "$work/stdout" || fail "no summary: $(cat "$work/stdout")"

# CALDERA_DEBUG: a line a plan; a line a kernel; regions; code.
debug() { # debug LEVEL: standard error of that level
  CALDERA_DEBUG=$1 expect_exit 0 "$CALDERA_BIN" explain --json --device cpu --model "$work/base" --task forward
}
debug 0
[ ! -s "$work/stderr" ] || fail "CALDERA_DEBUG=0 says something"
debug 1
grep -q '^caldera: plan on cpu: ' "$work/stderr" || fail "no line a plan"
! grep -q 'GFLOP/s' "$work/stderr" || fail "kernels at level 1"
debug 2
[ "$(grep -c 'GB/s.*GFLOP/s' "$work/stderr")" -gt "$(steps)" ] || fail "no line a kernel"
debug 3
grep -q '^plan for cpu: ' "$work/stderr" || fail "no regions"
! grep -q '^kernel ' "$work/stderr" || fail "code at level 3"
debug 4
grep -q '^kernel ' "$work/stderr" || fail "no code"

# CALDERA_DEBUG_PASS: what the compiler has after a pass.
debug_pass() { # debug_pass EXIT NAME
  CALDERA_DEBUG_PASS=$2 expect_exit "$1" "$CALDERA_BIN" explain --json --device cpu --model "$work/base" --task forward
}
debug_pass 0 grouping
grep -q '^caldera: after grouping:' "$work/stderr" || fail "no groups"
! grep -q '^caldera: after simplify:' "$work/stderr" || fail "another pass"
debug_pass 1 fusing
grep -q 'no pass .fusing.; want all or one of simplify, ' "$work/stderr" || fail "does not name the passes"
passes=$(sed -n 's/.*want all or one of //p' "$work/stderr" | tr -d ',')
[ "$(echo "$passes" | wc -w)" -gt 10 ] || fail "names few passes: $passes"
debug_pass 0 all
for pass in $passes; do
  grep -q "^caldera: after $pass:" "$work/stderr" || fail "nothing after $pass"
done

# On Vulkan the same numbers; its trace has a slice for each kernel, with its rates.
if "$CALDERA_BIN" devices --json | grep -q '"id":"vulkan'; then
  explain --task forward
  cp "$work/stdout" "$work/on-cpu"
  (
    use_validation
    expect_exit 0 "$CALDERA_BIN" explain --json --device vulkan --model "$work/base" --task forward \
      --trace "$work/out.trace"
  )
  for field in nodes dispatches barriers depth submits arena_bytes peak_bytes; do
    [ "$(json_number $field "$work/stdout")" = "$(json_number $field "$work/on-cpu")" ] ||
      fail "another number of $field on Vulkan"
  done
  is_json "$work/out.trace"
  [ "$(grep -o '"gb_per_s"' "$work/out.trace" | wc -l)" -ge "$(json_number dispatches "$work/stdout")" ] ||
    fail "no slice a kernel in the trace on Vulkan"
  grep -q '"name":"memory of vulkan:0","ph":"C"' "$work/out.trace" || fail "no memory in the trace on Vulkan"
  (
    use_validation
    CALDERA_DEBUG=2 expect_exit 0 "$CALDERA_BIN" explain --json --device vulkan --model "$work/base" --task forward
  )
  [ "$(grep -c ' us .*GB/s.*GFLOP/s' "$work/stderr")" -gt "$(json_number dispatches "$work/stdout")" ] ||
    fail "no line a kernel on Vulkan"
  # A step of decoding that is over when it is shown, although the device goes ahead of the host, and the last that there is.
  expect_exit 0 "$CALDERA_BIN" explain --json --device vulkan --model "$work/base" --task decode --max-tokens 4
  grep -q '"cache":"hit"' "$work/stdout" || fail "no steady step of decoding on Vulkan"
  grep -q '"microseconds":[0-9.]*[1-9]' "$work/stdout" || fail "no times of a step of decoding on Vulkan"
fi

# Bad input: one line.
explain="$CALDERA_BIN explain --json --device cpu --model $work/base"
for flags in "" "--task nonsense" "--task forward --rank 4" "--task train --prompt x" "--task forward --top-k 3" \
  "--task decode --prompt x --prompt-ids 1" "--task train --target-modules nonsense" "--task train --dtype f64"; do
  expect_exit 2 $explain $flags
  expect_one_error_line
done
for flags in "--task forward --html $work/absent/x.html" "--task forward --trace $work" "--task forward --prompt-ids 258" \
  "--task train --data $work/absent" "--task train --rank 33" "--task forward --adapter $work/absent" \
  "--task decode --max-tokens 2"; do
  expect_exit 1 $explain $flags
  expect_one_error_line
  [ ! -s "$work/stdout" ] || fail "output on standard output: $flags"
done
expect_exit 1 "$CALDERA_BIN" explain --device cpu --model "$work/absent" --task forward
expect_one_error_line
