# LoRA teaches a story model the form of SQL questions: the loss falls fast, on text it was not trained on.
. tests/support/cli.sh
model=$(require_data stories260K) || exit $?
data=$(require_data wikisql) || exit $?

expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$model" --data "$data" --out "$work/adapter" \
  --rank 8 --alpha 16 --target-modules all-linear --iterations 40 --batch-size 4 --learning-rate 1e-3 --seed 1
before=$(json_number initial_val_loss "$work/stdout")
after=$(json_number final_val_loss "$work/stdout")
awk -v a="$after" -v b="$before" 'BEGIN { exit !(b > 5 && b < 6.2 && a < 0.7 * b) }' ||
  fail "validation loss $before before, $after after"

expect_exit 0 "$CALDERA_BIN" evaluate --json --device cpu --model "$model" --adapter "$work/adapter" \
  --data "$data/valid.jsonl" --seq-len 256
loaded=$(json_number loss "$work/stdout")
awk -v a="$after" -v b="$loaded" 'BEGIN { d = a - b; exit !(d < 1e-4 && d > -1e-4) }' ||
  fail "the adapter read back has loss $loaded, not $after"
