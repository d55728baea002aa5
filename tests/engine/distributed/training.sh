#!/bin/sh
# Training that several processes share: training.sh <implementation of MPI>. Exits 77 without it.
#
# 1, 2 and 4 ranks write the same bytes: adapter and losses, with accumulation, dropout, packed rows of unequal texts.
. tests/support/cli.sh
. tests/support/tiny_model.sh
implementation=$1
. tests/support/mpi.sh

make_model
# Texts of 4 to 44 bytes.
mkdir "$work/unequal"
i=0
while [ $i -lt 48 ]; do
  printf '{"text": "%.*s"}\n' $((4 + i * 17 % 41)) "this is text $i, of which some bytes are left out"
  i=$((i + 1))
done >"$work/unequal/train.jsonl"
cp "$work/data/valid.jsonl" "$work/unequal/"
data=$work/data
packing=yes

# train COUNT OUT FLAGS...: fine-tunes on COUNT ranks.
train() {
  train_count=$1
  train_out=$2
  shift 2
  ranks "$train_count" "$CALDERA_BIN" finetune --device cpu --threads 1 --model "$work/base" --data "$data" \
    --out "$work/$train_out" --iterations "${iterations:-60}" --batch-size 2 --grad-accumulation 4 --seq-len 48 \
    ${packing:+--packing} --dropout 0.1 --rank 4 --seed 3 --learning-rate 1e-2 --val-every 20 --log "$work/$train_out.jsonl" "$@" \
    >"$work/stdout" 2>"$work/stderr" || fail "$train_count ranks: $(cat "$work/stdout" "$work/stderr")"
}

adapter_of() { sha256sum "$work/$1/adapter_model.safetensors" | cut -d ' ' -f 1; }
# What does not depend on time.
numbers_of() { sed 's/"tokens_per_second.*//' "$work/$1.jsonl"; }

# alone OUT FLAGS...: the same by the program alone, without mpirun, which is the measure.
alone() {
  alone_out=$1
  shift
  "$CALDERA_BIN" finetune --device cpu --threads 1 --model "$work/base" --data "$data" --out "$work/$alone_out" \
    --iterations "$iterations" --batch-size 2 --grad-accumulation 4 --seq-len 48 ${packing:+--packing} --dropout 0.1 --rank 4 \
    --seed 3 --learning-rate 1e-2 --val-every 20 --log "$work/$alone_out.jsonl" "$@" >"$work/stdout" 2>"$work/stderr" ||
    fail "one process: $(cat "$work/stderr")"
}

iterations=60
alone one
for count in 1 2 4; do
  train "$count" "of_$count"
  [ "$(adapter_of "of_$count")" = "$(adapter_of one)" ] || fail "$count ranks write another adapter than one process"
  [ "$(numbers_of "of_$count")" = "$(numbers_of one)" ] || {
    numbers_of one >"$work/a"
    numbers_of "of_$count" >"$work/b"
    diff "$work/a" "$work/b" >&2 || :
    fail "$count ranks log other numbers than one process"
  }
done
grep -q "^4 ranks of .*: 0 on cpu of" "$work/stderr" || fail "who is where was not said: $(cat "$work/stderr")"
grep -q "^step 60/60 .*slowest: rank [0-3] of $(hostname)$" "$work/stderr" ||
  fail "the slowest rank is not named: $(cat "$work/stderr")"

# adapter_numbers RUN: the elements of its adapter, one a line, behind the header of the file.
adapter_numbers() {
  adapter_file=$work/$1/adapter_model.safetensors
  od -An -v -tf4 -w4 -j $((8 + $(od -An -tu8 -N8 "$adapter_file"))) "$adapter_file"
}

# Three ranks, and sums in MPI's order: the same to rounding.
train 3 of_3
train 4 fast --reduction fast
for run in of_3 fast; do
  losses "$work/one.jsonl" >"$work/a"
  losses "$work/$run.jsonl" >"$work/b"
  paste "$work/a" "$work/b" |
    awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d } END { exit !(worst < 1e-4 && NR == 60) }' ||
    fail "$run: losses differ by more than rounding: $(paste "$work/a" "$work/b" | tail -n 3)"
done
adapter_numbers one >"$work/a"
adapter_numbers fast >"$work/b"
paste "$work/a" "$work/b" |
  awk '{ d += ($1 - $2) ^ 2; all += $1 ^ 2 } END { print "--reduction fast: an adapter off by", sqrt(d / all)
         exit !(d <= 1e-12 * all && all > 0) }' || fail "with --reduction fast an adapter differs by more than 1e-6"

# It goes on with another number of ranks.
iterations=30
train 4 again --save-every 15
iterations=60
for count in 1 2; do
  cp -r "$work/again" "$work/again_$count"
  train "$count" "again_$count" --resume
  [ "$(adapter_of "again_$count")" = "$(adapter_of one)" ] || fail "a run of 4 ranks went on with $count to another adapter"
