# The folder of a run, and signals to it: what is saved, what is refused, what survives.
. tests/support/cli.sh
. tests/support/tiny_model.sh

make_model

train() {
  out=$1
  shift
  exec "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$out" --rank 4 \
    --batch-size 2 --seed 3 --val-every 0 "$@"
}
# begin OUT [FLAGS]: a run that goes on until it is told to stop; waits until it trains.
begin() {
  : >"$work/stderr"
  (train "$@" --iterations 100000000) >"$work/stdout" 2>"$work/stderr" &
  process=$!
  tries=0
  until grep -q '^step 1/' "$work/stderr"; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || fail "the run does not begin: $(cat "$work/stderr")"
    sleep 0.05
  done
}
# ends CODE: the run ends with it.
ends() {
  code=0
  wait $process || code=$?
  [ $code -eq "$1" ] || fail "exit code $code, not $1: $(cat "$work/stdout" "$work/stderr")"
}
await() { # await PATH
  tries=0
  until [ -e "$1" ]; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] || fail "$1 does not come: $(ls -a "$work"/*)"
    sleep 0.05
  done
}
loads() { # loads FOLDER
  expect_exit 0 "$CALDERA_BIN" generate --device cpu --model "$work/base" --adapter "$1" --prompt-ids 1 --max-tokens 0
}

# ---- Signals -----------------------------------------------------------------------------------------------------

for signal in INT TERM HUP; do
  begin "$work/$signal" --save-every 0
  kill -$signal $process
  ends 0
  grep -q 'stopped after step [0-9]* of 100000000; to go on: caldera finetune --out [^ ]* --resume' "$work/stdout" || fail "not said: $(cat "$work/stdout")"
  loads "$work/$signal"
done

begin "$work/usr1" --save-every 0
kill -USR1 $process
await "$work/usr1/adapter_config.json"
loads "$work/usr1"
[ "$(find "$work/usr1" -name 'checkpoint-*' | wc -l)" -eq 1 ] || fail "not one checkpoint: $(ls "$work/usr1")"

# ---- One run a folder --------------------------------------------------------------------------------------------

expect_exit 1 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/usr1" \
  --iterations 1 --overwrite
grep -q "another run (process [0-9]*) writes there" "$work/stderr" || fail "not locked: $(cat "$work/stderr")"
kill -INT $process
ends 0
[ ! -e "$work/usr1/.caldera.lock" ] || fail "the lock stays"

# ---- What is there is not replaced without a word ----------------------------------------------------------------

before=$(fingerprint "$work/usr1")
expect_exit 1 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/usr1" --iterations 1
expect_one_error_line
grep -q -e '--overwrite.*--resume' "$work/stderr" || fail "no way out is named: $(cat "$work/stderr")"
[ "$(fingerprint "$work/usr1")" = "$before" ] || fail "the folder changed"
echo mine >"$work/usr1/notes.txt"
expect_exit 0 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/usr1" \
  --iterations 3 --overwrite --rank 2 --log "$work/usr1/log.jsonl"
grep -q '"r": 2' "$work/usr1/adapter_config.json" || fail "not replaced: $(cat "$work/usr1/adapter_config.json")"
[ "$(cd "$work/usr1" && echo *)" = "adapter_config.json adapter_model.safetensors checkpoint-3 environment.json log.jsonl notes.txt run.yaml" ] ||
  fail "not the new run alone: $(ls "$work/usr1")"
[ "$(grep -c '"loss"' "$work/usr1/log.jsonl")" -eq 3 ] || fail "the log is not whole"
loads "$work/usr1"

# A log within a folder that is not there yet.
expect_exit 0 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/fresh/run" \
  --iterations 2 --log "$work/fresh/run/log.jsonl"
[ "$(grep -c '"loss"' "$work/fresh/run/log.jsonl")" -eq 2 ] || fail "no log: $(ls "$work/fresh/run")"

# ---- Disks -------------------------------------------------------------------------------------------------------

if [ -c /dev/full ]; then
  expect_exit 0 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/full-log" \
    --iterations 4 --log /dev/full
  [ "$(grep -c 'warning: /dev/full' "$work/stderr")" -eq 1 ] || fail "not one warning: $(cat "$work/stderr")"
  loads "$work/full-log"
fi

# No room for the checkpoints is known before the work (a file may have 1 kB here).
(
  trap '' XFSZ
  ulimit -f 2
  expect_exit 1 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/no-room" --iterations 4
  grep -q 'no room' "$work/stderr" || fail "not told: $(cat "$work/stderr")"
  ! grep -q '^step' "$work/stderr" || fail "told after the work: $(cat "$work/stderr")"
) || exit 1

