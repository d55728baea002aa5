# caldera pull against a hub of this machine: a cache as Hugging Face's programs have it, downloads that go on where they
# were broken off, and what a hub should not say.
. tests/support/cli.sh
. tests/support/tiny_model.sh
"$CALDERA_BIN" pull --help | grep -q 'not in this build' && { echo "skipped: no downloads in this build"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: no python3 to play the hub"; exit 77; }

make_data
make_config
expect_exit 0 "$CALDERA_BIN" pretrain --device cpu --config "$work/config.json" --data "$work/text.txt" --out "$work/base" --iterations 2 --seed 1

cat >"$work/hub.py" <<'PYTHON'
import hashlib, json, os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
base, log = sys.argv[1:]
commit = "0123456789abcdef0123456789abcdef01234567"
read = lambda p: open(p, "rb").read()
good = {n: read(os.path.join(base, n)) for n in os.listdir(base) if os.path.isfile(os.path.join(base, n))}
ggufs = {n: os.urandom(5000) for n in ("m-q8_0.gguf", "m-Q4_K_M.gguf", "m-f16.gguf")}
repositories = {"org/tiny": {**good, "../evil.json": b"{}", "sub/x.json": b"{}", "pytorch_model.bin": b"x"}, "org/quants": ggufs,
                "org/broken": {"model.safetensors": b"x" * 3000}, "org/wrong": {"model.safetensors": b"y" * 3000}, "org/none": {"README.md": b""}}
cut = {"org/broken": 1000}
class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *args): pass
    def reply(self, status, body, **headers):
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        own = self.server is servers[0]
        with open(log, "a") as f: print("hub" if own else "cdn", self.path, self.headers.get("Authorization"), self.headers.get("Range"), file=f)
        path = self.path.split("?")[0].lstrip("/").split("/")
        if own and path[:2] == ["api", "models"]:
            name = "/".join(path[2:4])
            if name == "org/gated": return self.reply(401, b"{}")
            if name == "org/odd": return self.reply(200, b'{"sha": "../../etc", "siblings": []}')
            if name not in repositories: return self.reply(404, b"{}")
            files = []
            for file, data in repositories[name].items():
                sha = hashlib.sha256(data).hexdigest() if name != "org/wrong" else "0" * 64
                large = file.endswith((".safetensors", ".gguf"))
                files.append({"rfilename": file, "size": len(data), "blobId": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest(),
                              **({"lfs": {"sha256": sha, "size": len(data)}} if large else {})})
            return self.reply(200, json.dumps({"sha": commit, "siblings": files}).encode())
        name, file = "/".join(path[:2]), path[-1]
        assert path[2:4] == ["resolve", commit], path
        if own and file.endswith((".safetensors", ".gguf")):
            return self.reply(302, b"", Location="http://127.0.0.1:%d/%s" % (servers[1].server_port, "/".join(path)))
        data = repositories[name][file]
        start = int((self.headers.get("Range") or "bytes=0-")[6:].split("-")[0])
        part = data[start:]
        if name in cut:  # once
            part = part[:cut.pop(name)]
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(part)
            self.close_connection = True
            return
        self.reply(206 if start else 200, part)
servers = [ThreadingHTTPServer(("127.0.0.1", 0), Hub) for _ in range(2)]
for server in servers: threading.Thread(target=server.serve_forever, daemon=True).start()
print(servers[0].server_port, flush=True)
threading.Event().wait()
PYTHON
python3 "$work/hub.py" "$work/base" "$work/hub.log" >"$work/port" &
hub=$!
trap 'kill $hub; rm -rf "$work"' EXIT
while [ ! -s "$work/port" ]; do sleep 0.05; done
HF_ENDPOINT=http://127.0.0.1:$(cat "$work/port")
HF_HOME=$work/hf
HF_TOKEN=secret
export HF_ENDPOINT HF_HOME HF_TOKEN
unset HF_HUB_CACHE