done

# Ranks that read other data are found before the first step, by one error.
mkdir "$work/other"
head -n 30 "$work/data/train.jsonl" >"$work/other/train.jsonl"
cp "$work/data/valid.jsonl" "$work/other/"
set -- "$CALDERA_BIN" finetune --device cpu --threads 1 --model "$work/base" --out "$work/no" --iterations 2 \
  --grad-accumulation 2
if ranks 1 "$@" --data "$work/data" : -n 1 "$@" --data "$work/other" >"$work/stdout" 2>"$work/stderr"; then
  fail "ranks with other data trained"
fi
[ "$(grep -c "rank 1 has another training set than rank 0" "$work/stderr")" = 1 ] || fail "$(cat "$work/stderr")"
if ranks 1 "$@" --data "$work/data" : -n 1 "$@" --data "$work/data" --alpha 32 >"$work/stdout" 2>"$work/stderr"; then
  fail "ranks with other flags trained"
fi
[ "$(grep -c "rank 1 runs with other settings than rank 0 (alpha=32, not alpha=16)" "$work/stderr")" = 1 ] ||
  fail "$(cat "$work/stderr")"
# Nor with another model: a weight that differs in its last byte, or another configuration.
cp -r "$work/base" "$work/other_base"
printf '\101' | dd of="$work/other_base/model.safetensors" bs=1 conv=notrunc status=none \
  seek=$(($(wc -c <"$work/base/model.safetensors") - 1))
cp -r "$work/base" "$work/other_theta"
sed 's/"rope_theta": *10000.0/"rope_theta": 500.0/' "$work/base/config.json" >"$work/other_theta/config.json"
for other in other_base other_theta; do
  if ranks 1 "$@" --data "$work/data" : -n 1 "$@" --data "$work/data" --model "$work/$other" >"$work/stdout" \
    2>"$work/stderr"; then fail "ranks with other models trained: $other"; fi
  [ "$(grep -c "rank 1 has another model than rank 0" "$work/stderr")" = 1 ] || fail "$other: $(cat "$work/stderr")"
done
# What one rank cannot begin with ends the others, which wait for it to start MPI; and so does a program that never does.
if ranks 1 "$@" --data "$work/data" : -n 1 "$@" --data "$work/data" --rank x >"$work/stdout" 2>"$work/stderr"; then
  fail "a rank with a wrong flag trained"
fi
[ "$(grep -c "rank 1: --rank: 'x' is not a whole number" "$work/stderr")" = 1 ] || fail "$(cat "$work/stderr")"
if ranks 1 "$@" --data "$work/data" --timeout 1 : -n 1 true >"$work/stdout" 2>"$work/stderr"; then
  fail "a rank trained with another program"
fi
grep -q "rank 0: 2 processes were started, and not all of them started MPI within 1 s" "$work/stderr" ||
  fail "$(cat "$work/stderr")"
[ ! -e "$work/no/adapter_model.safetensors" ] || fail "what failed wrote an adapter"

# What follows does not depend on the implementation of MPI.
[ "$implementation" = openmpi ] || exit 0

# Without packing rows are as long as the longest of their batch: ranks have plans of their own, in which the messages
# of a step, eight here, have one order all the same.
data=$work/unequal
packing=
iterations=6
make_config_of 64 96 4 4 2
# padded COUNT OUT FLAGS...: trains all parameters of a larger model.
padded() {
  padded_count=$1
  padded_out=$2
  shift 2
  ranks "$padded_count" "$CALDERA_BIN" pretrain --device cpu --threads 1 --config "$work/config.json" --data "$data" \
    --out "$work/$padded_out" --iterations 4 --batch-size 2 --grad-accumulation 4 --seq-len 48 --seed 3 --val-every 0 \
    "$@" >"$work/stdout" 2>"$work/stderr" || fail "padded rows on $padded_count ranks: $(cat "$work/stdout" "$work/stderr")"
}
model_of() { sha256sum "$work/$1/model.safetensors" | cut -d ' ' -f 1; }
padded 1 padded_1
for count in 2 4; do
  padded "$count" "padded_$count"
  [ "$(model_of "padded_$count")" = "$(model_of padded_1)" ] || fail "another model from padded rows on $count ranks"
done
padded 3 padded_largest --top-gradients 0.1
alone padded_alone
train 4 padded_based --shard-base --shard-optimizer
[ "$(adapter_of padded_based)" = "$(adapter_of padded_alone)" ] || fail "another adapter from padded rows, its base divided"
make_config
data=$work/data
packing=yes