# The folder goes away under a run: checkpoints are warned of, and the end is in a folder that is named.
begin "$work/gone" --save-every 500
rm -rf "$work/gone"
tries=0
until grep -q 'warning: no checkpoint of step' "$work/stderr"; do
  tries=$((tries + 1))
  [ $tries -lt 400 ] || fail "no warning: $(cat "$work/stderr")"
  sleep 0.05
done
kill -INT $process
ends 1
saved=$(sed -n 's/.*what was trained is in \([^:]*\): .*/\1/p' "$work/stderr")
[ -d "$saved" ] || fail "no folder is named: $(cat "$work/stderr")"
loads "$saved"
[ -s "$saved/training_state.safetensors" ] || fail "no state"
rm -rf "$saved"

# ---- The best, and patience --------------------------------------------------------------------------------------

expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$work/base" --data "$work/data" --out "$work/best" \
  --iterations 400 --val-every 5 --patience 2 --learning-rate 0.05 --batch-size 4 --save-every 0 --target-modules all-linear
grep -q '"stopped":"no progress"' "$work/stdout" || fail "it did not stop: $(cat "$work/stdout")"
best=$(json_number best_step "$work/stdout")
cmp "$work/best/adapter_model.safetensors" "$work/best/checkpoint-$best/adapter_model.safetensors" ||
  fail "it does not hand out step $best: $(ls "$work/best")"
given=$(json_number final_val_loss "$work/stdout")
expect_exit 0 "$CALDERA_BIN" evaluate --json --device cpu --model "$work/base" --data "$work/data/valid.jsonl" \
  --adapter "$work/best" --batch-size 4
awk -v a="$given" -v b="$(json_number loss "$work/stdout")" 'BEGIN { d = a - b; exit !(d < 1e-6 && d > -1e-6) }' ||
  fail "the adapter has another loss than $given: $(cat "$work/stdout")"

# ---- Optimisers and rates ----------------------------------------------------------------------------------------

for flags in "--optimizer adamw_8bit --optimizer-option min_8bit_size=1" "--optimizer muon" "--optimizer lion --lora-plus-ratio 4" \
  "--optimizer adafactor --parameter-group lora_A:learning-rate=0.5,weight-decay=0" "--ema 0.9 --max-grad-value 0.1" \
  "--schedule wsd --schedule-decay 0.5 --warmup 0.25" "--schedule cosine_with_restarts --schedule-cycles 2 --schedule-end 0.1"; do
  expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$work/base" --data "$work/data" --out "$work/kinds" \
    --iterations 8 --overwrite --log "$work/kinds.jsonl" $flags
done
# Two cycles of four steps: the second has the rates of the first.
rates=$(sed -n 's/.*"learning_rate":\([^,]*\),.*/\1/p' "$work/kinds.jsonl" | tr '\n' ' ')
echo "$rates" | awk '{ exit !($1 == $5 && $2 == $6 && $4 == $8 && $1 > $2 && $2 > $4) }' || fail "no restart: $rates"
for flags in "--optimizer-option beta2" "--optimizer-option beta2=x" "--parameter-group lora_B" "--parameter-group lora_B:rank=3" \
  "--warmup 2.5" "--schedule-decay 0" "--ema 1"; do
  expect_exit 2 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/none" $flags
done
expect_exit 1 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/none" \
  --parameter-group no-such:learning-rate=2
grep -q "no parameter's name has 'no-such'" "$work/stderr" || fail "no clear error: $(cat "$work/stderr")"

# ---- Report and CSV ----------------------------------------------------------------------------------------------

expect_exit 0 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/told" \
  --iterations 4 --report "$work/told/report.html" --log "$work/told/log.csv"
grep -q '"step":\[1,2,3,4\]' "$work/told/report.html" || fail "the report has not every step"
grep -q '\["rank","8"\]' "$work/told/report.html" || fail "the report has not the settings"
[ "$(wc -l <"$work/told/log.csv")" -eq 7 ] || fail "not names, four steps and two validations: $(cat "$work/told/log.csv")"
expect_exit 1 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/none" \
  --report "$work/absent/report.html"
expect_exit 0 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/board" \
  --iterations 2 --tensorboard "$work/board/events"
grep -q 'train/loss' "$work"/board/events/events.out.tfevents.* || fail "no events"

# Samples change nothing of the training.
for flags in "" "--sample-prompt 1+ --sample-tokens 8 --report $work/sampled.html"; do
  expect_exit 0 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/sampled" \
    --iterations 4 --val-every 2 --dropout 0.1 --overwrite $flags
  cp "$work/sampled/adapter_model.safetensors" "$work/weights${flags:+-sampled}"
done
cmp "$work/weights" "$work/weights-sampled" || fail "samples changed the training"
[ "$(grep -a -c '^sample after step [024]: 1+' "$work/stderr")" -eq 3 ] || fail "not three samples: $(cat "$work/stderr")"
grep -a -q '"samples":\[\[0,"1+' "$work/sampled.html" || fail "no samples in the report"
