# --serve-report shows the page of a run while it goes on, to this machine alone.
. tests/support/cli.sh
. tests/support/tiny_model.sh
command -v python3 >/dev/null || { echo "SKIPPED: no python3" >&2; exit 77; }
make_model

"$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/run" --rank 2 \
  --iterations 100000 --serve-report 0 >"$work/stdout" 2>"$work/stderr" &
process=$!
tries=0
until url=$(sed -n 's/^report: //p' "$work/stderr") && [ -n "$url" ]; do
  if grep -q 'built without cpp-httplib' "$work/stderr"; then echo "SKIPPED: no cpp-httplib" >&2; exit 77; fi
  tries=$((tries + 1))
  [ $tries -lt 300 ] || fail "no address is named: $(cat "$work/stderr")"
  sleep 0.1
done

cat >"$work/ask.py" <<'END'
import sys, time, urllib.error, urllib.request
url = sys.argv[1]
def ask(headers={}, path=""):
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
for _ in range(300):
    status, page = ask()
    if status == 200: break
    time.sleep(0.1)
assert status == 200 and "<html" in page.lower() and "loss" in page, (status, page[:200])
assert ask({"Host": "evil.example"})[0] == 403
assert ask({"Origin": "https://evil.example"})[0] == 403
assert ask(path="run.yaml")[0] == 404
END
python3 "$work/ask.py" "$url" || fail "the page of $url"
port=${url%/}
port=${port##*:}
# A second run cannot have the port, and says so before it trains.
expect_exit 1 "$CALDERA_BIN" finetune --device cpu --model "$work/base" --data "$work/data" --out "$work/second" --rank 2 \
  --iterations 2 --serve-report "$port"
grep -q "port $port" "$work/stderr" || fail "$(cat "$work/stderr")"
kill -TERM $process
wait $process || fail "stopped by a signal: exit code $?"
[ -s "$work/run/report.html" ] || fail "no page is left"