# The optimiser's state divided among ranks, and the frozen weights: the same bytes, also those of the checkpoint, with
# which any number of ranks goes on.
state_of() { sha256sum "$work/$1/checkpoint-$iterations/training_state.safetensors" | cut -d ' ' -f 1; }
iterations=20
alone short
iterations=10
train 4 sharded --shard-optimizer
iterations=20
train 2 sharded --shard-optimizer --resume
train 2 based --shard-base
[ "$(adapter_of based)" = "$(adapter_of short)" ] || fail "with its base divided a run has another adapter"
[ "$(numbers_of based)" = "$(numbers_of short)" ] || fail "with its base divided a run has other losses"
[ "$(adapter_of sharded)" = "$(adapter_of short)" ] || fail "with divided states a run has another adapter"
[ "$(state_of sharded)" = "$(state_of short)" ] || fail "with divided states a run has another checkpoint"

# With less traffic losses stay near, and ranks that train by themselves go on where they came together.
last_loss() { losses "$work/$1.jsonl" | tail -n 1; }
near() {
  awk -v a="$(last_loss "$1")" -v b="$(last_loss short)" -v most="$2" \
    'BEGIN { d = a / b - 1; if (d < 0) d = -d; exit !(d <= most) }' ||
    fail "$1: the last loss is $(last_loss "$1"), not near $(last_loss short)"
}
train 2 bf16 --gradient-type bf16
near bf16 0.01
train 2 largest --top-gradients 0.1
near largest 0.3
train 2 apart --sync-every 5
near apart 0.3
iterations=10
train 2 half_bf16 --gradient-type bf16
train 2 half_largest --top-gradients 0.1
train 2 parted --sync-every 5
iterations=20
train 2 parted --sync-every 5 --resume
cp -r "$work/half_bf16" "$work/of_3_bf16"
train 2 half_bf16 --gradient-type bf16 --resume
[ "$(adapter_of half_bf16)" = "$(adapter_of bf16)" ] || fail "gradients in bf16: a run went on to another adapter"
train 2 half_largest --top-gradients 0.1 --resume
[ "$(adapter_of half_largest)" = "$(adapter_of largest)" ] || fail "the largest gradients: a run went on to another adapter"
train 3 of_3_bf16 --gradient-type bf16 --resume
near of_3_bf16 0.01
[ "$(adapter_of parted)" = "$(adapter_of apart)" ] || fail "ranks that train by themselves went on to another adapter"

# On a GPU, or what acts as one.
if "$CALDERA_BIN" devices --json | grep -q '"id":"vulkan'; then
  train 2 on_vulkan --device vulkan
  losses "$work/short.jsonl" >"$work/a"
  losses "$work/on_vulkan.jsonl" >"$work/b"
  paste "$work/a" "$work/b" |
    awk '{ d = ($1 - $2) / $1; if (d < 0) d = -d; if (d > worst) worst = d } END { exit !(worst < 1e-5 && NR == 20) }' ||
    fail "on Vulkan losses differ by more than 1e-5: $(paste "$work/a" "$work/b")"
fi

# Fewer batches than ranks: the rows of a step are divided, which the run's settings say.
train 4 divided --grad-accumulation 1 --batch-size 4 --iterations 2
grep -q "batch-size: 1" "$work/divided/run.yaml" || fail "run.yaml: $(cat "$work/divided/run.yaml")"
# And never become more: 6 rows are 6 batches of one.
train 4 divided --grad-accumulation 1 --batch-size 6 --iterations 2 --overwrite
grep -q "^note: 4 processes share 6 rows a step: --batch-size 1 --grad-accumulation 6$" "$work/stderr" ||
  fail "rows of a step: $(cat "$work/stderr")"
# A list of devices has one for each process of the machine.
for devices in cpu,cpu,cpu 'cpu,'; do
  if ranks 2 "$CALDERA_BIN" finetune --device "$devices" --model "$work/base" --data "$work/data" --out "$work/no" \
    --grad-accumulation 2 >"$work/stdout" 2>"$work/stderr"; then fail "--device $devices was taken for 2 processes"; fi
  grep -q "rank 0: --device $devices: \|rank 1: --device $devices: " "$work/stderr" || fail "$(cat "$work/stderr")"
done

# What joins the ranks can be measured, for estimates.
ranks 2 "$CALDERA_BIN" scale --device cpu --config "$work/config.json" --nodes 2,4 --link measured --tflops 1 \
  --picture "$work/scale.svg" >"$work/stdout" 2>"$work/stderr" || fail "scale: $(cat "$work/stderr")"
grep -q "^measured: [0-9.e+-]* us a message, [0-9.e+-]* GB/s$" "$work/stdout" || fail "scale: $(cat "$work/stdout")"
[ "$(grep -c "^ *measured .*%$" "$work/stdout")" = 2 ] || fail "scale: $(cat "$work/stdout")"
grep -q '>measured</text>' "$work/scale.svg" || fail "the picture names no link: $(cat "$work/scale.svg")"
