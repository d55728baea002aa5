# DPO on a story model: it learns to prefer the right query of a question to that of another one, on pairs that it
# was not trained on; the reference may be a second model.
. tests/support/cli.sh
model=$(require_data stories260K) || exit $?
data=$(require_data wikisql) || exit $?

# pairs FILE: of each question the chosen answer, and that of a question further on as the rejected one.
pairs() {
  awk '{ sub(/^\{"text": "/, ""); sub(/"\}$/, ""); at = index($0, "\\nA: ")
         prompt[NR] = substr($0, 1, at + 4); answer[NR] = substr($0, at + 5) }
       END { for (i = 1; i <= NR; ++i)
               if (answer[i] != answer[(i + 20) % NR + 1])
                 printf "{\"prompt\": \"%s\", \"chosen\": \"%s\", \"rejected\": \"%s\"}\n", prompt[i], answer[i],
                   answer[(i + 20) % NR + 1] }' "$1"
}
mkdir "$work/data"
head -n 400 "$data/train.jsonl" >"$work/lines"
pairs "$work/lines" >"$work/data/train.jsonl"
head -n 60 "$data/valid.jsonl" >"$work/lines"
pairs "$work/lines" >"$work/data/valid.jsonl"

dpo() {
  name=$1
  shift
  expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$model" --data "$work/data" --out "$work/$name" \
    --objective dpo --target-modules all-linear --batch-size 4 --learning-rate 1e-3 --seed 1 --log "$work/$name.jsonl" \
    "$@"
}

dpo adapter --iterations 60 --val-every 30 --beta 0.5
grep -q 'step 0/60  validation loss 0.6931  rewards/chosen' "$work/stderr" || fail "the adapter does not begin as its base"
margin=$(json_number val_rewards.margins "$work/stdout")
accuracy=$(json_number val_rewards.accuracies "$work/stdout")
awk -v m="$margin" -v a="$accuracy" 'BEGIN { exit !(m > 0.3 && a > 0.55) }' ||
  fail "held-out pairs: margin $margin, accuracy $accuracy"
# The log has the metrics of steps and of validations, and the margin rises from one validation to the next.
[ "$(grep -c '"rewards/accuracies":' "$work/adapter.jsonl")" -eq 60 ] || fail "no metrics of steps in the log"
sed -n 's/.*"val_rewards\/margins":\([^,}]*\).*/\1/p' "$work/adapter.jsonl" >"$work/margins"
awk 'NR > 1 && !($1 > last) { exit 1 } { last = $1 } END { exit NR != 3 }' "$work/margins" ||
  fail "margins of the validations: $(tr '\n' ' ' <"$work/margins")"

# A second model with the same weights gives the same losses as the adapter switched off.
dpo twice --iterations 5 --beta 0.5 --reference-model "$model"
losses "$work/twice.jsonl" >"$work/twice.losses"
losses "$work/adapter.jsonl" | head -n 5 | paste - "$work/twice.losses" |
  awk '{ d = $1 - $2; if (d > 1e-5 || d < -1e-5) exit 1 } END { exit NR != 5 }' ||
  fail "a second model as the reference gives other losses"

expect_exit 2 "$CALDERA_BIN" finetune --model "$model" --data "$work/data" --out "$work/no" --objective sft --beta 0.5
grep -q "sft: there is no option 'beta'" "$work/stderr" || fail "$(cat "$work/stderr")"
expect_exit 2 "$CALDERA_BIN" finetune --model "$model" --data "$work/data" --out "$work/no" --objective dpo --beta 0
grep -q 'beta is 0; give a number above 0' "$work/stderr" || fail "$(cat "$work/stderr")"
