# What lm-evaluation-harness asks of a server, request by request as it sends them, and what it reads from the answers: the
# log-likelihoods that PyTorch has for a trained checkpoint (tests/golden/likelihoods/).
. tests/support/cli.sh
. tests/support/serve.sh
command -v python3 >/dev/null || { echo "skipped: no python3 to talk to the server"; exit 77; }
model=$(require_data stories260K) || exit $?

start_server --name stories
cat >"$work/harness.py" <<'PYTHON'
import json, sys, urllib.request
url, recorded = sys.argv[1:]
def parse_logprobs(answer, context_lengths):  # as the harness has it
    results = []
    for choice, length in zip(sorted(answer["choices"], key=lambda c: c["index"]), context_lengths):
        told = choice["logprobs"]["token_logprobs"][length:-1]
        tops = choice["logprobs"]["top_logprobs"][length:-1]
        results.append((sum(told), all(one == max(top.values()) for one, top in zip(told, tops))))
    return results
worst = count = greedy = 0
def ask(body):
    request = urllib.request.Request(url + "/v1/completions", data=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request, timeout=60).read())
for entry in json.load(open(recorded)):
    answers = [ask(entry["request"])]
    # The same without a token more, whose place the harness leaves out.
    answers.append(ask({**entry["request"], "max_tokens": 0}))
    for choice in answers[1]["choices"]:
        for name in ("token_logprobs", "top_logprobs"): choice["logprobs"][name].append(None)
    for answer in answers:
        for (likelihood, is_greedy), expected in zip(parse_logprobs(answer, entry["context_lengths"]), entry["expected"]):
            worst = max(worst, abs(likelihood - expected["log_likelihood"]))
            assert is_greedy == expected["greedy"], (is_greedy, expected)
            count, greedy = count + 1, greedy + is_greedy
print(f"{count} log-likelihoods, {greedy} of greedy texts, worst error {worst:.1e}")
assert count == 32 and 0 < greedy < count and worst < 1e-4, worst
PYTHON
python3 "$work/harness.py" "$url" tests/golden/likelihoods/requests.json || fail "$(cat "$work/server.log")"
stop_server
