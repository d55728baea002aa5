# Each objective by its flags, as docs/guide/training.md shows them, and what a story model learns by it, on examples that
# it was not trained on. A loss of tokens and one of a head run on Vulkan as well; tests/training has them all there.
. tests/support/cli.sh
model=$(require_data stories260K) || exit $?
data=$(require_data wikisql) || exit $?
vulkan=
if "$CALDERA_BIN" devices --json | grep -q '"id":"vulkan'; then
  use_validation
  vulkan=vulkan
fi

# rows FORM FILE: the questions and answers of FILE as rows of FORM, with the answers to other questions as the bad ones.
rows() {
  awk -v form="$1" '
    { sub(/^\{"text": "/, ""); sub(/"\}$/, ""); at = index($0, "\\nA: ")
      prompt[NR] = substr($0, 1, at + 4); answer[NR] = substr($0, at + 5) }
    END { for (i = 1; i <= NR; ++i) {
            other = answer[(i + 20) % NR + 1]
            if (form == "pairs")
              printf "{\"prompt\": \"%s\", \"chosen\": \"%s\", \"rejected\": \"%s\"}\n", prompt[i], answer[i], other
            else if (form == "labels")
              printf "{\"prompt\": \"%s\", \"completion\": \"%s\", \"label\": %s}\n", prompt[i],
                i % 2 ? answer[i] : other, i % 2 ? "true" : "false"
            else if (form == "classes")
              printf "{\"text\": \"%s\", \"label\": %d}\n", i % 2 ? answer[i] : prompt[i], i % 2
            else if (form == "similar")
              printf "{\"anchor\": \"%s\", \"positive\": \"%s\"}\n", prompt[i], answer[i]
            else
              printf "{\"text\": \"%s%s\"}\n", prompt[i], answer[i] } }' "$2"
}
for form in pairs labels similar classes texts; do
  mkdir "$work/$form"
  head -n 400 "$data/train.jsonl" >"$work/lines"
  rows $form "$work/lines" >"$work/$form/train.jsonl"
  head -n 60 "$data/valid.jsonl" >"$work/lines"
  rows $form "$work/lines" >"$work/$form/valid.jsonl"
done

# train_on DEVICE NAME OBJECTIVE FORM FLAGS: a run of the objective, in out-NAME and NAME.jsonl.
train_on() {
  device=$1 name=$2 objective=$3 form=$4
  shift 4
  expect_exit 0 "$CALDERA_BIN" finetune --json --device "$device" --model "$model" --data "$work/$form" \
    --out "$work/out-$name" --objective "$objective" --target-modules all-linear --learning-rate 2e-3 --val-every 0 \
    --seed 1 --log "$work/$name.jsonl" "$@"
}
# finetune OBJECTIVE FORM ITERATIONS FLAGS: on the CPU; and on each of $others two steps of small batches, whose first loss
# is that of the CPU.
others=
finetune() {
  objective=$1 form=$2 iterations=$3
  shift 3
  train_on cpu "$objective-cpu" "$objective" "$form" --batch-size 8 --iterations "$iterations" "$@"
  cp "$work/stdout" "$work/$objective.json"
  for other in $others; do
    for device in cpu $other; do
      train_on "$device" "$objective-few-$device" "$objective" "$form" --batch-size 2 --val-batches 1 --iterations 2 "$@"
      losses "$work/$objective-few-$device.jsonl" | head -n 1 >"$work/$objective-$device.first"
    done
    paste "$work/$objective-cpu.first" "$work/$objective-$other.first" |
      awk '{ d = $1 - $2; near += d < 1e-3 && d > -1e-3 } END { exit !(NR == 1 && near == 1) }' || fail "$objective: another loss on $other"
  done
}
# evaluates OBJECTIVE FORM FLAGS: what the training said of its validation part, evaluate says of it.
evaluates() {
  objective=$1 form=$2
  shift 2
  expect_exit 0 "$CALDERA_BIN" evaluate --json --device cpu --model "$model" --adapter "$work/out-$objective-cpu" \
    --data "$work/$form" --part valid --seq-len 256 --batch-size 8 --objective "$objective" "$@"
  sed 's/"loss":/"val_loss":/' "$work/$objective.json" | tr ',{}' '\n' | sed -n 's/^"val_\([^"]*\)":\(.*\)/\1 \2/p' | sort -u >"$work/said"
  [ "$(wc -l <"$work/said")" -gt 1 ] || [ "$objective" = orpo ] || fail "$objective reports no metric"
  while read -r name value; do
    [ "$name" != loss ] || value=$(json_number final_val_loss "$work/$objective.json")
    found=$(json_number "$(echo "$name" | tr / .)" "$work/stdout")
    awk -v a="$found" -v b="$value" 'BEGIN { d = a - b; exit !(d < 1e-5 && d > -1e-5) }' ||
      fail "$objective: evaluate says $name $found, the training $value"
  done <"$work/said"
}
falls() {
  before=$(json_number initial_val_loss "$work/$1.json")
  after=$(json_number final_val_loss "$work/$1.json")
  awk -v a="$after" -v b="$before" 'BEGIN { exit !(a < b) }' || fail "$1: validation loss $before before, $after after"
}

