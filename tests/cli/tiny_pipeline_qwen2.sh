# A second family of models through the commands: nothing but config.json says which it is.
. tests/support/cli.sh
. tests/support/tiny_model.sh

make_data
make_config
sed -e 's/LlamaForCausalLM/Qwen2ForCausalLM/; s/"llama"/"qwen2"/' "$work/config.json" >"$work/qwen2.json"
device=${CALDERA_TEST_DEVICE:-cpu}
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 < b + 0) }'; }

expect_exit 0 "$CALDERA_BIN" pretrain --json --device "$device" --config "$work/qwen2.json" --data "$work/data" \
  --out "$work/base" --iterations 30 --learning-rate 3e-3 --seed 1
less "$(json_number final_val_loss "$work/stdout")" "$(json_number initial_val_loss "$work/stdout")" ||
  fail "pre-training did not help: $(cat "$work/stdout")"
# Those of Llama, and the biases of q, k and v in 2 layers: 32 + 16 + 16
parameters=$(json_number total_parameters "$work/stdout")
expect_exit 0 "$CALDERA_BIN" pretrain --json --device "$device" --config "$work/config.json" --data "$work/data" \
  --out "$work/llama" --iterations 1 --seed 1
[ "$parameters" = $(($(json_number total_parameters "$work/stdout") + 128)) ] || fail "$parameters parameters"
for word in Qwen2ForCausalLM qwen2 use_sliding_window; do
  grep -q "\"$word\"" "$work/base/config.json" || fail "no $word in $(cat "$work/base/config.json")"
done

for flags in "" "--dtype bf16"; do
  expect_exit 0 "$CALDERA_BIN" finetune --json --device "$device" --model "$work/base" --data "$work/data" \
    --out "$work/adapter" --target-modules all-linear --rank 4 --iterations 10 --seed 1 --overwrite $flags
  less "$(json_number final_val_loss "$work/stdout")" "$(json_number initial_val_loss "$work/stdout")" ||
    fail "fine-tuning did not help: $(cat "$work/stdout")"
done
expect_exit 0 "$CALDERA_BIN" evaluate --json --device "$device" --model "$work/base" --adapter "$work/adapter" \
  --data "$work/data/valid.jsonl"
expect_exit 0 "$CALDERA_BIN" generate --json --device "$device" --model "$work/base" --adapter "$work/adapter" \
  --prompt "1 plus" --max-tokens 8
grep -q '"finish_reason"' "$work/stdout" || fail "$(cat "$work/stdout")"
expect_exit 0 "$CALDERA_BIN" explain --json --device "$device" --model "$work/base" --task train

# Vectors of texts, of a decoder as of an encoder.
printf '1 plus\n2 plus 3\n' >"$work/texts"
expect_exit 0 "$CALDERA_BIN" embed --json --device "$device" --model "$work/base" --file "$work/texts" --normalize
grep -q '"embeddings"' "$work/stdout" || fail "$(cat "$work/stdout")"
grep -q '"tokens"' "$work/stdout" || fail "$(cat "$work/stdout")"
expect_exit 0 "$CALDERA_BIN" embed --json --device "$device" --model "$work/base" --text "2 plus 3" --pooling lasttoken
expect_exit 1 "$CALDERA_BIN" embed --device "$device" --model "$work/base" --text x --prompt-name query
expect_exit 2 "$CALDERA_BIN" embed --device "$device" --model "$work/base" --text x --pooling median

# An unknown family: one line that names the known ones.
sed -e 's/"qwen2"/"mamba"/; s/Qwen2ForCausalLM/MambaForCausalLM/' "$work/base/config.json" >"$work/mamba.json"
expect_exit 1 "$CALDERA_BIN" pretrain --config "$work/mamba.json" --data "$work/data" --out "$work/none"
for known in MambaForCausalLM LlamaForCausalLM Qwen2ForCausalLM; do
  grep -q "$known" "$work/stderr" || fail "the error does not name $known: $(cat "$work/stderr")"
done
