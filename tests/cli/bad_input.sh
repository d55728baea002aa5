# Bad input: exit code 1, one clear line on standard error, nothing on standard output, earlier outputs untouched.
. tests/support/cli.sh
. tests/support/tiny_model.sh

make_model
finetune="$CALDERA_BIN finetune --json --data $work/data --out $work/adapter --iterations 2 --overwrite"
expect_exit 0 $finetune --model "$work/base" --device cpu
before=$(fingerprint "$work/adapter")
base_before=$(fingerprint "$work/base")

# fails PATTERN COMMAND...: as said above; the line matches PATTERN.
fails() {
  pattern=$1
  shift
  expect_exit 1 "$@"
  expect_one_error_line
  grep -q "^caldera [a-z]*: " "$work/stderr" || fail "the error does not name the command: $(cat "$work/stderr")"
  grep -q -i -e "$pattern" "$work/stderr" || fail "the error does not say '$pattern': $(cat "$work/stderr")"
  [ ! -s "$work/stdout" ] || fail "output on standard output: $*"
  [ "$(fingerprint "$work/adapter")" = "$before" ] || fail "the adapter changed: $*"
  [ "$(fingerprint "$work/base")" = "$base_before" ] || fail "the model changed: $*"
}

broken=$work/broken
weights=$broken/model.safetensors
# break_model: a copy of the model to break.
break_model() {
  rm -rf "$broken"
  cp -r "$work/base" "$broken"
}
fails_everywhere() {
  fails "$1" $finetune --model "$broken" --device cpu
  fails "$1" "$CALDERA_BIN" generate --json --device cpu --model "$broken" --prompt a --max-tokens 1
  fails "$1" "$CALDERA_BIN" evaluate --json --device cpu --model "$broken" --data "$work/data/valid.jsonl"
}

# ---- Weights -----------------------------------------------------------------------------------------------------

for bytes in 0 4 8 100 20000; do
  break_model
  head -c "$bytes" "$work/base/model.safetensors" >"$weights"
  fails_everywhere model.safetensors
done

break_model
printf '\377\377\377\377\377\377\377\177' | dd of="$weights" conv=notrunc status=none # a header of 2^63 - 1 bytes
fails_everywhere model.safetensors

break_model
sed -e 's/"data_offsets":\[[0-9]*,/"data_offsets":[9,/g' "$work/base/model.safetensors" >"$weights"
fails_everywhere model.safetensors

break_model
sed -e 's/"shape":\[258,32\]/"shape":[258,31]/' "$work/base/model.safetensors" >"$weights"
fails_everywhere model.safetensors

break_model
rm "$weights"
fails_everywhere model.safetensors

# ---- Configuration -----------------------------------------------------------------------------------------------

for field in hidden_size num_attention_heads vocab_size num_hidden_layers intermediate_size; do
  break_model
  sed -e "s/\"$field\"/\"no_$field\"/" "$work/base/config.json" >"$broken/config.json"
  fails_everywhere "$field"
  fails "$field" "$CALDERA_BIN" pretrain --json --device cpu --config "$broken/config.json" --data "$work/data" \
    --out "$work/adapter" --iterations 1 --overwrite
done

break_model
sed -e 's/LlamaForCausalLM/MambaForCausalLM/' "$work/base/config.json" >"$broken/config.json"
fails_everywhere MambaForCausalLM

break_model
echo '{"hidden_size": ' >"$broken/config.json"
fails_everywhere config.json

rm -rf "$broken"
fails_everywhere broken

# ---- Data --------------------------------------------------------------------------------------------------------

finetune_on="$CALDERA_BIN finetune --json --device cpu --model $work/base --out $work/adapter --iterations 1 --overwrite"
: >"$work/empty.txt"
: >"$work/empty.jsonl"
echo '{"text": ' >"$work/torn.jsonl"
echo '{"words": "a"}' >"$work/other.jsonl"
mkdir "$work/nothing"
fails empty.txt $finetune_on --data "$work/empty.txt"
fails empty.jsonl $finetune_on --data "$work/empty.jsonl"
fails torn.jsonl:1 $finetune_on --data "$work/torn.jsonl"
fails other.jsonl:1 $finetune_on --data "$work/other.jsonl"
fails nothing $finetune_on --data "$work/nothing"
fails absent.txt $finetune_on --data "$work/absent.txt"
fails empty.txt "$CALDERA_BIN" evaluate --json --device cpu --model "$work/base" --data "$work/empty.txt"
fails empty.txt "$CALDERA_BIN" pretrain --json --device cpu --config "$work/config.json" --data "$work/empty.txt" \
  --out "$work/base" --iterations 1 --overwrite

