# The commands one after the other, on a tiny model: pretrain, finetune, evaluate, generate, tokenize.
. tests/support/cli.sh
. tests/support/tiny_model.sh

make_data
make_config
device=${CALDERA_TEST_DEVICE:-cpu}

has() { # has FIELD...: the last command printed one JSON document with these fields, on one line
  [ "$(wc -l <"$work/stdout")" -eq 1 ] || fail "not one line: $(cat "$work/stdout")"
  for field in "$@"; do
    grep -q "\"$field\":" "$work/stdout" || fail "no $field in $(cat "$work/stdout")"
  done
}
# less A B: numbers
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 < b + 0) }'; }

training="step loss learning_rate grad_norm tokens tokens_per_second host_ms device_ms peak_bytes \
  initial_val_loss final_val_loss trainable_parameters total_parameters"

expect_exit 0 "$CALDERA_BIN" pretrain --json --device "$device" --config "$work/config.json" --data "$work/data" \
  --out "$work/new/base" --iterations 40 --batch-size 4 --learning-rate 3e-3 --schedule cosine --warmup 4 --seed 1 \
  --log "$work/pretrain.jsonl" --val-every 20
has model $training
less "$(json_number final_val_loss "$work/stdout")" "$(json_number initial_val_loss "$work/stdout")" ||
  fail "pre-training did not help: $(cat "$work/stdout")"
[ "$(grep -c '"loss"' "$work/pretrain.jsonl")" -eq 40 ] || fail "the log has not a line a step"
[ "$(grep -c '"val_loss"' "$work/pretrain.jsonl")" -eq 3 ] || fail "the log has not three validations"
for file in config.json model.safetensors; do
  [ -s "$work/new/base/$file" ] || fail "no $file"
done

# finetune OUT [FLAGS]: on one file, without a validation part
finetune() {
  out=$1
  shift
  expect_exit 0 "$CALDERA_BIN" finetune --json --device "$device" --model "$work/new/base" --data "$work/text.txt" \
    --out "$out" --rank 4 --target-modules all-linear --iterations 20 --batch-size 2 --learning-rate 5e-3 \
    --dropout 0.1 --seed 5 "$@"
}
finetune "$work/adapter" --log "$work/a.jsonl"
has adapter $training
grep -q 'held out' "$work/stderr" || fail "nothing said of what was held out"
less "$(json_number final_val_loss "$work/stdout")" "$(json_number initial_val_loss "$work/stdout")" ||
  fail "fine-tuning did not help: $(cat "$work/stdout")"
# 2 layers x (q 32x32, k and v 32x16, o 32x32, gate and up 32x48, down 48x32) x rank 4
[ "$(json_number trainable_parameters "$work/stdout")" = 3712 ] || fail "wrong number of trainable parameters"
for file in adapter_config.json adapter_model.safetensors; do
  [ -s "$work/adapter/$file" ] || fail "no $file"
done

# The same seed gives the same losses, bit for bit; another does not.
if [ "$device" = cpu ]; then
  finetune "$work/adapter-again" --log "$work/b.jsonl"
  losses "$work/a.jsonl" >"$work/a"
  losses "$work/b.jsonl" >"$work/b"
  cmp "$work/a" "$work/b" || fail "the same seed gave other losses"
  cmp "$work/adapter/adapter_model.safetensors" "$work/adapter-again/adapter_model.safetensors" ||
    fail "the same seed gave another adapter"
  finetune "$work/adapter-other" --log "$work/c.jsonl" --seed 6
  losses "$work/c.jsonl" >"$work/c"
  ! cmp -s "$work/a" "$work/c" || fail "another seed gave the same losses"
fi

finetune "$work/adapter-sgd" --optimizer sgd --learning-rate 0.1
less "$(json_number final_val_loss "$work/stdout")" "$(json_number initial_val_loss "$work/stdout")" ||
  fail "fine-tuning with SGD did not help: $(cat "$work/stdout")"

