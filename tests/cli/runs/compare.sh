# caldera compare: runs side by side.
. tests/support/cli.sh
. tests/support/tiny_model.sh

make_model
for rank in 2 4; do
  expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$work/base" --data "$work/data" --out "$work/r$rank" \
    --iterations 8 --val-every 4 --rank $rank --log "$work/r$rank/log.jsonl"
  json_number best_val_loss "$work/stdout" >"$work/best$rank"
done

expect_exit 0 "$CALDERA_BIN" compare "$work/r2" "$work/r4" --html "$work/runs.html"
[ "$(wc -l <"$work/stdout")" -eq 4 ] || fail "not a heading, two runs and the page: $(cat "$work/stdout")"
head -n 1 "$work/stdout" | grep -q 'at step *rank$' || fail "not what differs, and that alone: $(cat "$work/stdout")"
grep -q "^$work/r4 *8 .* 4\$" "$work/stdout" || fail "no row of the second run: $(cat "$work/stdout")"
grep -q '"step":\[1,2,3,4,5,6,7,8\]' "$work/runs.html" || fail "the page has no curves"

expect_exit 0 "$CALDERA_BIN" compare --json "$work/r2" "$work/r4"
for rank in 2 4; do
  grep -q "\"best_val_loss\":$(cat "$work/best$rank"),.*\"settings\":{\"rank\":\"$rank\"}" "$work/stdout" ||
    fail "rank $rank: $(cat "$work/stdout")"
done

# A run that wrote no log, and has moved.
expect_exit 0 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/quiet" --iterations 2
mv "$work/r2" "$work/moved"
expect_exit 0 "$CALDERA_BIN" compare "$work/moved" "$work/quiet" --html "$work/runs.html"
grep -q '"step":\[1,2,3,4,5,6,7,8\]' "$work/runs.html" || fail "the log of the run that moved is not found"

expect_exit 1 "$CALDERA_BIN" compare "$work/moved" "$work/data"
expect_one_error_line
grep -q 'data: there is no checkpoint' "$work/stderr" || fail "not named: $(cat "$work/stderr")"
expect_exit 2 "$CALDERA_BIN" compare
