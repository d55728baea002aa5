# caldera serve with a GGUF file that caldera convert wrote: its tokenizer, its template, thinking, tools, and vectors.
. tests/support/cli.sh
. tests/support/tiny_model.sh
. tests/support/serve.sh
command -v python3 >/dev/null || { echo "skipped: no python3 to talk to the server"; exit 77; }

hf="${CALDERA_TEST_DATA:-../shared/data}/gguf/hf"
[ -d "$hf" ] || { echo "skipped: no test data gguf/hf"; exit 77; }
mkdir "$work/hf"
cp "$hf"/* "$work/hf"
printf '%s' '{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if tools %}<tool_call>{% endif %}{% if add_generation_prompt %}assistant: {% if enable_thinking %}<think>
{% endif %}{% endif %}' >"$work/hf/chat_template.jinja"
expect_exit 0 "$CALDERA_BIN" convert --model "$work/hf" --out "$work/model.gguf" --to gguf --type q8_0

cat >"$work/talk.py" <<'PYTHON'
import json, math, sys, urllib.error, urllib.request
url, what = sys.argv[1:]
def ask(path, body):
    request = urllib.request.Request(url + path, data=json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
chat, hello = "/v1/chat/completions", [{"role": "user", "content": "Hi"}]
schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": False}
if what == "texts":
    def message(**more):
        status, body = ask(chat, {"messages": hello, "max_tokens": 100, "seed": 1, **more})
        assert status == 200, body
        return body["choices"][0]["message"]
    assert message(temperature=0)["content"] == message(temperature=0)["content"] != ""
    held = message(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": schema}})
    assert isinstance(json.loads(held["content"])["x"], int), held
    call = message(tools=[{"type": "function", "function": {"name": "f", "parameters": schema}}], tool_choice="required")
    assert call["tool_calls"][0]["function"]["name"] == "f", call
    thought = message(chat_template_kwargs={"enable_thinking": True}, max_tokens=6)
    assert thought["reasoning_content"] and thought["content"] == "", thought
    status, body = ask("/v1/embeddings", {"input": "a"})
    assert status == 400 and body["error"]["code"] == "embeddings_unavailable", body
else:
    status, body = ask("/v1/embeddings", {"input": ["First Citizen:", [1, 2, 3]], "dimensions": 3})
    assert status == 200, body
    for entry in body["data"]:
        assert len(entry["embedding"]) == 3 and abs(math.hypot(*entry["embedding"]) - 1) < 1e-5, entry
    assert ask(chat, {"messages": hello})[0] == 400
PYTHON
model="$work/model.gguf"
start_server
python3 "$work/talk.py" "$url" texts || fail "$(cat "$work/server.log")"
stop_server
start_server --embeddings --matryoshka
python3 "$work/talk.py" "$url" vectors || fail "$(cat "$work/server.log")"
stop_server
