# A trained checkpoint says what its reference implementation says: 200 greedy tokens and their logits, on every device.
. tests/support/cli.sh
model=$(require_data stories260K) || exit $?

expect_exit 0 "$CALDERA_BIN" devices --json
devices=$(tr '{' '\n' <"$work/stdout" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')

floats() { od -An -v -t f4 -w4 "$1"; }
floats "$model/greedy_logits_200x512.f32" >"$work/expected"

for device in $devices; do
  case $device in
    cpu) tolerance=1e-4 ;;
    *) tolerance=1e-3 ;;
  esac
  expect_exit 0 "$CALDERA_BIN" generate --device "$device" --model "$model" --prompt "" --max-tokens 200 \
    --temperature 0 --logits "$work/logits"
  cmp "$work/stdout" "$model/expected_greedy_200.txt" || fail "$device: another text"
  floats "$work/logits" >"$work/actual"
  [ "$(wc -l <"$work/actual")" -eq "$(wc -l <"$work/expected")" ] || fail "$device: not 200 rows of 512 logits"
  paste "$work/actual" "$work/expected" | awk -v tolerance=$tolerance -v device="$device" '
    { d = $1 - $2; if (d < 0) d = -d; if (!(d <= worst)) worst = d }
    END { print device ": worst logit error " worst; exit !(worst <= tolerance) }' || fail "$device: logits differ"

  # All at once instead of one by one.
  expect_exit 0 "$CALDERA_BIN" generate --json --device "$device" --model "$model" --max-tokens 1 \
    --prompt-ids "$(cat "$model/greedy_token_ids_200.txt")" --logits "$work/logits"
  floats "$work/logits" | paste - "$work/expected" | awk -v tolerance=$tolerance '
    { d = $1 - $2; if (d < 0) d = -d; if (!(d <= worst)) worst = d }
    END { exit !(worst <= tolerance && NR == 102400) }' || fail "$device: logits of the whole prompt differ"
done
