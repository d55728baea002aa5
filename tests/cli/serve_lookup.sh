# A server that guesses ahead answers as one that does not: the same greedy texts, schemas kept, stop strings found, and
# counts of what was guessed and kept.
. tests/support/cli.sh
. tests/support/tiny_model.sh
. tests/support/serve.sh
command -v python3 >/dev/null || { echo "skipped: no python3 to talk to the server"; exit 77; }

make_chat_model
cat >"$work/talk.py" <<'PYTHON'
import concurrent.futures, json, os, sys, urllib.request
url, told = sys.argv[1:]
def post(path, body):
    request = urllib.request.Request(url + path, data=json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())["choices"]
schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0}},
          "required": ["name", "age"], "additionalProperties": False}
chat = {"messages": [{"role": "user", "content": "1 plus 1 is"}], "temperature": 0}
text = {"prompt": "3 plus 3 is", "temperature": 0, "max_tokens": 60}
requests = [("/v1/chat/completions", {**chat, "max_tokens": 80}), ("/v1/completions", {**text, "n": 2}),
            ("/v1/completions", {**text, "logprobs": 2}), ("/v1/completions", {**text, "stop": ["3", "s 6"]}),
            ("/v1/chat/completions", {**chat, "max_tokens": 300, "response_format": {
                "type": "json_schema", "json_schema": {"name": "p", "schema": schema}}})]
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    answers = list(pool.map(lambda r: post(*r), requests * 2))
assert list(json.loads(answers[4][0]["message"]["content"])) == ["name", "age"], answers[4]
def same(a, b):
    if isinstance(a, float): return abs(a - b) < 1e-3
    if isinstance(a, list): return len(a) == len(b) and all(map(same, a, b))
    return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a) if isinstance(a, dict) else a == b
if os.path.exists(told):
    assert same(json.load(open(told)), answers), "other answers"
else:
    json.dump(answers, open(told, "w"))
metrics = dict(line.rsplit(" ", 1) for line in
               urllib.request.urlopen(url + "/metrics").read().decode().splitlines() if not line.startswith("#"))
print(metrics["caldera_drafted_tokens_total"], metrics["caldera_accepted_tokens_total"])
PYTHON

for flags in "" --lookup "--draft-model $work/base --draft-tokens 3"; do
  # shellcheck disable=SC2086 # flags are words
  start_server --max-batch 4 $flags
  python3 "$work/talk.py" "$url" "$work/told.json" >"$work/counts" || fail "$(cat "$work/server.log")"
  stop_server
  read -r drafted accepted <"$work/counts"
  if [ -z "$flags" ]; then
    [ "$drafted $accepted" = "0 0" ] || fail "guesses without a drafter: $drafted $accepted"
  else
    [ "$accepted" -gt 0 ] || fail "$flags: no guess was kept of $drafted"
    [ "$accepted" -le "$drafted" ] || fail "$flags: $accepted of $drafted"
  fi
done