# evaluate: the adapter changes the loss; the batch size does not.
evaluate() {
  expect_exit 0 "$CALDERA_BIN" evaluate --json --device "$device" --model "$work/new/base" \
    --data "$work/data/valid.jsonl" "$@"
  has loss perplexity tokens
  json_number loss "$work/stdout"
}
plain=$(evaluate)
single=$(evaluate --batch-size 1)
adapted=$(evaluate --adapter "$work/adapter")
awk -v a="$plain" -v b="$single" 'BEGIN { d = a - b; exit !(d < 1e-5 && d > -1e-5) }' ||
  fail "the loss depends on the batch size: $plain, $single"
[ "$plain" != "$adapted" ] || fail "the adapter changes nothing"

# Epochs: 40 examples, 4 x 2 a step.
expect_exit 0 "$CALDERA_BIN" finetune --json --device "$device" --model "$work/new/base" --data "$work/data" \
  --out "$work/adapter-epochs" --epochs 2 --batch-size 4 --grad-accumulation 2
[ "$(json_number step "$work/stdout")" = 10 ] || fail "2 epochs are not 10 steps: $(cat "$work/stdout")"

generate() {
  expect_exit 0 "$CALDERA_BIN" generate --device "$device" --model "$work/new/base" --max-tokens 12 "$@"
}
generate --json --prompt "1 plus" --temperature 0.8 --top-k 20 --top-p 0.9 --min-p 0.01 --repetition-penalty 1.1 --seed 3
has prompt_ids ids text prefill_tokens_per_second decode_tokens_per_second finish_reason
cut -d , -f 1-20 "$work/stdout" | sed 's/"prefill.*//' >"$work/first"
generate --json --prompt "1 plus" --temperature 0.8 --top-k 20 --top-p 0.9 --min-p 0.01 --repetition-penalty 1.1 --seed 3
cut -d , -f 1-20 "$work/stdout" | sed 's/"prefill.*//' | cmp - "$work/first" || fail "the same seed gave another text"

# One row of logits a position fed: bos, 6 bytes, and 12 tokens but the last (fewer if the text ended before).
generate --json --prompt "1 plus" --adapter "$work/adapter" --logits "$work/logits"
tokens=$(sed 's/.*"ids":\[\([0-9,]*\)\],"text".*/\1/' "$work/stdout" | tr ',' '\n' | wc -l)
[ "$(wc -c <"$work/logits")" -eq $((4 * 258 * (7 + tokens - 1))) ] || fail "wrong number of rows: $tokens tokens"
# A link is followed, a pipe written to: neither is replaced.
ln -s logits "$work/link"
mkfifo "$work/pipe"
cat "$work/pipe" >"$work/through" &
reader=$!
for target in link pipe; do
  generate --json --prompt "1 plus" --adapter "$work/adapter" --logits "$work/$target"
done
if [ ! -h "$work/link" ] || [ ! -p "$work/pipe" ]; then
  kill $reader
  fail "--logits replaced a link or a pipe"
fi
wait $reader
cmp "$work/logits" "$work/through" || fail "other logits through a pipe"
generate --prompt "1 plus"
head -c 6 "$work/stdout" | grep -q '^1 plus$' || fail "the text does not begin with its prompt"
generate --json --prompt-ids "256 49 32" --max-tokens 0
grep -q '"ids":\[\],"text":"".*"finish_reason":"length"' "$work/stdout" || fail "max-tokens 0: $(cat "$work/stdout")"

expect_exit 0 "$CALDERA_BIN" tokenize --json --model "$work/new/base" --text "héy"
grep -q '^{"ids":\[256,104,195,169,121\]}$' "$work/stdout" || fail "tokenize: $(cat "$work/stdout")"
expect_exit 0 "$CALDERA_BIN" tokenize --json --model "$work/new/base" --text "héy" --no-special
grep -q '^{"ids":\[104,195,169,121\]}$' "$work/stdout" || fail "tokenize: $(cat "$work/stdout")"
expect_exit 0 "$CALDERA_BIN" tokenize --json --model "$work/new/base" --decode "256 104 195 169 121"
grep -q '^{"text":"héy"}$' "$work/stdout" || fail "decode: $(cat "$work/stdout")"
