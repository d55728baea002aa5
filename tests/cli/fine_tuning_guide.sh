# The commands of docs/guide/fine-tuning.md, "From a model to a served adapter", as they stand there.
. tests/support/cli.sh
model=$(require_data stories260K) || exit $?
data=$(require_data wikisql) || exit $?
command -v python3 >/dev/null || { echo "skipped: no python3 to talk to the server"; exit 77; }
"$CALDERA_BIN" serve --help | grep -q 'not in this build' && { echo "skipped: no server in this build"; exit 77; }

mkdir -p "$work/bin" "$work/models" "$work/data" "$work/adapters"
ln -s "$(realpath "$CALDERA_BIN")" "$work/bin/caldera"
ln -s "$(realpath "$model")" "$work/models/stories260K"
ln -s "$(realpath "$data")" "$work/data/wikisql"
awk '/^## /{ on = /served adapter/ } on && /^```/{ block = !block; next } on && block && !/^#/' docs/guide/fine-tuning.md \
  >"$work/commands"
[ "$(wc -l <"$work/commands")" -ge 10 ] || fail "the page has fewer than ten commands"
PATH=$work/bin:$PATH
export PATH CALDERA_DEVICE=cpu

# in_folder COMMAND: runs a line of the page in the folder of this test.
in_folder() { expect_exit 0 sh -c "cd '$work' && $1"; }

grep -v '^caldera serve' "$work/commands" >"$work/lines"
while IFS= read -r line; do
  in_folder "$line </dev/null"
  cat "$work/stdout" >>"$work/said"
done <"$work/lines"
for file in adapters/sql.html adapters/compare.html adapters/dora/adapter_config.json models/sql/model.safetensors models/sql.gguf; do
  [ -s "$work/$file" ] || fail "no $file"
done
grep -q '"use_dora": true' "$work/adapters/dora/adapter_config.json" || fail "the second run is no DoRA"
[ -d "$work/adapters/sql/checkpoint-80" ] || fail "the run did not go on to step 80"
before=$(sed -n 's/^loss \([0-9.]*\).*/\1/p' "$work/said" | head -n 1)
after=$(sed -n 's/^loss \([0-9.]*\).*/\1/p' "$work/said" | tail -n 1)
awk -v a="$after" -v b="$before" 'BEGIN { exit !(a > 0 && a < 0.7 * b) }' || fail "the loss is $before before, $after after"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
serve=$(sed -n "s/--port 8080/--port $port/p" "$work/commands")
[ -n "$serve" ] || fail "the page serves nothing"
(cd "$work" && exec $serve) >"$work/server" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
python3 - "$port" <<'PYTHON' || fail "the server: $(cat "$work/server")"
import json, sys, time, urllib.request
url = f"http://127.0.0.1:{sys.argv[1]}"
for _ in range(300):
    try:
        models = json.load(urllib.request.urlopen(url + "/v1/models", timeout=5))["data"]
        break
    except OSError:
        time.sleep(0.1)
assert [m["id"] for m in models] == ["stories260K", "sql"], models
def complete(model):
    body = json.dumps({"model": model, "prompt": "table: 1-10015132-16", "max_tokens": 12, "temperature": 0}).encode()
    request = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=60))["choices"][0]["text"]
assert complete("sql") != complete("stories260K")
PYTHON
