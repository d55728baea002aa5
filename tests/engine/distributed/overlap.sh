#!/bin/sh
# Messages go on while others compute: overlap.sh <implementation of MPI>. Exits 77 without it.
#
# With each message delayed (delayed_mpi.cpp) a step takes at most 1.2 times its time without. Eight parts of the
# gradients, of two messages each, are delayed by two fifths of the step in all: less than the backward pass, which is two
# thirds of it, and far more than the bound where nothing overlaps. The last part and what ranks say of the step behind
# it, four messages, are a tenth of the step and have nothing to hide behind.
. tests/support/cli.sh
. tests/support/tiny_model.sh
implementation=$1
. tests/support/mpi.sh
: "${CALDERA_TEST_DELAYED:?the library of delayed_mpi.cpp}" "${CALDERA_TEST_MPI:?the library that it delays}"

make_data
make_config_of 128 320 4 4 4

# step_of NAME BEST: the shortest step in milliseconds, or BEST where that is shorter: what else runs on the machine makes
# steps longer, and none shorter.
step_of() {
  ranks 2 "$CALDERA_BIN" pretrain --device cpu --threads 1 --config "$work/config.json" --data "$work/data" --overwrite \
    --out "$work/$1" --iterations 8 --batch-size 80 --grad-accumulation 2 --seq-len 64 --packing --val-every 0 \
    --save-every 0 --log "$work/$1.jsonl" >"$work/stdout" 2>"$work/stderr" || fail "$1: $(cat "$work/stderr")"
  sed -n 's/.*"tokens":\([0-9]*\),"tokens_per_second":\([0-9.e+]*\).*/\1 \2/p' "$work/$1.jsonl" |
    awk -v best="$2" 'NR > 2 { ms = 1000 * $1 / $2; if (ms < best) best = ms } END { print best }'
}

plain=1e9
delayed=1e9
for attempt in 1 2 3 4; do
  plain=$(step_of plain "$plain")
  delay=$(awk -v plain="$plain" 'BEGIN { printf "%d", plain / 40 }')
  # Systems take milliseconds to wake a thread beside others.
  if [ "$delay" -lt 5 ]; then
    echo "SKIPPED: this machine's step of $plain ms is too short to hide messages of 5 ms" >&2
    exit 77
  fi
  delayed=$(CALDERA_TEST_DELAY_MS=$delay CALDERA_MPI="$CALDERA_TEST_DELAYED" step_of delayed "$delayed")
  echo "attempt $attempt: a step takes $plain ms, and $delayed ms with messages delayed by $delay ms"
  awk -v plain="$plain" -v delayed="$delayed" 'BEGIN { exit !(delayed <= 1.2 * plain) }' && exit 0
done
fail "a step of $plain ms takes $delayed ms with delayed messages"
