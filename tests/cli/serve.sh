# caldera serve as a program: a real model behind it, adapters by name, schemas, and an orderly end.
. tests/support/cli.sh
. tests/support/tiny_model.sh
. tests/support/serve.sh
command -v python3 >/dev/null || { echo "skipped: no python3 to talk to the server"; exit 77; }

make_chat_model
expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$work/base" --data "$work/text.txt" --out "$work/adapter" \
  --rank 4 --iterations 4 --learning-rate 1e-2 --seed 1
start_server --adapter "poet=$work/adapter" --name tiny --api-key sesame --context 400

cat >"$work/talk.py" <<'PYTHON'
import array, json, math, sys, urllib.error, urllib.request
url = sys.argv[1]
def ask(path, body=None, key="sesame"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, headers={"Authorization": "Bearer " + key})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
def answer(path, body=None):
    status, text = ask(path, body)
    assert status == 200, (status, text)
    return json.loads(text)
chat, hello = "/v1/chat/completions", [{"role": "user", "content": "Hello"}]

assert ask("/health", key="")[0] == 200
assert "<title>Caldera" in ask("/", key="")[1]
assert ask("/v1/models", key="x")[0] == 401
models = answer("/v1/models")["data"]
assert [m["id"] for m in models] == ["tiny", "poet"] and models[0]["max_model_len"] == 400, models

def content(**more):
    return answer(chat, {"messages": hello, "max_tokens": 24, **more})["choices"][0]["message"]["content"]
greedy = content(temperature=0)
assert greedy == content(temperature=0)
def first_logprob(model):
    return answer("/v1/completions", {"model": model, "prompt": "1 plus", "max_tokens": 1, "temperature": 0, "logprobs": 0})["choices"][0]["logprobs"]["token_logprobs"][0]
assert first_logprob("tiny") == first_logprob("tiny") and abs(first_logprob("tiny") - first_logprob("poet")) > 1e-3
assert content(seed=5) == content(seed=5)
status, events = ask(chat, {"messages": hello, "max_tokens": 24, "temperature": 0, "stream": True})
chunks = [json.loads(e[6:]) for e in events.split("\n\n") if e.startswith("data: {")]
assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks) == greedy and "[DONE]" in events

schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0}},
          "required": ["name", "age"], "additionalProperties": False}
for seed in range(3):
    value = json.loads(content(seed=seed, max_tokens=300, temperature=1.5,
                               response_format={"type": "json_schema", "json_schema": {"name": "p", "schema": schema}}))
    assert list(value) == ["name", "age"] and isinstance(value["age"], int) and len(value["name"]) <= 5, value
call = answer(chat, {"messages": hello, "max_tokens": 350, "seed": 1, "tool_choice": "required",
                     "tools": [{"type": "function", "function": {"name": "add", "parameters": schema}}]})["choices"][0]
assert call["finish_reason"] == "tool_calls", call
assert list(json.loads(call["message"]["tool_calls"][0]["function"]["arguments"])) == ["name", "age"]

reply = answer("/v1/completions", {"prompt": [72, 105], "max_tokens": 3, "logprobs": 2, "temperature": 0})["choices"][0]
assert len(reply["logprobs"]["tokens"]) == 3 and all(x <= 0 for x in reply["logprobs"]["token_logprobs"]), reply
# An answer that is longer than the context of 400.
long = answer("/v1/completions", {"prompt": "1 plus", "max_tokens": 700, "context_shift": True, "ignore_eos": True})
assert long["usage"]["completion_tokens"] == 700 and long["choices"][0]["finish_reason"] == "length", long["usage"]
assert float(ask("/metrics")[1].split("\ncaldera_shifted_total ")[1].split()[0]) >= 2
# What lm-evaluation-harness asks: the log-likelihood of a prompt's own tokens, as the logits of `generate` have it.
scored = answer("/v1/completions", {"prompt": [[72, 105, 33, 72], [105, 72]], "max_tokens": 1, "logprobs": 1, "temperature": 0,
                                    "echo": True, "seed": 1234})["choices"]
logits = array.array("f", open(sys.argv[2], "rb").read())
rows = [logits[258 * i:258 * (i + 1)] for i in range(4)]
expected = [row[i] - math.log(sum(math.exp(x) for x in row)) for row, i in zip(rows, [105, 33, 72])]
for choice, prompt in zip(scored, [[72, 105, 33, 72], [105, 72]]):
    told = choice["logprobs"]["token_logprobs"]
    assert len(told) == len(prompt) + 1 and told[0] is None, told
    if prompt == [72, 105, 33, 72]:
        assert all(abs(a - b) < 1e-4 for a, b in zip(told[1:-1], expected)), (told, expected)
best = reply["logprobs"]["top_logprobs"][0]
assert max(best.values()) == reply["logprobs"]["token_logprobs"][0] and len(best) == 2, reply
status, text = ask("/v1/completions", {"prompt": "x" * 500})
assert status == 400 and "context_length_exceeded" in text, text
assert 'endpoint="/v1/chat/completions",status="200"' in ask("/metrics")[1]
PYTHON
expect_exit 0 "$CALDERA_BIN" generate --device cpu --model "$work/base" --prompt-ids "72 105 33 72" --max-tokens 1 --logits "$work/logits"
python3 "$work/talk.py" "$url" "$work/logits" || fail "$(cat "$work/server.log")"
# Two servers do not share a port.
port=${url##*:}
expect_exit 1 "$CALDERA_BIN" serve --device cpu --model "$work/base" --port "${port%%/*}"
grep -q 'the address is taken' "$work/stderr" || fail "$(cat "$work/stderr")"
[ "$(grep -c ' POST /v1/chat/completions 200 ' "$work/server.log")" -eq 9 ] || fail "not a line a request: $(cat "$work/server.log")"
stop_server

expect_exit 2 "$CALDERA_BIN" serve --model "$work/base" --adapter nothing
grep -q 'NAME=DIR' "$work/stderr" || fail "$(cat "$work/stderr")"
expect_exit 1 "$CALDERA_BIN" serve --device cpu --model "$work/base" --host 192.0.2.1
expect_one_error_line

# What requests leave out is the flags', else the model's own: greedy here, and the same each time.
printf '{"do_sample": true, "temperature": 0.01, "top_k": 1, "repetition_penalty": 1.1}' >"$work/base/generation_config.json"
start_server --top-p 0.5
grep -q 'temperature 0.01, top-k 1, top-p 0.5, min-p 0, repetition penalty 1.1' "$work/server.log" || fail "$(cat "$work/server.log")"
ask() { python3 -c 'import json, sys, urllib.request as u
print(json.loads(u.urlopen(u.Request(sys.argv[1] + "/v1/completions", sys.argv[2].encode())).read())["choices"][0]["text"])' "$url" "$1"; }
[ "$(ask '{"prompt": "1 plus", "seed": 1}')" = "$(ask '{"prompt": "1 plus", "seed": 2}')" ] || fail 'the model says that the most likely token is taken'
stop_server
start_server --generation-config none
grep -q 'temperature 1, top-k 0, top-p 1, min-p 0, repetition penalty 1$' "$work/server.log" || fail "$(cat "$work/server.log")"
stop_server
