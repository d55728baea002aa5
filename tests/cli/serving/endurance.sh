# caldera serve with everything at once, for some seconds: tests/soak/serve_mixed.py, which takes as long as it is told to.
. tests/support/cli.sh
. tests/support/tiny_model.sh
. tests/support/serve.sh
command -v python3 >/dev/null || { echo "skipped: no python3 to talk to the server"; exit 77; }
"$CALDERA_BIN" serve --help | grep -q 'not in this build' && { echo "skipped: no server in this build"; exit 77; }

make_chat_model
expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$work/base" --data "$work/text.txt" --out "$work/adapter" \
  --rank 4 --iterations 4 --learning-rate 1e-2 --seed 1
# (Memory settles in minutes.)
python3 tests/soak/serve_mixed.py --caldera "$CALDERA_BIN" --model "$work/base" --adapter "$work/adapter" --clients "${CLIENTS:-16}" \
  --seconds "${SECONDS_OF_LOAD:-4}" --growth "${GROWTH:--1}" --log "$work/server.log" >"$work/report" ||
  fail "$(cat "$work/report"; tail -n 20 "$work/server.log")"
cat "$work/report"
grep -q 'reloads' "$work/report" || fail "$(cat "$work/report")"
