# Help, exit codes, and flags that are refused rather than ignored.
. tests/support/cli.sh
. tests/support/tiny_model.sh

# refused COMMAND...: exit code 2, one line that begins with the program's name, nothing on standard output.
refused() {
  expect_exit 2 "$CALDERA_BIN" "$@"
  expect_one_error_line
  [ ! -s "$work/stdout" ] || fail "output on standard output: $*"
  grep -q '^caldera' "$work/stderr" || fail "the error does not name the program: $*"
}

says() { grep -q -e "$1" "$work/stderr" || fail "the error does not say '$1': $(cat "$work/stderr")"; }

# Every command that --help lists is tried; these are the ones that scripts rely on.
expect_exit 0 "$CALDERA_BIN" --help
commands=$(sed -n '/^Subcommands:/,$ s/^  \([a-z][a-z-]*\) .*/\1/p' "$work/stdout")
for command in devices doctor tokenize template convert generate chat evaluate embed pretrain finetune explain kernels bench; do
  echo "$commands" | grep -q -x "$command" || fail "--help does not list '$command': $commands"
done
for command in "" $commands; do
  expect_exit 0 "$CALDERA_BIN" $command --help
  grep -q -e --help "$work/stdout" || fail "no help for '$command'"
  [ ! -s "$work/stderr" ] || fail "help of '$command' on standard error"
  [ -n "$command" ] || continue
  for flag in --device --json --threads; do
    grep -q -e "$flag" "$work/stdout" || fail "$command has no $flag"
  done
done

refused
refused nonsense
says nonsense
refused scale --config c.json --nodes x
says 'is no number of nodes'

refused devices --nonsense
says nonsense
refused generate --prompt x
says model
refused generate --model m
refused generate --model m --prompt x --prompt-ids 1
refused generate --model m --prompt-ids "1 x"
refused generate --model m --prompt x --max-tokens -1
refused generate --model m --prompt x --temperature -0.5
refused generate --model m --prompt x --temperature nan
refused generate --model m --prompt x --top-p 0
refused generate --model m --prompt x --top-p 1.5
refused generate --model m --prompt x --min-p 2
refused generate --model m --prompt x --top-k -1
refused generate --model m --prompt x --repetition-penalty 0
refused generate --model m --prompt x --mirostat
says temperature
refused generate --model m --prompt x --seed -1
refused generate --model m --prompt x --dtype f99
refused generate --model m --prompt x --activations f16
refused generate --model m --prompt x --cache-type q4_0
refused finetune --model m --data d --out "$work/x" --dtype auto
refused chat --model m --chat-template ''
says empty
if ! "$CALDERA_BIN" serve --help | grep -q 'not in this build'; then
  refused serve --model m --chat-template ''
  says empty
  refused pull
  says 'ORG/NAME'
fi
refused convert --model m --out "$work/x"
refused convert --model m --out "$work/x" --to onnx
refused convert --model m --out "$work/x" --to mlx --type q8_0
says affine8
refused tokenize --model m
refused tokenize --model m --text a --decode 1

finetune="finetune --model m --data d --out $work/out"
for flags in "--rank 0" "--rank 8.5" "--rank x" "--alpha 0" "--dropout 1" "--dropout -0.1" "--iterations 0" \
  "--iterations -5" "--epochs 0" "--iterations 2 --epochs 2" "--batch-size 0" "--seq-len 0" \
  "--grad-accumulation 0" "--learning-rate 0" "--learning-rate inf" "--schedule sine" \
  "--optimizer no-such-optimizer" "--warmup -1" "--weight-decay -1" "--max-grad-norm -1" \
  "--val-every -1" "--val-batches 0" "--seed x" "--threads 0" "--device gpu" "--device vulkan:x" "--device null"; do
  refused $finetune $flags
done
# What may be adapted is the model's to say.
make_config
for model in llama qwen2; do
  mkdir "$work/$model"
  sed -e "s/LlamaForCausalLM/$(echo $model | sed 's/^./\U&/')ForCausalLM/; s/\"llama\"/\"$model\"/" "$work/config.json" \
    >"$work/$model/config.json"
  refused finetune --model "$work/$model" --data d --out "$work/out" --target-modules q_proj,nonsense
  says "unknown LoRA target module 'nonsense'.*gate_proj"
done
for limit in nonsense 0 -1 12XiB 0.5B MiB "1 2" 1e30; do
  refused $finetune --memory-limit "$limit"
  says "'$limit' is no size in bytes"
done
refused finetune --model m --data d --out ""
says '--out names no folder'
[ ! -e "$work/out" ] || fail "a refused command wrote its output folder"

# A device in the environment is the default, and a flag outweighs it.
CALDERA_DEVICE=nonsense
export CALDERA_DEVICE
refused $finetune
says CALDERA_DEVICE
expect_exit 0 "$CALDERA_BIN" devices --device cpu
unset CALDERA_DEVICE

expect_exit 0 "$CALDERA_BIN" devices --json
grep -q '"id":"cpu"' "$work/stdout" || fail "the CPU is not listed"
for field in name type driver memory_bytes features memory live_bytes reserved_bytes limit_bytes; do
  grep -q "\"$field\":" "$work/stdout" || fail "devices --json lacks $field"
done
grep -q '"limit_bytes":null' "$work/stdout" || fail "a limit that nobody set"
export CALDERA_MEMORY_LIMIT=64MiB
expect_exit 0 "$CALDERA_BIN" devices --json
unset CALDERA_MEMORY_LIMIT
grep -q '"limit_bytes":67108864' "$work/stdout" || fail "devices --json does not tell the limit"

# The page of the command line says what --help says. (A build without the server has other flags.)
if command -v python3 >/dev/null && ! "$CALDERA_BIN" serve --help | grep -q 'not in this build'; then
  expect_exit 0 python3 cmake/command_line.py --check "$CALDERA_BIN"
fi
