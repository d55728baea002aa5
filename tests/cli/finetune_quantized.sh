# Adapters are trained on quantised weights as they are, learn nearly as much as on floats, and are merged again.
. tests/support/cli.sh
model=$(require_data stories260K) || exit $?
data=$(require_data wikisql) || exit $?

# learns NAME MODEL: trains $work/NAME on MODEL, and prints its validation loss.
learns() {
  expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$2" --data "$data" --out "$work/$1" \
    --rank 8 --target-modules all-linear --iterations 150 --batch-size 4 --learning-rate 1e-3 --seed 1
  json_number final_val_loss "$work/stdout"
}

convert() { expect_exit 0 "$CALDERA_BIN" convert --model "$model" --out "$work/$1" --to "$2" --type "$3"; }
convert q8.gguf gguf q8_0
convert q4.gguf gguf q4_0
convert affine4 mlx affine4
# Caldera does not write NF4. Rows of down_proj, of 172 columns, are no whole groups: it becomes floats.
expect_exit 0 "$(dirname "$CALDERA_BIN")/../tests/caldera_write_nf4" "$model" "$work/nf4"

floats=$(learns floats "$model")
for base in q8.gguf q4.gguf affine4 nf4; do
  loss=$(learns "on_$base" "$work/$base")
  awk -v a="$loss" -v b="$floats" 'BEGIN { exit !(a < 1.05 * b) }' ||
    fail "on $base the validation loss is $loss, on floats $floats"
done

# Merged, in the base's own type: what the rounding to it costs is said.
expect_exit 0 "$CALDERA_BIN" fuse --json --device cpu --model "$work/q8.gguf" --adapter "$work/on_q8.gguf" \
  --out "$work/merged.gguf"
grep -q '"type":"q8_0"' "$work/stdout" || fail "not of the base's type: $(cat "$work/stdout")"
difference=$(json_number largest_logit_difference "$work/stdout")
awk -v d="$difference" 'BEGIN { exit !(d > 0 && d < 1) }' || fail "logits differ by $difference"
# loss_of FLAGS...: prints the loss on the validation part.
loss_of() {
  expect_exit 0 "$CALDERA_BIN" evaluate --json --device cpu --data "$data/valid.jsonl" "$@"
  json_number loss "$work/stdout"
}
beside=$(loss_of --model "$work/q8.gguf" --adapter "$work/on_q8.gguf")
merged=$(loss_of --model "$work/merged.gguf")
awk -v a="$merged" -v b="$beside" 'BEGIN { exit !(a < 1.01 * b && a > 0.99 * b) }' ||
  fail "merged the loss is $merged, beside $beside"

# What cannot be merged is said, and nothing is left.
expect_exit 1 "$CALDERA_BIN" fuse --device cpu --model "$model" --adapter "$work/nowhere" --out "$work/none"
expect_exit 2 "$CALDERA_BIN" fuse --device cpu --model "$model" --adapter "$work/floats" --out "$work/none" --type q8_0
[ ! -e "$work/none" ] || fail "an --out was left"
