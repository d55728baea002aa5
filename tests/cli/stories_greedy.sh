# A trained checkpoint says what its reference implementation says: 200 greedy tokens and their logits, on every device.
. tests/support/cli.sh
model=$(require_data stories260K) || exit $?
use_validation

expect_exit 0 "$CALDERA_BIN" devices --json
devices=$(tr '{' '\n' <"$work/stdout" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')

floats() { od -An -v -t f4 -w4 "$1"; }
floats "$model/greedy_logits_200x512.f32" >"$work/expected"

# check_logits WHAT TOLERANCE: $work/logits against the reference. Not all versions of awk know numbers that are none:
# these are looked for as text.
check_logits() {
  floats "$work/logits" >"$work/actual"
  [ "$(wc -l <"$work/actual")" -eq "$(wc -l <"$work/expected")" ] || fail "$1: not 200 rows of 512 logits"
  paste "$work/actual" "$work/expected" | awk -v tolerance="$2" -v what="$1" '
    /nan|inf/ { print what ": not a number in row " NR; bad = 1; exit }
    { d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d }
    END { print what ": worst logit error " worst; exit bad || !(worst <= tolerance) }' || fail "$1: logits differ"
}

for device in $devices; do
  case $device in
    cpu) tolerance=1e-4 ;;
    *) tolerance=1e-3 ;;
  esac
  expect_exit 0 "$CALDERA_BIN" generate --device "$device" --model "$model" --prompt "" --max-tokens 200 \
    --temperature 0 --logits "$work/logits"
  cmp "$work/stdout" "$model/expected_greedy_200.txt" || fail "$device: another text"
  check_logits "$device" $tolerance

  # All at once instead of one by one.
  expect_exit 0 "$CALDERA_BIN" generate --json --device "$device" --model "$model" --max-tokens 1 \
    --prompt-ids "$(cat "$model/greedy_token_ids_200.txt")" --logits "$work/logits"
  check_logits "$device, the whole prompt" $tolerance
done
