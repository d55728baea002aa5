# Modules of the model trained beside an adapter: in its folder, in evaluation, after a stop, merged, on quantised weights.
. tests/support/cli.sh
. tests/support/tiny_model.sh
make_model
expect_exit 0 "$CALDERA_BIN" convert --model "$work/base" --out "$work/q8.gguf" --to gguf --type q8_0

loss_of() {
  expect_exit 0 "$CALDERA_BIN" evaluate --json --device cpu --data "$work/data/valid.jsonl" "$@"
  json_number loss "$work/stdout"
}
# same_loss A B: the same within 0.1 %.
same_loss() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < 1.001 * b && b < 1.001 * a) }' || fail "loss $1, expected $2"; }

for base in "$work/base" "$work/q8.gguf"; do
  # finetune OUT [FLAGS]
  finetune() {
    out=$1
    shift
    expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$base" --data "$work/data" --out "$work/$out" --rank 2 \
      --modules-to-save embed_tokens,norm --iterations 30 --learning-rate 1e-2 --seed 1 --save-every 10 "$@"
  }
  rm -rf "$work/whole" "$work/parts" "$work/merged"
  finetune whole
  trained=$(json_number final_val_loss "$work/stdout")
  awk -v a="$trained" -v b="$(loss_of --model "$base")" 'BEGIN { exit !(a < 0.9 * b) }' || fail "nothing is learned: $trained"
  same_loss "$(loss_of --model "$base" --adapter "$work/whole")" "$trained"

  # From a checkpoint on, bit for bit.
  finetune parts --resume "$work/whole/checkpoint-20"
  cmp "$work/whole/adapter_model.safetensors" "$work/parts/adapter_model.safetensors" || fail "another adapter after step 20"

  expect_exit 0 "$CALDERA_BIN" fuse --device cpu --model "$base" --adapter "$work/whole" --out "$work/merged" --to safetensors --type f32
  same_loss "$(loss_of --model "$work/merged")" "$trained"
done

expect_exit 2 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/none" \
  --modules-to-save nothing
grep -q "no module 'nothing'" "$work/stderr" || fail "$(cat "$work/stderr")"
expect_exit 1 "$CALDERA_BIN" convert --adapter "$work/whole" --model "$work/base" --out "$work/none" --to gguf
grep -q "modules_to_save" "$work/stderr" || fail "$(cat "$work/stderr")"
[ ! -e "$work/none" ] || fail "an --out was left"
