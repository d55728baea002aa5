# --memory-limit and CALDERA_MEMORY_LIMIT: a limit that suffices changes no result, one that does not is one clear error.
. tests/support/cli.sh
. tests/support/tiny_model.sh

make_model

# finetune DEVICE OUT [FLAGS]
finetune() {
  device=$1
  out=$2
  shift 2
  "$CALDERA_BIN" finetune --json --device "$device" --model "$work/base" --data "$work/text.txt" --out "$out" \
    --rank 4 --iterations 6 --batch-size 2 --seed 5 "$@"
}

devices=cpu
if "$CALDERA_BIN" devices --json | grep -q '"id":"vulkan'; then
  devices="cpu vulkan"
  use_validation
fi
for device in $devices; do
  expect_exit 0 finetune "$device" "$work/free-$device" --log "$work/free.jsonl"
  expect_exit 0 finetune "$device" "$work/limited-$device" --log "$work/limited.jsonl" --memory-limit 3MiB
  losses "$work/free.jsonl" >"$work/a"
  losses "$work/limited.jsonl" >"$work/b"
  cmp "$work/a" "$work/b" || fail "$device: other losses under a limit"
  [ "$(json_number peak_bytes "$work/stdout")" -le 3145728 ] || fail "$device: more than the limit in use"

  expect_exit 1 finetune "$device" "$work/tight-$device" --memory-limit 64KiB
  grep -q 'out of memory: [0-9]* bytes wanted; .* of a limit of 65536' "$work/stderr" ||
    fail "$device: no word of the memory: $(cat "$work/stderr")"
  [ ! -e "$work/tight-$device/adapter_model.safetensors" ] || fail "$device: an adapter of a run that failed"
done

# What a run says that it needs at least is a limit that it runs in.
"$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/text.txt" --out "$work/least" --rank 4 --iterations 2 \
  --batch-size 2 --log "$work/kept.jsonl" >"$work/stdout" 2>"$work/stderr" || fail "$(cat "$work/stderr")"
cp "$work/kept.jsonl" "$work/kept.before"
expect_exit 1 finetune cpu "$work/new/b/c" --memory-limit 400KiB --log "$work/kept.jsonl"
least=$(sed -n 's/.*takes at least \([0-9.]* [KMG]iB\).*/\1/p' "$work/stderr")
[ -n "$least" ] || fail "no least limit is said: $(cat "$work/stderr")"
[ ! -e "$work/new" ] || fail "a run that was refused left folders"
cmp "$work/kept.jsonl" "$work/kept.before" || fail "a run that was refused changed an earlier log"
expect_exit 0 finetune cpu "$work/at-least" --memory-limit "$least"

# What --checkpoint asks for is refused with its least; explain has the table for a limit that is too low.
for how in none layer; do
  expect_exit 1 finetune cpu "$work/new" --memory-limit 150KiB --checkpoint $how
  least=$(sed -n 's/.*takes at least \([0-9.]* [KMG]iB\).*/\1/p' "$work/stderr")
  [ -n "$least" ] || fail "$how: no least limit is said: $(cat "$work/stderr")"
  expect_exit 0 finetune cpu "$work/$how" --memory-limit "$least" --checkpoint $how
done
expect_exit 0 "$CALDERA_BIN" explain --task train --json --device cpu --model "$work/base" --rank 4 --memory-limit 200KiB
grep -q '"least_bytes":' "$work/stdout" || fail "no table for a limit that is too low"
expect_exit 2 "$CALDERA_BIN" explain --task train --device cpu --model "$work/base" --memory-limit 3MiB --checkpoint layer

# A run of the whole model is gone on with.
"$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/text.txt" --out "$work/whole" --adapter-type full \
  --iterations 2 --batch-size 2 >"$work/stdout" 2>"$work/stderr" || fail "$(cat "$work/stderr")"
"$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/text.txt" --out "$work/whole" --adapter-type full \
  --iterations 3 --batch-size 2 --resume >"$work/stdout" 2>"$work/stderr" || fail "$(cat "$work/stderr")"

# fit: the same answers for a run; a limit from the environment; the checkpointing that is asked for.
fit() { "$CALDERA_BIN" fit --json --device cpu --model "$work/base" --rank 4 --batch-size 2 "$@"; }
expect_exit 2 fit
grep -q 'give --memory-limit, or set CALDERA_MEMORY_LIMIT' "$work/stderr" || fail "$(cat "$work/stderr")"
expect_exit 2 fit --memory-limit ''
for flag in --dry-run --resume "--data $work/text.txt"; do
  expect_exit 2 fit --memory-limit 3MiB $flag
  grep -q "^caldera fit: ${flag%% *}: fit reads no data and trains nothing" "$work/stderr" || fail "$(cat "$work/stderr")"
done
lengths=
for how in none layer auto; do
  expect_exit 0 env CALDERA_MEMORY_LIMIT=300KiB "$CALDERA_BIN" fit --json --device cpu --model "$work/base" --rank 4 \
    --batch-size 2 --checkpoint $how
  lengths="$lengths $(json_number longest_seq_len "$work/stdout")"
done
set -- $lengths
if [ "$1" -lt 1 ] || [ "$1" -ge "$2" ] || [ "$2" -gt "$3" ]; then fail "longest texts:$lengths"; fi
expect_exit 0 fit --memory-limit 130KiB
[ "$(json_number longest_seq_len "$work/stdout")" -eq 0 ] || fail "$(cat "$work/stdout")"
[ "$(json_number limit_bytes "$work/stdout")" -eq 133120 ] || fail "$(cat "$work/stdout")"
[ "$(json_number least_bytes "$work/stdout")" -gt 133120 ] || fail "$(cat "$work/stdout")"

export CALDERA_MEMORY_LIMIT=64KiB
expect_exit 1 finetune cpu "$work/tight"
grep -q 'of a limit of 65536' "$work/stderr" || fail "CALDERA_MEMORY_LIMIT has no effect: $(cat "$work/stderr")"
expect_exit 0 finetune cpu "$work/flag" --memory-limit 3MiB
CALDERA_MEMORY_LIMIT=lots
expect_exit 1 finetune cpu "$work/bad"
grep -q "CALDERA_MEMORY_LIMIT: 'lots' is no size in bytes" "$work/stderr" || fail "$(cat "$work/stderr")"
