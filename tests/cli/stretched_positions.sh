# Models whose frequencies are stretched: every program takes texts of as many positions as they are stretched to, and
# says in one line that longer ones do not fit.
. tests/support/cli.sh
. tests/support/tiny_model.sh
. tests/support/serve.sh
command -v python3 >/dev/null || { echo "skipped: no python3 to talk to the server"; exit 77; }
make_model
printf '%s' '{% for m in messages %}{{ m.content }}{% endfor %}' >"$work/base/chat_template.jinja"

# stretch SCALING: $work/base, with 16 positions that its frequencies stretch to 64; longrope says the 64 itself.
cp "$work/base/config.json" "$work/plain.json"
stretch() {
  python3 - "$work/plain.json" "$work/base/config.json" "$1" <<'PYTHON'
import json, sys
config = json.load(open(sys.argv[1]))
scaling = json.loads(sys.argv[3])
config["max_position_embeddings"] = 64 if scaling["rope_type"] == "longrope" else 16
config["rope_scaling"] = scaling
json.dump(config, open(sys.argv[2], "w"))
PYTHON
}
# ids N: N token ids of some text.
ids() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; ++i) printf "%d ", 97 + i % 7 }'; }
# letters N: the same as text, a token a byte.
letters() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; ++i) printf "%c", 97 + i % 7 }'; }
# refused COMMAND...: it says in one line how many positions there are.
refused() {
  expect_exit 1 "$@"
  expect_one_error_line
  grep -q 64 "$work/stderr" || fail "the error does not say how many positions there are: $(cat "$work/stderr")"
}
drawn() { tr -d '\n ' <"$work/stdout" | grep -o '"ids":\[[0-9,]*\]'; }

cat >"$work/complete.py" <<'PYTHON'
import json, sys, urllib.error, urllib.request
url, tokens = sys.argv[1], int(sys.argv[2])
body = {"model": "base", "prompt": [97 + i % 7 for i in range(tokens)], "max_tokens": 4, "temperature": 0}
try:
    with urllib.request.urlopen(urllib.request.Request(url + "/v1/completions", json.dumps(body).encode()), timeout=60) as answer:
        print(answer.status, json.load(answer)["usage"]["completion_tokens"])
except urllib.error.HTTPError as error:
    print(error.code, json.load(error)["error"]["code"])
PYTHON

for scaling in '{"rope_type": "linear", "factor": 4.0}' \
  '{"rope_type": "dynamic", "factor": 4.0}' \
  '{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}' \
  '{"rope_type": "longrope", "short_factor": [1, 1, 1, 1], "long_factor": [1, 1.5, 2, 4],
    "original_max_position_embeddings": 16}'; do
  stretch "$scaling"
  model="$work/base"
  on="--device cpu --model $model"

  expect_exit 0 "$CALDERA_BIN" generate --json $on --prompt-ids "$(ids 60)" --max-tokens 4
  alone=$(drawn)
  [ "$(echo "$alone" | tr -cd , | wc -c)" -eq 3 ] || fail "$scaling: not four tokens: $alone"
  refused "$CALDERA_BIN" generate $on --prompt-ids "$(ids 65)"
  letters 60 >"$work/prompt.txt"
  expect_exit 0 "$CALDERA_BIN" generate --json $on --batch "$work/prompt.txt" --max-tokens 4
  expect_exit 0 "$CALDERA_BIN" generate --json $on --prompt "$(letters 60)" --max-tokens 3
  expect_exit 0 "$CALDERA_BIN" generate --json $on --prompt "$(letters 60)" --max-tokens 3 --lookup
  letters 80 >"$work/prompt.txt"
  refused "$CALDERA_BIN" generate $on --batch "$work/prompt.txt" --max-tokens 4

  letters 50 | "$CALDERA_BIN" chat --json $on --context 64 --max-tokens 4 >"$work/stdout" || fail "$scaling: chat"
  grep -q '"tokens":4' "$work/stdout" || fail "$scaling: $(cat "$work/stdout")"
  refused "$CALDERA_BIN" chat $on --context 65 </dev/null

  expect_exit 0 "$CALDERA_BIN" evaluate $on --data "$work/text.txt" --seq-len 64
  refused "$CALDERA_BIN" evaluate $on --data "$work/text.txt" --seq-len 65

  expect_exit 0 "$CALDERA_BIN" embed --json $on --text "$(letters 60)"
  [ "$(tr -d "\n " <"$work/stdout" | sed "s/.*\"tokens\":\[\([0-9]*\).*/\1/")" -ge 60 ] ||
    fail "$scaling: texts are cut: $(tail -c 60 "$work/stdout")"

  start_server --max-batch 4
  [ "$(python3 "$work/complete.py" "$url" 60)" = "200 4" ] || fail "$scaling: a prompt of 60 tokens: $(cat "$work/server.log")"
  [ "$(python3 "$work/complete.py" "$url" 65)" = "400 context_length_exceeded" ] || fail "$scaling: 65 tokens"
  stop_server
done
