#!/bin/sh
# Frozen weights divided among ranks: sharded_base.sh <implementation of MPI>. Exits 77 without it.
#
# The most memory that a rank has falls by what the program says that it keeps: its part, and two layers as a whole.
. tests/support/cli.sh
. tests/support/tiny_model.sh
implementation=$1
. tests/support/mpi.sh

make_data
make_config_of 512 1408 24 8 8
expect_exit 0 "$CALDERA_BIN" pretrain --device cpu --config "$work/config.json" --data "$work/data" --out "$work/base" \
  --iterations 1 --batch-size 1 --seq-len 8 --optimizer sgd --val-every 0 --val-batches 1

# train COUNT OUT FLAGS...: $peak becomes the most memory of rank 0 in bytes.
train() {
  train_count=$1
  train_out=$2
  shift 2
  ranks "$train_count" "$CALDERA_BIN" finetune --device cpu --threads 1 --model "$work/base" --data "$work/data" \
    --out "$work/$train_out" --iterations 1 --batch-size 1 --grad-accumulation 4 --seq-len 32 --rank 2 --seed 3 \
    --val-every 0 --val-batches 1 --json "$@" >"$work/stdout" 2>"$work/stderr" ||
    fail "$train_count ranks: $(cat "$work/stdout" "$work/stderr")"
  peak=$(json_number peak_resident_bytes "$work/stdout")
}
adapter_of() { sha256sum "$work/$1/adapter_model.safetensors" | cut -d ' ' -f 1; }

for count in 2 4; do
  train "$count" "whole_$count"
  whole=$peak
  train "$count" "divided_$count" --shard-base
  [ "$(adapter_of "divided_$count")" = "$(adapter_of "whole_$count")" ] || fail "another adapter on $count ranks"
  # "N parameters of its layers divided among 2 ranks: X bytes on each, and two layers of Y bytes; embeddings ... of Z ..."
  grep 'divided among' "$work/stderr" |
    sed 's/^\([0-9]*\) .* ranks: \([0-9]*\) bytes.* layers of \([0-9]*\) bytes;.* of \([0-9]*\) bytes.*/\1 \2 \3 \4/' >"$work/plan"
  read -r parameters own layer undivided <"$work/plan"
  # 258 embeddings, which are the head too, and the norms: two a layer, and the last.
  [ "$undivided" = $((4 * (258 * 512 + (2 * 24 + 1) * 512))) ] || fail "$undivided bytes are said to be whole"
  planned=$((whole - 4 * parameters + own + 2 * layer))
  echo "$count ranks: $whole bytes with all weights, $planned planned, $peak measured"
  awk -v got="$peak" -v want="$planned" 'BEGIN { d = got / want - 1; if (d < 0) d = -d; exit !(d <= 0.1) }' ||
    fail "$count ranks: $peak bytes at most, not $planned as planned ($whole with all weights)"
done
