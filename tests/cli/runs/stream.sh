# A stream trains as a run does: it is stopped and gone on with, and a row that cannot be read loses nothing.
. tests/support/cli.sh
. tests/support/tiny_model.sh
make_model

rows() { awk -v from="$1" -v n="$2" 'BEGIN { for (i = from; i < from + n; ++i) printf "{\"text\": \"%d and %d is %d.\"}\n", i, i, 2 * i }'; }
mkdir "$work/stream"
rows 0 5000 >"$work/stream/train.jsonl"
flags="finetune --json --device cpu --model $work/base --rank 2 --batch-size 4 --seed 3 --val-every 0 --stream"
# train OUT [FLAGS]
train() {
  out=$1
  shift
  # shellcheck disable=SC2086
  "$CALDERA_BIN" $flags --out "$work/$out" "$@"
}

expect_exit 0 train none --data "$work/stream" --dry-run
[ "$(json_number stream_rows "$work/stdout")" = 4900 ] || fail "not 4900 rows: $(cat "$work/stdout")"

# Stopped by a signal, and gone on with.
for more in "" --packing; do
  rm -rf "$work/whole" "$work/parts"
  # shellcheck disable=SC2086
  expect_exit 0 train whole --data "$work/stream" --iterations 800 $more
  # shellcheck disable=SC2086
  "$CALDERA_BIN" $flags --out "$work/parts" --data "$work/stream" --iterations 800 $more >/dev/null 2>&1 &
  process=$!
  sleep 0.4
  kill -TERM $process 2>/dev/null || true
  wait $process || fail "stopped by a signal: exit code $?"
  # shellcheck disable=SC2086
  expect_exit 0 train parts --data "$work/stream" --iterations 800 --resume $more
  cmp "$work/whole/adapter_model.safetensors" "$work/parts/adapter_model.safetensors" || fail "another adapter $more"
done

# A bad row ends the run with what it has trained; such rows are skipped from there on.
{ rows 0 4000 && echo '{"text": broken}' && rows 4000 200; } >"$work/bad.jsonl"
expect_exit 1 train bad --data "$work/bad.jsonl" --epochs 1
grep -q 'bad.jsonl:4001: ' "$work/stderr" || fail "the row is not named: $(cat "$work/stderr")"
[ -s "$work/bad/adapter_model.safetensors" ] || fail "what was trained before the bad row is lost"
expect_exit 0 train bad --data "$work/bad.jsonl" --epochs 1 --resume --skip-bad-rows
grep -q 'of the rows that were read 1 row left out as bad' "$work/stderr" || fail "$(cat "$work/stderr")"

# What does not go together.
expect_exit 2 train none --data "$work/stream" --valid-fraction 0.1
expect_one_error_line
echo '[{"text": "a"}]' >"$work/list.json"
expect_exit 1 train none --data "$work/list.json"
grep -q "jq -c" "$work/stderr" || fail "no way out: $(cat "$work/stderr")"

# A file that is large for the memory is said to be, and so is the way out.
truncate -s 3G "$work/large.jsonl" || { echo "skipped: the disk knows no files with holes"; exit 77; }
expect_exit 1 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/large.jsonl" --out "$work/none"
grep -q 'large.jsonl of 3.22 GB is larger .* --stream' "$work/stderr" || fail "$(cat "$work/stderr")"
# Files that each are read at once, but not together. The first ends the run before one of them is read.
echo no >"$work/bad.jsonl"
large=
for part in $(seq 1 600); do
  truncate -s 2000000000 "$work/part$part.jsonl"
  large="$large --data $work/part$part.jsonl"
done
expect_exit 1 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/bad.jsonl" $large --out "$work/none"
grep -q 'warning: .* GB may not fit the memory.* --stream' "$work/stderr" || fail "$(cat "$work/stderr")"
grep -q 'bad.jsonl:1' "$work/stderr" || fail "$(cat "$work/stderr")"
