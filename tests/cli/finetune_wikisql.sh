# LoRA teaches a story model the form of SQL questions: the loss falls fast, on text it was not trained on, and is the
# same in every run.
. tests/support/cli.sh
model=$(require_data stories260K) || exit $?
data=$(require_data wikisql) || exit $?

# finetune NAME ITERATIONS: $work/NAME, and its log $work/NAME.jsonl
finetune() {
  expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$model" --data "$data" --out "$work/$1" \
    --rank 8 --alpha 16 --target-modules all-linear --iterations "$2" --batch-size 4 --learning-rate 1e-3 --seed 1 \
    --log "$work/$1.jsonl"
}

finetune adapter 300
before=$(json_number initial_val_loss "$work/stdout")
after=$(json_number final_val_loss "$work/stdout")
awk -v a="$after" -v b="$before" 'BEGIN { exit !(b > 5 && b < 6.2 && a <= 0.5 * b) }' ||
  fail "validation loss $before before, $after after"

finetune short 60
finetune again 60
losses "$work/adapter.jsonl" | head -n 60 >"$work/adapter.losses"
for name in short again; do
  losses "$work/$name.jsonl" >"$work/$name.losses"
  [ "$(wc -l <"$work/$name.losses")" -eq 60 ] || fail "not 60 losses"
  cmp "$work/$name.losses" "$work/adapter.losses" || fail "the same seed gave other losses"
done
cmp "$work/short/adapter_model.safetensors" "$work/again/adapter_model.safetensors" ||
  fail "the same seed gave another adapter"

# Validation takes the first 25 batches of 4: all 100 examples.
expect_exit 0 "$CALDERA_BIN" evaluate --json --device cpu --model "$model" --adapter "$work/adapter" \
  --data "$data/valid.jsonl" --seq-len 256
loaded=$(json_number loss "$work/stdout")
awk -v a="$after" -v b="$loaded" 'BEGIN { d = a - b; exit !(d < 1e-4 && d > -1e-4) }' ||
  fail "the adapter read back has loss $loaded, not $after"
