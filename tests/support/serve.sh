# For scripts that talk to a server: source behind cli.sh and tiny_model.sh. start_server FLAGS... serves "$work/base" (or $model) on a
# free port; $url is where, $server its process. make_chat_model makes that model, of bytes, with a chat template.
: "${work:?source cli.sh first}"

make_chat_model() {
  make_data
  make_config
  sed 's/"max_position_embeddings": *[0-9]*/"max_position_embeddings": 512/' "$work/config.json" >"$work/long.json"
  expect_exit 0 "$CALDERA_BIN" pretrain --device cpu --config "$work/long.json" --data "$work/text.txt" --out "$work/base" \
    --iterations 10 --learning-rate 3e-3 --seed 1
  printf '%s' '{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if tools %}<tool_call>{% endif %}{% if add_generation_prompt %}assistant: {% endif %}' \
    >"$work/base/chat_template.jinja"
}

start_server() {
  "$CALDERA_BIN" serve --help | grep -q 'not in this build' && { echo "skipped: no server in this build"; exit 77; }
  rm -f "$work/server.json"
  "$CALDERA_BIN" serve --json --device cpu --model "${model:-$work/base}" --port 0 "$@" >"$work/server.json" 2>"$work/server.log" &
  server=$!
  trap 'kill -KILL "$server" 2>/dev/null || :; rm -rf "$work"' EXIT
  tries=0
  until grep -q '"url"' "$work/server.json" 2>/dev/null; do
    kill -0 "$server" 2>/dev/null || fail "the server ended: $(cat "$work/server.log")"
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || fail "the server did not come up: $(cat "$work/server.log")"
    sleep 0.1
  done
  # shellcheck disable=SC2034 # for those who source this
  url=$(sed -n 's/.*"url":"\([^"]*\)".*/\1/p' "$work/server.json")
}

# Ends it as a service manager does.
stop_server() {
  kill -TERM "$server"
  wait "$server" || fail "the server failed: $(cat "$work/server.log")"
  grep -q '^stopped' "$work/server.log" || fail "no orderly end: $(cat "$work/server.log")"
}

# require_node_package NAME: skips without it. It is looked for where node finds packages: NODE_PATH, or npm's global folder.
require_node_package() {
  command -v node >/dev/null || { echo "skipped: no node"; exit 77; }
  if [ -z "${NODE_PATH:-}" ] && command -v npm >/dev/null; then NODE_PATH=$(npm root -g 2>/dev/null); fi
  export NODE_PATH
  node -e "require('$1')" 2>/dev/null || { echo "skipped: node has no package '$1' (set NODE_PATH)"; exit 77; }
}