expect_exit 0 "$CALDERA_BIN" pull org/tiny --json
folder=$work/hf/hub/models--org--tiny/snapshots/0123456789abcdef0123456789abcdef01234567
grep -qF "\"path\": \"$folder\"" "$work/stdout" || grep -qF "\"path\":\"$folder\"" "$work/stdout" || fail "$(cat "$work/stdout")"
for file in config.json model.safetensors tokenizer.json; do
  [ ! -f "$work/base/$file" ] || cmp "$work/base/$file" "$folder/$file" || fail "$file"
done
[ -L "$folder/config.json" ] || fail "files are links to their contents"
[ "$(cat "$work/hf/hub/models--org--tiny/refs/main")" = 0123456789abcdef0123456789abcdef01234567 ] || fail refs
[ -z "$(find "$work" -name 'evil.json' -o -name 'x.json' -o -name 'pytorch_model.bin' -o -name '*.incomplete')" ] || fail "what is no part of the model"
grep -q '^hub /api/models/org/tiny.* Bearer secret' "$work/hub.log" || fail "the token is sent"
grep '^cdn' "$work/hub.log" | grep -q secret && fail "the token goes to the hub alone"
# Its name is a path of the model from now on.
expect_exit 0 "$CALDERA_BIN" generate --device cpu --model org/tiny --prompt-ids "72 105" --max-tokens 2
rm "$work/hub.log"
expect_exit 0 "$CALDERA_BIN" pull org/tiny
[ "$(grep -c resolve "$work/hub.log")" -eq 0 ] || fail "what is there is not loaded again"

expect_exit 0 "$CALDERA_BIN" pull org/quants
grep -q 'm-Q4_K_M.gguf$' "$work/stdout" || fail "$(cat "$work/stdout")"
expect_exit 0 "$CALDERA_BIN" pull org/quants:q8_0 --out "$work/out"
[ -f "$work/out/m-q8_0.gguf" ] || fail "$(ls "$work/out")"
[ ! -L "$work/out/m-q8_0.gguf" ] || fail "a file, no link"
expect_exit 1 "$CALDERA_BIN" pull org/quants:q9
expect_one_error_line
grep -q 'm-f16.gguf' "$work/stderr" || fail "$(cat "$work/stderr")"

# What is there.
expect_exit 0 "$CALDERA_BIN" pull --list
grep -q "^org/tiny	[0-9]* MB	$folder\$" "$work/stdout" || fail "$(cat "$work/stdout")"
[ "$(grep -c '^org/quants	0 MB	.*/m-Q4_K_M.gguf$' "$work/stdout")" = 1 ] || fail "$(cat "$work/stdout")"
expect_exit 0 "$CALDERA_BIN" pull --list --json
python3 -c 'import json, sys; assert [m["model"] for m in json.load(sys.stdin)] == ["org/quants", "org/tiny"]' <"$work/stdout"
expect_exit 2 "$CALDERA_BIN" pull --list org/tiny
expect_exit 2 "$CALDERA_BIN" pull

# One that is broken off goes on from there.
rm "$work/hub.log"
expect_exit 0 "$CALDERA_BIN" pull org/broken
grep -q '^cdn .*bytes=1000-' "$work/hub.log" || fail "$(cat "$work/hub.log")"
# What is not what its hash says is no model.
expect_exit 1 "$CALDERA_BIN" pull org/wrong
expect_one_error_line
grep -q hash "$work/stderr" || fail "$(cat "$work/stderr")"
[ -z "$(find "$work/hf/hub/models--org--wrong" -type f)" ] || fail "nothing wrong is kept"
for name in org/gated org/absent org/odd org/none; do
  expect_exit 1 "$CALDERA_BIN" pull "$name"
  expect_one_error_line
done
expect_exit 1 env HF_ENDPOINT=http://127.0.0.1:1 "$CALDERA_BIN" pull org/tiny
expect_one_error_line
for name in tiny ../org/tiny org/../x org/a/b 'org/a b' -org/tiny org/tiny:; do
  expect_exit 2 "$CALDERA_BIN" pull -- "$name"
done
expect_exit 1 env HF_ENDPOINT=ftp://example.org "$CALDERA_BIN" pull org/tiny
expect_one_error_line