others=$vulkan
finetune orpo pairs 12 --beta 0.1
others=
falls orpo
evaluates orpo pairs --beta 0.1
finetune kto labels 20 --beta 0.3 --undesirable-weight 1.5
falls kto
evaluates kto labels --beta 0.3 --undesirable-weight 1.5
finetune embedding similar 20 --pooling mean
falls embedding
evaluates embedding similar --pooling mean
# (So short a run shows what it reports, not that it learns on other pairs.)
finetune reward pairs 5
grep -q '"margin":' "$work/reward-cpu.jsonl" || fail "a reward model reports no margin"
evaluates reward pairs
others=$vulkan
finetune classification classes 20
others=
falls classification
evaluates classification classes
grep -q '"modules_to_save": \[$' "$work/out-classification-cpu/adapter_config.json" ||
  grep -q '"modules_to_save": \["score"\]' "$work/out-classification-cpu/adapter_config.json" ||
  fail "the head is not named in the adapter's configuration"
# A teacher of the same tokens: what it knows already costs the student nothing.
finetune distillation texts 1 --teacher "$model" --temperature 2
awk -v k="$(sed -n 's/.*"kl":\([^,}]*\).*/\1/p' "$work/distillation-cpu.jsonl" | head -n 1)" \
  'BEGIN { exit !(k < 1e-6 && k > -1e-6) }' || fail "the model differs from itself"

# ---- DPO: it learns to prefer the right query of a question to that of another one. -----------------------------

dpo() {
  name=$1
  shift
  expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$model" --data "$work/pairs" --out "$work/$name" \
    --objective dpo --target-modules all-linear --batch-size 4 --learning-rate 1e-3 --seed 1 --log "$work/$name.jsonl" \
    "$@"
}

dpo adapter --iterations 40 --val-every 20 --beta 0.5
grep -q 'step 0/40  validation loss 0.6931  rewards/chosen' "$work/stderr" || fail "the adapter does not begin as its base"
margin=$(json_number val_rewards.margins "$work/stdout")
accuracy=$(json_number val_rewards.accuracies "$work/stdout")
awk -v m="$margin" -v a="$accuracy" 'BEGIN { exit !(m > 0.3 && a > 0.55) }' ||
  fail "held-out pairs: margin $margin, accuracy $accuracy"
# The log has the metrics of steps and of validations, and the margin rises from one validation to the next.
[ "$(grep -c '"rewards/accuracies":' "$work/adapter.jsonl")" -eq 40 ] || fail "no metrics of steps in the log"
sed -n 's/.*"val_rewards\/margins":\([^,}]*\).*/\1/p' "$work/adapter.jsonl" >"$work/margins"
awk 'NR > 1 && $1 > last { ++rises } { last = $1 } END { exit !(NR == 3 && rises == 2) }' "$work/margins" ||
  fail "margins of the validations: $(tr '\n' ' ' <"$work/margins")"

# evaluate says the same of the adapter, and needs one, or a second model.
expect_exit 0 "$CALDERA_BIN" evaluate --json --device cpu --model "$model" --adapter "$work/adapter" --data "$work/pairs" \
  --part valid --seq-len 256 --objective dpo --beta 0.5
