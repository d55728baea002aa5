# caldera kernels: the plans are those that run, nothing of the model's size is taken, and bad input is refused.
. tests/support/cli.sh
. tests/support/tiny_model.sh

require_vulkan
make_model

# totals FIELD FILE: the sum of a field's numbers.
totals() { grep -o "\"$1\":[0-9]*" "$2" | awk -F: '{ sum += $2 } END { printf "%.0f\n", sum }'; }

# same_plan TASK KERNELS_FLAGS EXPLAIN_FLAGS: what is surveyed without weights is what runs with them.
same_plan() {
  task=$1
  expect_exit 0 "$CALDERA_BIN" kernels --json --device vulkan --model "$work/base" --task "$task" --dtype f32 $2
  cp "$work/stdout" "$work/kernels"
  expect_exit 0 "$CALDERA_BIN" explain --json --device vulkan --model "$work/base" --task "$task" $3
  [ "$(totals dispatches "$work/kernels")" = "$(json_number dispatches "$work/stdout")" ] ||
    fail "$task: other dispatches than those that run"
  [ "$(totals flops "$work/kernels")" = "$(totals flops "$work/stdout")" ] || fail "$task: other flops than those that run"
}
same_plan train "--rank 8 --target-modules q_proj,v_proj --batch-size 4 --seq-len 64" "--batch-size 4"
same_plan decode "" ""

for field in kernel family registers spills shared_bytes occupancy code_bytes instructions reckoned_us statistics; do
  grep -q "\"$field\":" "$work/kernels" || fail "no $field"
done
grep -q '"reckoned_us":null' "$work/kernels" || fail "a time without a card"

# Positions of the cache: a power of two, or all that the model has.
grep -q '"cache_positions":64[,}]' "$work/kernels" || fail "not the model's positions"
sed 's/"max_position_embeddings": 64/"max_position_embeddings": 2500/' "$work/config.json" >"$work/long.json"
for context in 1020:1024 1025:2048 2100:2500; do
  expect_exit 0 "$CALDERA_BIN" kernels --device vulkan --config "$work/long.json" --task decode --context ${context%:*}
  grep -q "^decode: a cache of ${context#*:} positions" "$work/stdout" || fail "another cache than ${context#*:}"
done

# Weights of 270 GB, of which nothing is there.
sed 's/"hidden_size": 32/"hidden_size": 16384/; s/"intermediate_size": 48/"intermediate_size": 53248/;
     s/"num_hidden_layers": 2/"num_hidden_layers": 32/' "$work/config.json" >"$work/large.json"
expect_exit 0 "$CALDERA_BIN" kernels --device vulkan --config "$work/large.json" --task decode --card h100
grep -q '^NVIDIA H100 SXM5: ' "$work/stdout" || fail "no time on the card"

refused() { # refused CODE TEXT ARGUMENTS...
  code=$1 says=$2
  shift 2
  expect_exit "$code" "$CALDERA_BIN" kernels "$@"
  expect_one_error_line
  [ ! -s "$work/stdout" ] || fail "output on standard output: $*"
  grep -q -e "$says" "$work/stderr" || fail "the error does not say '$says': $(cat "$work/stderr")"
}
refused 2 rtx4090 --device vulkan --model "$work/base" --card gtx1080
refused 2 --model --device vulkan --task train
refused 2 --context --device vulkan --model "$work/base" --task train --context 5
refused 1 'has 64 positions.*at most' --device vulkan --model "$work/base" --task decode --context 65
refused 1 'has 64 positions.*at most' --device vulkan --model "$work/base" --task forward --context 65
refused 2 'from 1 to 65536' --device vulkan --model "$work/base" --batch-size 9223372036854775807
refused 2 'from 1 to 1048576' --device vulkan --model "$work/base" --seq-len 9223372036854775807
refused 2 'a step of 4194304 tokens; .*smaller' --device vulkan --model "$work/base" --batch-size 65536 --seq-len 64
refused 2 --rank --device vulkan --model "$work/base" --task decode --rank 5
refused 1 config.json --device vulkan --model "$work/nothing" --task train
refused 1 vulkan --device cpu --model "$work/base" --task train
