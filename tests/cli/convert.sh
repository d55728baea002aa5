# A model through the formats: what it says does not change where the types hold its weights, and each format is read
# wherever a model is.
. tests/support/cli.sh
. tests/support/tiny_model.sh

make_model
convert="$CALDERA_BIN convert --json"
# said PATH: the ids that a model gives after a few of a prompt's.
said() {
  expect_exit 0 "$CALDERA_BIN" generate --json --device cpu --model "$1" --prompt-ids "256 49 32 112" --max-tokens 12
  sed 's/.*,"ids":\(\[[^]]*\]\).*/\1/' "$work/stdout"
}
before=$(said "$work/base")

expect_exit 0 $convert --model "$work/base" --out "$work/m.gguf" --to gguf --type f32
[ "$(json_number bytes "$work/stdout")" = "$(wc -c <"$work/m.gguf")" ] || fail "$(cat "$work/stdout")"
[ "$(json_number tensors "$work/stdout")" = 20 ] || fail "2 layers of 9, embeddings and a norm: $(cat "$work/stdout")"
grep -q '"out"' "$work/stdout" || fail "$(cat "$work/stdout")"
expect_exit 0 $convert --model "$work/m.gguf" --out "$work/back" --to safetensors
for model in "$work/m.gguf" "$work/back"; do
  [ "$(said "$model")" = "$before" ] || fail "$model says $(said "$model"), not $before"
done

# Quantised ones run, train an adapter and are read back as they are.
expect_exit 0 $convert --model "$work/base" --out "$work/q8.gguf" --to gguf --type q8_0
expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$work/q8.gguf" --data "$work/data" --out "$work/adapter" \
  --rank 2 --iterations 2 --seed 1
expect_exit 0 "$CALDERA_BIN" evaluate --json --device cpu --model "$work/q8.gguf" --adapter "$work/adapter" \
  --data "$work/data/valid.jsonl"
for type in f16 bf16 q4_0 q4_k q6_k mxfp4; do
  expect_exit 0 $convert --model "$work/base" --out "$work/x.gguf" --to gguf --type $type
  said "$work/x.gguf" >"$work/ids"
done

# Codes are multiplied with activations of 8 bits unless they are to be exact; matrices of 16 bits stay so.
logits() {
  expect_exit 0 "$CALDERA_BIN" generate --json --device cpu --model "$work/q8.gguf" --prompt-ids "256 49 32" --max-tokens 2 --logits "$@"
}
logits "$work/rounded"
logits "$work/said" --activations rounded
logits "$work/exact" --activations exact
cmp "$work/rounded" "$work/said" || fail "activations are not rounded by default"
! cmp -s "$work/rounded" "$work/exact" || fail "exact activations are rounded"
expect_exit 0 "$CALDERA_BIN" explain --device cpu --model "$work/q8.gguf" --task decode
grep -q 'q8_0 rounded matmul' "$work/stdout" || fail "no rounded products are explained: $(cat "$work/stdout")"
expect_exit 0 $convert --model "$work/base" --out "$work/half.gguf" --to gguf --type f16
expect_exit 0 "$CALDERA_BIN" explain --device cpu --model "$work/half.gguf" --task decode
grep -q 'f16 matmul' "$work/stdout" || fail "no products with matrices of 16 bits are explained: $(cat "$work/stdout")"

# What is computed in is f32 on the CPU unless it is asked for.
logits "$work/auto" --dtype auto
logits "$work/f32" --dtype f32
logits "$work/bf16" --dtype bf16
cmp "$work/rounded" "$work/auto" || fail "auto is not f32 on the CPU"
cmp "$work/rounded" "$work/f32" || fail "auto is not f32 on the CPU"
! cmp -s "$work/rounded" "$work/bf16" || fail "bf16 is f32"

# Keys and values are kept in the type that is asked for, where heads allow it.
logits "$work/cache32" --cache-type f32
logits "$work/cache16" --cache-type f16
cmp "$work/rounded" "$work/cache32" || fail "keys and values are not f32 by default"
! cmp -s "$work/rounded" "$work/cache16" || fail "keys and values of f16 are f32"
expect_exit 2 "$CALDERA_BIN" generate --device cpu --model "$work/q8.gguf" --prompt-ids 1 --cache-type q8_0
expect_one_error_line
grep -q 'multiple of 32' "$work/stderr" || fail "the error does not say why: $(cat "$work/stderr")"

# Refused in one line, and nothing is left behind.
head -c 300 "$work/m.gguf" >"$work/cut.gguf"
expect_exit 1 "$CALDERA_BIN" generate --device cpu --model "$work/cut.gguf" --prompt-ids 1
expect_one_error_line
grep -q cut.gguf "$work/stderr" || fail "the error names no file: $(cat "$work/stderr")"
expect_exit 2 "$CALDERA_BIN" convert --model "$work/base" --out "$work/base" --to safetensors
expect_one_error_line
expect_exit 1 "$CALDERA_BIN" convert --model "$work/none" --out "$work/y" --to mlx
expect_one_error_line
[ ! -e "$work/y" ] || fail "a folder is left behind"
