# CALDERA_CHECK: every step of a program is compared with the f64 interpreter, or one of them alone.
. tests/support/cli.sh
. tests/support/tiny_model.sh
make_model

for device in cpu vulkan; do
  if [ $device = vulkan ] && ! "$CALDERA_BIN" devices --json | grep -q '"id":"vulkan'; then continue; fi
  expect_exit 0 "$CALDERA_BIN" generate --device $device --model "$work/base" --prompt "1 plus 1" --max-tokens 6 \
    --temperature 0
  cp "$work/stdout" "$work/plain"
  expect_exit 0 env CALDERA_CHECK=1 "$CALDERA_BIN" generate --device $device --model "$work/base" \
    --prompt "1 plus 1" --max-tokens 6 --temperature 0
  cmp "$work/plain" "$work/stdout" || fail "$device: checked steps gave another text"
  # Forward, backward, optimiser, dropout.
  rm -rf "$work/adapter"
  expect_exit 0 env CALDERA_CHECK=1 "$CALDERA_BIN" finetune --device $device --model "$work/base" \
    --data "$work/data" --out "$work/adapter" --iterations 2 --batch-size 2 --dropout 0.1 --max-grad-norm 1

  expect_exit 0 env CALDERA_CHECK=1.0 "$CALDERA_BIN" generate --device $device --model "$work/base" \
    --prompt "1 plus 1" --max-tokens 2
  grep -q '^caldera: evaluation 1, step 0 of .* within its bounds' "$work/stderr" || fail "$device: no report"
  grep -q 'operand 0' "$work/stderr" || fail "$device: no operands in the report"
  grep -q "alone: CALDERA_CHECK=1.0 .*generate" "$work/stderr" || fail "$device: no command in the report"
done

for wrong in yes 0.5 1. 1.x 1.2.3 -1.2 .3; do
  expect_exit 1 env CALDERA_CHECK=$wrong "$CALDERA_BIN" devices
  grep -q "CALDERA_CHECK is '$wrong'; want 1" "$work/stderr" || fail "CALDERA_CHECK=$wrong: $(cat "$work/stderr")"
done

# Attention over a cache in parts, one of which nobody sees; and weights in blocks.
gguf="$CALDERA_TEST_DATA/gguf/tiny-Q4_K_M.gguf"
if [ -e "$gguf" ]; then
  for device in cpu vulkan; do
    if [ $device = vulkan ] && ! "$CALDERA_BIN" devices --json | grep -q '"id":"vulkan'; then continue; fi
    expect_exit 0 env CALDERA_CHECK=1 "$CALDERA_BIN" generate --device $device --model "$gguf" --prompt-ids 1,5,9,3 \
      --max-tokens 2
  done
fi
