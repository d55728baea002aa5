# caldera serve as somebody runs it: several models, adapters that come and go, keys, logs in JSON, and prompts that a
# server which begins again finds in files.
. tests/support/cli.sh
. tests/support/tiny_model.sh
. tests/support/serve.sh
command -v python3 >/dev/null || { echo "skipped: no python3 to talk to the server"; exit 77; }

make_chat_model
cp -r "$work/base" "$work/second"
cp -r "$work/base" "$work/third"
expect_exit 0 "$CALDERA_BIN" finetune --json --device cpu --model "$work/base" --data "$work/text.txt" --out "$work/adapter" \
  --rank 4 --iterations 4 --learning-rate 1e-2 --seed 1
printf '{"keys": [{"name": "ann", "key": "alpha"}, {"name": "bob", "key": "beta", "requests_per_minute": 1}]}' >"$work/keys.json"

cat >"$work/talk.py" <<'PYTHON'
import json, sys, urllib.error, urllib.request
url, adapter, log = sys.argv[1:]
def ask(path, body=None, key="alpha"):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data=data, headers={"Authorization": "Bearer " + key})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
def complete(model, key="alpha"):
    return ask("/v1/completions", {"model": model, "prompt": "1 plus", "max_tokens": 3, "temperature": 0}, key)
names = lambda: [m["id"] for m in json.loads(ask("/v1/models")[1])["data"]]
assert names() == ["first", "second", "third"], names()
texts = {json.loads(complete(m)[1])["choices"][0]["text"] for m in ("first", "second", "third", "second")}
assert len(texts) == 1, texts  # copies of one model
assert complete("fourth")[0] == 404
# Who takes turns between two that are not open together waits for neither.
assert [complete(m)[0] for m in ("second", "third") * 10] == [200] * 20
assert [m["name"] for m in json.loads(ask("/api/tags")[1])["models"]] == ["first", "second", "third"]
assert ask("/v1/load_lora_adapter", {"lora_name": "poet", "lora_path": adapter})[0] == 200
assert complete("poet")[0] == 200 and "poet" in names()
assert ask("/v1/load_lora_adapter", {"lora_name": "x", "lora_path": "/nowhere"})[0] == 400
assert ask("/v1/unload_lora_adapter", {"lora_name": "poet"})[0] == 200
assert complete("poet")[0] == 404 and "poet" not in names()
assert complete("first", "beta")[0] == 200 and complete("first", "beta")[0] == 429 and complete("first", "gamma")[0] == 401
assert ask("/health")[0] == 200
lines = [json.loads(l) for l in open(log) if l.startswith("{")]
assert any(l["key"] == "bob" and l["status"] == 200 and l["generated_tokens"] == 3 for l in lines if "key" in l), lines
PYTHON
model="first=$work/base"
start_server --model "second=$work/second" --model "third=$work/third" --max-models 2 --api-keys "$work/keys.json" \
  --log-format json --adapter-updates
python3 "$work/talk.py" "$url" "$work/adapter" "$work/server.log" || fail "$(cat "$work/server.log")"
# On SIGHUP files are read again: keys, and a model whose files have changed. A stream that was begun before goes on.
cat >"$work/reload.py" <<'PYTHON'
import json, os, signal, sys, time, urllib.error, urllib.request
url, server, log, keys, model = sys.argv[1:]
def ask(body, key):
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), {"Authorization": "Bearer " + key})
    return urllib.request.urlopen(request, timeout=60)
def status(key):
    try:
        return ask({"prompt": "1", "max_tokens": 1}, key).status
    except urllib.error.HTTPError as error:
        return error.code
def reload(*expected):
    before = len(open(log).read())
    os.kill(int(server), signal.SIGHUP)
    for _ in range(200):
        said = open(log).read()[before:]
        if all(line in said for line in expected):
            return
        time.sleep(0.05)
    raise AssertionError(said)
stream = ask({"prompt": "1", "max_tokens": 400, "stream": True, "ignore_eos": True, "temperature": 0}, "alpha")
first = stream.readline()
was = open(keys).read()
open(keys, "w").write(was.replace("beta", "delta"))
os.utime(model + "/config.json")
reload("keys read again", "first opened again")
assert status("delta") == 200 and status("beta") == 401
assert b"[DONE]" in stream.read() and first.startswith(b"data: {"), "a stream was broken off"
open(keys, "w").write("{}")
reload("keys stay as they were: ")
assert status("delta") == 429  # one request a minute: it is the key that it was
for _ in range(500):  # as many as there are, they do not hold up the end, which comes below
    os.utime(model + "/config.json")
    os.kill(int(server), signal.SIGHUP)
