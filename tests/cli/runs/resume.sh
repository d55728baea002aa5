# A run that is killed again and again ends as the one that was not: bit for bit, on the CPU.
# CALDERA_TEST_KILLS sets how often (3).
. tests/support/cli.sh
. tests/support/tiny_model.sh

kills=${CALDERA_TEST_KILLS:-3}
make_model

# About a second, with all that a checkpoint must hold.
flags="finetune --json --device cpu --model $work/base --data $work/data --rank 4 --iterations 300 --batch-size 3
  --grad-accumulation 2 --dropout 0.1 --seed 3 --schedule cosine --warmup 20 --learning-rate 5e-3 --val-every 25
  --save-every 2 --keep 2 --optimizer adamw_8bit --optimizer-option min_8bit_size=1 --packing --ema 0.9"
# train OUT [FLAGS]
train() {
  out=$1
  shift
  # shellcheck disable=SC2086
  "$CALDERA_BIN" $flags --out "$out" --log "$out/log.jsonl" "$@"
}

# check_folder: whatever is there is whole.
check_folder() {
  for checkpoint in "$work"/killed/checkpoint-*; do
    [ -d "$checkpoint" ] || continue
    for file in adapter_config.json adapter_model.safetensors training_state.safetensors; do
      [ -s "$checkpoint/$file" ] || fail "half a checkpoint: no $file in $(ls -a "$checkpoint")"
    done
  done
  [ -e "$work/killed/adapter_config.json" ] || return 0
  expect_exit 0 "$CALDERA_BIN" generate --device cpu --model "$work/base" --adapter "$work/killed" --prompt-ids 1 \
    --max-tokens 0
}

expect_exit 0 train "$work/whole"

# Random delays from 0.05 to 0.75 s: before the first step, in checkpoints, in validations, after the end.
delays=$(awk -v n="$kills" -v seed="$$" 'BEGIN { srand(seed); while (n-- > 0) printf "%.3f ", 0.05 + 0.7 * rand() }')
for delay in $delays; do
  # shellcheck disable=SC2086
  "$CALDERA_BIN" $flags --out "$work/killed" --log "$work/killed/log.jsonl" --resume >/dev/null 2>"$work/stderr" &
  process=$!
  sleep "$delay"
  kill -9 $process 2>/dev/null || true
  wait $process || true
  check_folder
done
expect_exit 0 train "$work/killed" --resume

cmp "$work/whole/adapter_model.safetensors" "$work/killed/adapter_model.safetensors" ||
  fail "another adapter after kills at $delays"
cmp "$work/whole/checkpoint-300/training_state.safetensors" "$work/killed/checkpoint-300/training_state.safetensors" ||
  fail "another state after kills at $delays"
losses "$work/whole/log.jsonl" >"$work/losses"
losses "$work/killed/log.jsonl" | cmp - "$work/losses" || fail "other losses in the log after kills at $delays"
rm "$work/killed/log.jsonl" "$work/whole/log.jsonl"
[ "$(ls -a "$work/killed")" = "$(ls -a "$work/whole")" ] || fail "leftovers: $(ls -a "$work/killed")"
for leftover in "$work"/.*caldera-*; do
  [ ! -e "$leftover" ] || fail "a leftover: $leftover"
done

# From an earlier checkpoint, into another folder.
expect_exit 0 train "$work/onward" --resume "$work/whole/checkpoint-298"
grep -q 'after step 298 of 300' "$work/stderr" || fail "not resumed: $(cat "$work/stderr")"
cmp "$work/whole/adapter_model.safetensors" "$work/onward/adapter_model.safetensors" || fail "resumed to another adapter"

# Killed while it replaces an adapter of another scale: the old one stands, or the new one, never parts of both.
replace="$CALDERA_BIN finetune --device cpu --model $work/base --data $work/data --out $work/replaced --rank 4 --seed 5
  --save-every 1 --val-every 0"
expect_exit 0 $replace --iterations 2 --alpha 16
cp -r "$work/replaced" "$work/old"
delays=$(awk -v n="$kills" -v seed="$$" 'BEGIN { srand(seed + 1); while (n-- > 0) printf "%.3f ", 0.03 + 0.1 * rand() }')
for delay in $delays; do
  rm -rf "$work/replaced"
  cp -r "$work/old" "$work/replaced"
  $replace --iterations 1000000 --alpha 32 --overwrite >/dev/null 2>&1 &
  process=$!
  sleep "$delay"
  kill -9 $process
  wait $process || true
  expect_exit 0 "$CALDERA_BIN" generate --device cpu --model "$work/base" --adapter "$work/replaced" --prompt-ids 1 --max-tokens 0
  if grep -q '"lora_alpha": 16' "$work/replaced/adapter_config.json"; then
    cmp "$work/old/adapter_model.safetensors" "$work/replaced/adapter_model.safetensors" || fail "new weights with the old scale"
    [ -s "$work/replaced/checkpoint-2/training_state.safetensors" ] || fail "the old run lost its checkpoint"
  else
    ! cmp -s "$work/old/adapter_model.safetensors" "$work/replaced/adapter_model.safetensors" || fail "old weights with the new scale"
    [ ! -e "$work/replaced/run.yaml" ] || grep -q 'alpha: 32' "$work/replaced/run.yaml" || fail "the new adapter with the old flags"
  fi
done

# Other data, other parameters, no checkpoint: refused.
for other in "--seq-len 8" "--data $work/text.txt" "--rank 3" "--optimizer adamw"; do
  # shellcheck disable=SC2086
  expect_exit 1 train "$work/refused" --resume "$work/whole/checkpoint-298" $other
done
expect_exit 1 train "$work/refused" --resume "$work/data"
grep -q 'there is no checkpoint' "$work/stderr" || fail "no clear error: $(cat "$work/stderr")"
