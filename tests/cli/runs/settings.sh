# Flags in a file, and what is said of flags that there are not.
. tests/support/cli.sh
. tests/support/tiny_model.sh

make_model

# refused PATTERN COMMAND...: exit code 2, and one line that matches.
refused() {
  pattern=$1
  shift
  expect_exit 2 "$@"
  expect_one_error_line
  grep -q -e "$pattern" "$work/stderr" || fail "not said '$pattern': $(cat "$work/stderr")"
}

# ---- Did you mean ------------------------------------------------------------------------------------------------

finetune="$CALDERA_BIN finetune --device cpu --model $work/base --data $work/data --out $work/none"
while read -r theirs ours; do
  refused "there is no flag $theirs; did you mean $ours?" $finetune $theirs 1
done <<END
--lr --learning-rate
--iters --iterations
--lora-rank --rank
--max-seq-length --seq-len
--learnign-rate --learning-rate
--batchsize --batch-size
--grad_accumulation --grad-accumulation
--num-train-epochs --epochs
END
while read -r theirs ours; do
  refused "there is no flag $theirs; did you mean $ours?" "$CALDERA_BIN" generate --model "$work/base" --prompt a $theirs 1
done <<END
--temp --temperature
--max-new-tokens --max-tokens
END
refused 'there is no flag --lr=1; did you mean\|there is no flag --lr; did you mean --learning-rate' $finetune --lr=1
refused 'there is no flag --frobnicate (see' $finetune --frobnicate 3
refused "there is no place for the argument 'adapter'" $finetune adapter
# What is missing may be what the unknown flag meant.
refused 'did you mean --data' "$CALDERA_BIN" finetune --model m --out o --dataset d

# ---- A file of flags ---------------------------------------------------------------------------------------------

cat >"$work/run.yaml" <<END
# comments are free
model: $work/base
data: $work/data
out: $work/from-file
device: cpu
rank: 4
alpha: 8
iterations: 6
batch_size: 2          # as other tools write it
learning-rate: 5e-3
schedule: cosine
target-modules: [q_proj, "v_proj"]
mask-prompt: false
seed: 7
log:
END
expect_exit 0 "$CALDERA_BIN" finetune --config "$work/run.yaml"
expect_exit 0 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/from-flags" \
  --rank 4 --alpha 8 --iterations 6 --batch-size 2 --learning-rate 5e-3 --schedule cosine --seed 7
cmp "$work/from-file/adapter_model.safetensors" "$work/from-flags/adapter_model.safetensors" ||
  fail "the file means something else than the flags"
cmp "$work/from-file/adapter_config.json" "$work/from-flags/adapter_config.json" || fail "another configuration"

# Flags win, those too that exclude one of the file.
expect_exit 0 "$CALDERA_BIN" finetune --json --config "$work/run.yaml" --out "$work/flags-win" --rank 2 --epochs 1
grep -q '"r": 2,' "$work/flags-win/adapter_config.json" || fail "the flag did not win"
[ "$(json_number step "$work/stdout")" = 20 ] || fail "not one epoch: $(cat "$work/stdout")"

# A run writes its own file, with every flag; it makes the run once more.
for line in 'rank: 4' 'dropout: 0' 'target-modules: \[q_proj, v_proj\]' 'mask-prompt: false' 'learning-rate: 5e-3' 'seed: 7'; do
  grep -q "^$line\$" "$work/from-file/run.yaml" || fail "no '$line' in $(cat "$work/from-file/run.yaml")"
done
for field in caldera device threads seed fingerprint; do
  grep -q "\"$field\":" "$work/from-file/environment.json" || fail "no $field in $(cat "$work/from-file/environment.json")"
done
expect_exit 0 "$CALDERA_BIN" finetune --config "$work/from-file/run.yaml" --out "$work/once-more"
cmp "$work/from-file/adapter_model.safetensors" "$work/once-more/adapter_model.safetensors" || fail "not the run once more"

# --resume needs no flag but --out; one that changes the run is named.
expect_exit 0 "$CALDERA_BIN" finetune --json --out "$work/from-file" --resume --iterations 8
[ "$(json_number step "$work/stdout")" = 8 ] || fail "not resumed: $(cat "$work/stdout")"
grep -q -e 'note: --iterations 8 (was 6): the run is no longer' "$work/stderr" || fail "no note: $(cat "$work/stderr")"
[ "$(grep -c '^note: ' "$work/stderr")" -eq 1 ] || fail "more than one note: $(cat "$work/stderr")"

# Pre-training has --settings: its --config is the model's.
printf 'config: %s\ndata: %s\nout: %s\niterations: 2\ndevice: cpu\n' "$work/config.json" "$work/data" "$work/pre" >"$work/pre.yaml"
expect_exit 0 "$CALDERA_BIN" pretrain --settings "$work/pre.yaml"
[ -s "$work/pre/model.safetensors" ] || fail "no model"

# ---- Files that are refused --------------------------------------------------------------------------------------

bad() { # bad PATTERN TEXT
  printf '%b' "$2" >"$work/bad.yaml"
  refused "$1" "$CALDERA_BIN" finetune --config "$work/bad.yaml"
}
bad "bad.yaml:2: there is no flag 'lr'; did you mean learning-rate?" 'rank: 2\nlr: 3\n'
bad "bad.yaml:1: there is no flag 'lora-parameters'" 'lora_parameters: 3\n'
bad "bad.yaml:2: 'rank' is there twice" 'rank: 2\nrank: 3\n'
bad "bad.yaml:3: 'rank' wants a value or a list" 'alpha: 2\nrank:\n  r: 3\n'
bad "bad.yaml:1: 'mask-prompt' is true or false, not '3'" 'mask-prompt: 3\n'
bad 'bad.yaml:2:' 'rank: 2\n  alpha: [\n'
bad "bad.yaml:1: want lines of 'flag: value'" '- rank\n'
bad 'rank' "model: m\ndata: d\nout: $work/none\nrank: 0\n"
expect_exit 1 "$CALDERA_BIN" finetune --config "$work/absent.yaml"
grep -q 'absent.yaml' "$work/stderr" || fail "not named: $(cat "$work/stderr")"