# ---- Names that lead nowhere -------------------------------------------------------------------------------------

ln -s loop "$work/loop"
fails "loop[^:]*: Too many levels of symbolic links" "$CALDERA_BIN" generate --device cpu --model "$work/loop" --prompt-ids 1
grep -q 'filesystem error' "$work/stderr" && fail "the library speaks, not the program: $(cat "$work/stderr")"

# ---- Tokens and lengths ------------------------------------------------------------------------------------------

generate="$CALDERA_BIN generate --json --device cpu --model $work/base --max-tokens 2"
fails 258 $generate --prompt-ids "1 258 3"
fails id $generate --prompt-ids "-1"
fails id $generate --prompt-ids "99999999999999999999"
fails token $generate --prompt-ids " "
fails positions $generate --prompt "$(printf '%0100d' 0)"
fails positions $finetune_on --data "$work/data" --seq-len 65

finetune_to="$CALDERA_BIN finetune --json --device cpu --model $work/base --data $work/data --iterations 1 --out"

# ---- Adapter, device, outputs ------------------------------------------------------------------------------------

fails rank $finetune_on --data "$work/data" --rank 33
fails rank $finetune_on --data "$work/data" --rank 17 --target-modules all-linear # k_proj is 32 x 16
fails vulkan $finetune_on --data "$work/data" --device vulkan:99
fails vulkan $generate --prompt a --device vulkan:99
fails adapter $generate --prompt a --adapter "$work/nothing"

cp -r "$work/adapter" "$work/torn-adapter"
head -c 500 "$work/adapter/adapter_model.safetensors" >"$work/torn-adapter/adapter_model.safetensors"
fails adapter_model $generate --prompt a --adapter "$work/torn-adapter"

# A training that diverges is stopped, and writes nothing. Its progress stands above the error.
expect_exit 1 $finetune_on --data "$work/data" --iterations 20 --learning-rate 1e30
tail -n 1 "$work/stderr" | grep -q 'caldera finetune: .*nothing was saved' || fail "no clear end: $(cat "$work/stderr")"
[ ! -s "$work/stdout" ] || fail "output on standard output"
[ "$(fingerprint "$work/adapter")" = "$before" ] || fail "the adapter changed"

fails config.json "$CALDERA_BIN" finetune --json --device cpu --model "$work/base" --data "$work/data" \
  --out "$work/config.json" --iterations 1
fails log "$CALDERA_BIN" finetune --json --device cpu --model "$work/base" --data "$work/data" \
  --out "$work/adapter" --iterations 1 --overwrite --log "$work/absent/log.jsonl"

# Outputs that could not be written in the end are refused before the work.
mkdir -p "$work/blocked/adapter_config.json"
fails adapter_config.json $finetune_to "$work/blocked"
[ ! -e "$work/blocked/adapter_model.safetensors" ] || fail "half an adapter was written"
mkdir -p "$work/blocked-model/config.json"
fails config.json "$CALDERA_BIN" pretrain --json --device cpu --config "$work/config.json" --data "$work/data" \
  --out "$work/blocked-model" --iterations 1
ln -s "$work/absent-target" "$work/dangling"
fails dangling $finetune_to "$work/dangling"
[ ! -e "$work/absent-target" ] || fail "the link's target was made"

# ---- Prompts to mask ---------------------------------------------------------------------------------------------

fails mask-prompt $finetune_on --data "$work/data" --mask-prompt
fails mask-prompt $finetune_on --data "$work/text.txt" --mask-prompt
fails mask-prompt "$CALDERA_BIN" pretrain --json --device cpu --config "$work/config.json" --data "$work/text.txt" \
  --out "$work/new" --iterations 1 --mask-prompt

# ---- A standard output that is full ------------------------------------------------------------------------------

if [ -c /dev/full ]; then
  for flags in "" --json; do
    code=0
    "$CALDERA_BIN" generate --device cpu --model "$work/base" --prompt a --max-tokens 2 $flags \
      >/dev/full 2>"$work/stderr" || code=$?
    [ "$code" -eq 1 ] || fail "exit code $code for a full standard output ($flags)"
    expect_one_error_line
    grep -q 'caldera generate: ' "$work/stderr" || fail "the error does not name the command: $(cat "$work/stderr")"
  done
fi