PYTHON
python3 "$work/reload.py" "$url" "$server" "$work/server.log" "$work/keys.json" "$work/base" || fail "$(cat "$work/server.log")"
for line in 'opening third' 'closing second'; do grep -q "$line" "$work/server.log" || fail "$(cat "$work/server.log")"; done
before=$(date +%s)
stop_server
[ $(($(date +%s) - before)) -lt 15 ] || fail "signals to read files again held up the end"
# Within a limit of memory that two of these fit in, the one that was not used for longest makes room.
cat >"$work/turns.py" <<'PYTHON'
import json, sys, urllib.request
for model in ("first", "second", "third", "first", "second"):
    body = json.dumps({"model": model, "prompt": "1 plus", "max_tokens": 3}).encode()
    assert urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/completions", body), timeout=60).status == 200, model
PYTHON
start_server --model "second=$work/second" --model "third=$work/third" --memory-limit 5MiB
python3 "$work/turns.py" "$url" || fail "$(cat "$work/server.log")"
for line in 'closing second' 'closing third'; do grep -q "$line" "$work/server.log" || fail "$(cat "$work/server.log")"; done
stop_server
unset model

# A prompt is computed once, though the server begins again; what is damaged is computed again.
cat >"$work/cached.py" <<'PYTHON'
import json, sys, urllib.request
body = json.dumps({"prompt": [i % 250 for i in range(450)], "max_tokens": 8, "temperature": 0}).encode()
reply = json.loads(urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/completions", body), timeout=60).read())
print(reply["usage"]["prompt_tokens_details"]["cached_tokens"], reply["choices"][0]["text"].encode().hex())
PYTHON
cached() {
  start_server --prompt-cache "$work/prompts" --prompt-cache-size 64MiB
  python3 "$work/cached.py" "$url" >"$work/cached" || fail "$(cat "$work/server.log")"
  stop_server
  told=$(cat "$work/cached")
}
cached
first=$told
[ "${first%% *}" = 0 ] || fail "nothing was there: $first"
cached
second=$told
[ "$second" = "448 ${first#* }" ] || fail "$second after $first"
for file in "$work/prompts"/*.prompt; do printf 'damage' | dd of="$file" bs=1 seek=1000 conv=notrunc 2>/dev/null; done
cached
[ "$told" = "$first" ] || fail "damaged files are passed over: $told"
cached
[ "$told" = "$second" ] || fail "and written again: $told"

# A template of one's own, and what the system says where a conversation does not.
cat >"$work/said.py" <<'PYTHON'
import json, sys, urllib.request
body = json.dumps({"messages": [{"role": "user", "content": "Hi"}]}).encode()
print(json.loads(urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/apply-template", body), timeout=60).read())["prompt"])
PYTHON
printf '%s' '{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}' >"$work/own.jinja"
for template in "$work/own.jinja" "$(cat "$work/own.jinja")"; do
  start_server --chat-template "$template" --system-prompt 'Be kind.'
  said=$(python3 "$work/said.py" "$url") || fail "$(cat "$work/server.log")"
  [ "$said" = '[system]Be kind.[user]Hi' ] || fail "$said"
  stop_server
done
expect_exit 2 "$CALDERA_BIN" serve --model "$work/base" --chat-template "$work/absent"
expect_exit 1 "$CALDERA_BIN" serve --device cpu --model "$work/base" --port 0 --context 8 \
  --system-prompt 'Be kind, be brief, be right, and do not say the same thing twice.'
grep -q 'system prompt has' "$work/stderr" || fail "the long system prompt: $(cat "$work/stderr")"
expect_exit 1 "$CALDERA_BIN" serve --device cpu --model "$work/base" --port 0 --chat-template '{% for %}'
expect_one_error_line

expect_exit 2 "$CALDERA_BIN" serve --model "$work/base" --model "$work/second"
grep -q 'NAME=DIR' "$work/stderr" || fail "$(cat "$work/stderr")"
expect_exit 1 "$CALDERA_BIN" serve --device cpu --model "a=$work/base" --model "b=$work/second" --port 0 --max-models 1
expect_one_error_line
expect_exit 2 "$CALDERA_BIN" serve --model "$work/base" --tls-cert "$work/keys.json"
expect_exit 1 "$CALDERA_BIN" serve --device cpu --model "$work/base" --port 0 --api-keys "$work/absent"
expect_one_error_line
expect_exit 1 "$CALDERA_BIN" serve --device cpu --model "$work/base" --port 0 --tls-cert "$work/keys.json" --tls-key "$work/keys.json"
expect_one_error_line