awk -v a="$(json_number rewards.margins "$work/stdout")" -v b="$margin" 'BEGIN { d = a - b; exit !(d < 1e-5 && d > -1e-5) }' ||
  fail "evaluate says another margin than $margin: $(cat "$work/stdout")"
expect_exit 1 "$CALDERA_BIN" evaluate --device cpu --model "$model" --data "$work/pairs" --part valid --objective dpo
expect_one_error_line
expect_exit 1 "$CALDERA_BIN" evaluate --device cpu --model "$model" --data "$work/classes" --part valid \
  --objective classification
expect_one_error_line

# A second model with the same weights gives the same losses as the adapter switched off.
dpo twice --iterations 5 --beta 0.5 --reference-model "$model"
losses "$work/twice.jsonl" >"$work/twice.losses"
losses "$work/adapter.jsonl" | head -n 5 | paste - "$work/twice.losses" |
  awk '{ d = $1 - $2; near += d < 1e-5 && d > -1e-5 } END { exit !(NR == 5 && near == 5) }' ||
  fail "a second model as the reference gives other losses"

expect_exit 2 "$CALDERA_BIN" finetune --model "$model" --data "$work/pairs" --out "$work/no" --objective sft --beta 0.5
grep -q "sft: there is no option 'beta'" "$work/stderr" || fail "$(cat "$work/stderr")"
expect_exit 2 "$CALDERA_BIN" finetune --model "$model" --data "$work/pairs" --out "$work/no" --objective dpo --beta 0
grep -q 'beta is 0; give a number above 0' "$work/stderr" || fail "$(cat "$work/stderr")"

# ---- GRPO: answers that a program judges. It learns to please it within 200 steps. ------------------------------

mkdir "$work/prompts"
for beginning in "Once upon a time" "One day" "Lily" "Tom" "There was a dog" "The sun" "A boy" "Mom said"; do
  printf '{"prompt": "%s"}\n' "$beginning"
done >"$work/prompts/train.jsonl"
cp "$work/prompts/train.jsonl" "$work/prompts/valid.jsonl"
# A tenth for each "y" in the completion, at most 1.
cat >"$work/reward.sh" <<'END'
while read -r line; do
  letters=$(printf '%s' "${line##*\"completion\":}" | tr -cd y)
  if [ ${#letters} -ge 10 ]; then echo 1; else echo "0.${#letters}"; fi
done
END

grpo() {
  name=$1
  shift
  expect_exit 0 "$CALDERA_BIN" finetune --json --model "$model" --data "$work/prompts" --out "$work/$name" \
    --objective grpo --reward-command "sh $work/reward.sh" --group-size 8 --completion-length 32 --batch-size 4 \
    --target-modules all-linear --learning-rate 5e-3 --val-every 0 --seed 1 --log "$work/$name.jsonl" "$@"
}

grpo judged --device cpu --iterations 40
first=$(sed -n 's/.*"val_reward":\([0-9.]*\).*/\1/p' "$work/judged.jsonl" | head -n 1)
reward=$(json_number val_reward "$work/stdout")
awk -v a="$first" -v b="$reward" 'BEGIN { exit !(a < 0.5 && b >= 0.9) }' || fail "reward $first before, $reward after"

# Two steps with the same answers, and a reference.
grpo judged_twice --device cpu --iterations 4 --steps-per-batch 2 --kl-weight 0.05
grep -q '"kl":' "$work/judged_twice.jsonl" || fail "no divergence in the log"
if "$CALDERA_BIN" devices --json | grep -q '"id":"vulkan'; then
  use_validation
  grpo judged_vulkan --device vulkan --iterations 2 --val-batches 1
fi

expect_exit 1 "$CALDERA_BIN" finetune --device cpu --model "$model" --data "$work/prompts" --out "$work/no" --objective grpo \
  --reward-command "exit 3"
grep -q "reward command 'exit 3' has ended" "$work/stderr" || fail "$(cat "$work/stderr")"
expect_exit 2 "$CALDERA_BIN" finetune --device cpu --model "$model" --data "$work/prompts" --out "$work/no" --objective grpo
grep -q 'give a reward_command' "$work/stderr" || fail "$(cat "$work/stderr")"
