# The example programs that take a model, on a tiny one.
. tests/support/cli.sh
. tests/support/tiny_model.sh
. tests/support/serve.sh
examples=$(dirname "$CALDERA_BIN")/../examples
[ -x "$examples/generate" ] || { echo "skipped: the examples are not built"; exit 77; }
make_chat_model

expect_exit 0 "$examples/generate" "$work/base" "1 plus 1"
grep -q '^1 plus 1' "$work/stdout" || fail "generate: $(cat "$work/stdout")"
tail -n 1 "$work/stdout" | grep -q ' tokens, .* a second$' || fail "generate: $(cat "$work/stdout")"

printf 'Hello\nAgain\n' >"$work/lines"
expect_exit 0 "$examples/chat" "$work/base" <"$work/lines"
[ "$(grep -c '> ' "$work/stdout")" -ge 2 ] || fail "chat: $(cat "$work/stdout")"

expect_exit 0 "$examples/schema" "$work/base" "Where?"
grep -q '"people": [0-9]' "$work/stdout" || fail "schema: $(cat "$work/stdout")"

expect_exit 0 "$examples/embed" "$work/base" "one plus two" "one plus two" "another text"
grep -q '^ 1.000  one plus two$' "$work/stdout" || fail "embed: $(cat "$work/stdout")"

for name in generate chat schema embed serve; do
  [ -x "$examples/$name" ] || continue
  expect_exit 2 "$examples/$name"
done
expect_exit 1 "$examples/generate" "$work/nothing" x
grep -q "^generate: .*$work/nothing" "$work/stderr" || fail "no error that names the model: $(cat "$work/stderr")"

[ -x "$examples/serve" ] || exit 0
command -v python3 >/dev/null || exit 0
"$examples/serve" "$work/base" 0 >"$work/serve.out" 2>"$work/serve.err" &
server=$!
trap 'kill -KILL "$server" 2>/dev/null || :; rm -rf "$work"' EXIT
tries=0
until grep -q ' at http' "$work/serve.out" 2>/dev/null; do
  tries=$((tries + 1))
  [ "$tries" -lt 600 ] || fail "the example did not serve: $(cat "$work/serve.err")"
  sleep 0.1
done
url=$(sed -n 's/^.* at \(http.*\)$/\1/p' "$work/serve.out")
python3 - "$url" >"$work/answer" <<'PYTHON'
import json, sys, urllib.request
# Three tokens whatever is drawn: an end of the text may be among them.
body = json.dumps({"prompt": "1 plus 1", "max_tokens": 3, "ignore_eos": True}).encode()
print(json.load(urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/completions", data=body)))["usage"])
PYTHON
grep -q "'completion_tokens': 3" "$work/answer" || fail "the example's server: $(cat "$work/answer")"
kill -TERM "$server"
wait "$server" || fail "the example's server did not end well"
