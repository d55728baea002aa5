#!/bin/sh
# Kills a random rank at a random moment: kills.sh <implementation of MPI> [times]. The others end within 5 seconds, with
# an exit code that is not 0, and the run goes on, with 1, 2 or 4 ranks, to the bytes of one that was not disturbed.
. tests/support/cli.sh
. tests/support/tiny_model.sh
implementation=$1
. tests/support/mpi.sh
times=${2:-2}

make_model

# random LIMIT: a whole number below it.
random() { od -An -N4 -tu4 /dev/urandom | awk -v limit="$1" '{ print $1 % limit }'; }

# train COUNT OUT FLAGS...
train() {
  train_count=$1
  train_out=$2
  shift 2
  ranks "$train_count" "$CALDERA_BIN" finetune --device cpu --threads 1 --model "$work/base" --data "$work/data" \
    --out "$work/$train_out" --iterations 120 --batch-size 2 --grad-accumulation 4 --seq-len 48 --packing \
    --dropout 0.1 --rank 4 --seed 3 --val-every 0 --save-every 10 "$@"
}
# Processes of the program that train into OUT.
processes_of() { pgrep -f "^$CALDERA_BIN finetune .*--out $work/$1 " || :; }

train 2 undisturbed >"$work/stdout" 2>"$work/stderr" || fail "$(cat "$work/stderr")"
wanted=$(sha256sum <"$work/undisturbed/adapter_model.safetensors")

time=0
while [ $time -lt "$times" ]; do
  time=$((time + 1))
  train 4 "run_$time" >"$work/stdout" 2>"$work/stderr" &
  pid=$!
  # At any moment from the start to the end of a run, which takes some seconds.
  delay=$(random 3000)
  sleep "$(awk -v ms="$delay" 'BEGIN { print ms / 1000 }')"
  victims=$(processes_of "run_$time")
  if [ -n "$victims" ]; then
    victim=$(echo "$victims" | sed -n "$(($(random "$(echo "$victims" | wc -l)") + 1))p")
    kill -KILL "$victim" 2>/dev/null || :
    begin=$(date +%s%N)
    code=0
    wait $pid || code=$?
    took=$((($(date +%s%N) - begin) / 1000000))
    if [ "$code" -eq 0 ] && [ ! -e "$work/run_$time/checkpoint-120" ]; then fail "exit code 0 after a kill"; fi
    [ $took -lt 5000 ] || fail "the others ended after $took ms"
    sleep 0.2
    [ -z "$(processes_of "run_$time")" ] || fail "processes are left"
    echo "kill $time: after $delay ms, ended within $took ms, exit code $code"
  else
    wait $pid || :
  fi
  for count in 1 2 4; do
    if [ $((time % 3)) -ne $((count / 2)) ]; then continue; fi
    train "$count" "run_$time" --resume >"$work/stdout" 2>"$work/stderr" ||
      fail "going on with $count ranks: $(cat "$work/stderr")"
    [ "$(sha256sum <"$work/run_$time/adapter_model.safetensors")" = "$wanted" ] ||
      fail "kill $time: $count ranks went on to another adapter"
  done
done
