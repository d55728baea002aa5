# Everything that says how a text is decoded goes together: guesses, schemas, stop strings, log-probabilities; one text,
# many of them, and a conversation.
. tests/support/cli.sh
. tests/support/tiny_model.sh
. tests/support/serve.sh
command -v python3 >/dev/null || { echo "skipped: no python3 to compare what is told"; exit 77; }

make_chat_model
cat >"$work/schema.json" <<'END'
{"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}, "age": {"type": "integer", "minimum": 0}},
 "required": ["name", "age"], "additionalProperties": false}
END
printf '1 plus\n2 plus 2\n' >"$work/prompts.txt"

cat >"$work/check.py" <<'PYTHON'
import json, subprocess, sys
caldera, work = sys.argv[1:]
model = ["--device", "cpu", "--model", work + "/base"]
def run(command, *flags, said=""):
    done = subprocess.run([caldera, command, "--json", *model, *flags], input=said, capture_output=True, text=True)
    assert done.returncode == 0, (command, flags, done.stderr)
    return done.stdout
def alone(*flags, prompt="1 plus"):
    return json.loads(run("generate", "--prompt", prompt, *flags))
def batch(*flags):
    return json.loads(run("generate", "--batch", work + "/prompts.txt", *flags))["results"]
def chat(*flags):
    return json.loads(run("chat", "--max-tokens", "60", *flags, said="1 plus 1\n"))

plain, second = alone("--max-tokens", "60"), alone("--max-tokens", "60", prompt="2 plus 2")
stop = plain["text"][5:8]
shown = plain["text"][:plain["text"].index(stop)]
schema = ["--json-schema", work + "/schema.json", "--max-tokens", "250"]
document, answer = alone(*schema), chat()
value = json.loads(document["text"])
assert list(value) == ["name", "age"] and len(value["name"]) <= 5, value
reports = alone("--max-tokens", "60", "--logprobs", "2")["logprobs"]
assert [r["id"] for r in reports] == plain["ids"] and all(len(r["top_logprobs"]) == 2 for r in reports)
assert all(r["logprob"] == max(t["logprob"] for t in r["top_logprobs"]) <= 0 for r in reports), reports
def near(a, b):
    return len(a) == len(b) and all(x["id"] == y["id"] and abs(x["logprob"] - y["logprob"]) < 1e-4 for x, y in zip(a, b))

accepted = 0
for guess in ([], ["--lookup"], ["--draft-model", work + "/base"], ["--lookup", "--draft-tokens", "9"]):
    a, b = alone("--max-tokens", "60", *guess), batch("--max-tokens", "60", *guess)
    assert a["ids"] == b[0]["ids"] == plain["ids"] and b[1]["ids"] == second["ids"], guess
    assert a["text"] == b[0]["text"] == plain["text"] and b[1]["text"] == second["text"], guess
    for told in [a, *b]:
        assert (told["drafted_tokens"] == 0) == (not guess) and told["accepted_tokens"] <= told["drafted_tokens"], told
        accepted += told["accepted_tokens"]
    for told in (alone("--max-tokens", "60", "--stop", "never comes", "--stop", stop, *guess),
                 batch("--max-tokens", "60", "--stop", stop, *guess)[0]):
        assert (told["text"], told["finish_reason"]) == (shown, "stop"), (guess, told)
    for told in (alone(*schema, *guess), batch(*schema, *guess)[0]):
        assert told["text"] == document["text"] and told["finish_reason"] == "stop", (guess, told)
    together = batch(*schema, "--stop", '"age"', "--logprobs", "1", *guess)[0]
    assert together["text"] == document["text"].split('"age"')[0] and len(together["logprobs"]) == len(together["ids"])
    assert near(alone("--max-tokens", "60", "--logprobs", "2", *guess)["logprobs"], reports), guess
    assert near(batch("--max-tokens", "60", "--logprobs", "2", *guess)[0]["logprobs"], reports), guess
    turn = chat(*guess)
    assert turn["content"] == answer["content"] and (turn["drafted_tokens"] == 0) == (not guess), (guess, turn)
    turn = chat("--json-schema", work + "/schema.json", "--max-tokens", "250", "--logprobs", "0", *guess)
    assert list(json.loads(turn["content"])) == ["name", "age"] and len(turn["logprobs"]) == turn["tokens"], (guess, turn)
assert accepted > 0
# Draws with a seed are those of the request, whatever is told of them.
drawn = ["--temperature", "1.5", "--seed", "7", "--max-tokens", "40", "--lookup"]
assert alone(*drawn)["ids"] == alone(*drawn, "--logprobs", "0")["ids"]
PYTHON
python3 "$work/check.py" "$CALDERA_BIN" "$work" || fail "see above"

# The text that is printed ends at the stop string too.
generate="$CALDERA_BIN generate --device cpu --model $work/base --prompt 1"
expect_exit 0 $generate --max-tokens 200 --json-schema "$work/schema.json" --stop '"age"'
grep -a -q '^1{.*"name"' "$work/stdout" || fail "$(cat "$work/stdout")"
grep -a -q age "$work/stdout" && fail "the stop string is printed: $(cat "$work/stdout")"

# What cannot be is refused by name.
refused() {
  code=$1 word=$2
  shift 2
  expect_exit "$code" "$@"
  grep -q -e "$word" "$work/stderr" || fail "the error does not name $word: $(cat "$work/stderr")"
}
refused 2 --logprobs $generate --logprobs 1
refused 2 --draft-tokens $generate --draft-tokens 3
refused 2 --draft-tokens "$CALDERA_BIN" serve --device cpu --model "$work/base" --draft-tokens 3
refused 2 --lookup "$CALDERA_BIN" serve --device cpu --model "$work/base" --embeddings --lookup
refused 2 --stop $generate --stop ''
refused 1 missing.json $generate --json-schema "$work/missing.json"
echo '{"not": {}}' >"$work/wrong.json"
refused 1 --json-schema $generate --json-schema "$work/wrong.json"

# Where the model's positions end a text, that is said; --max-tokens alone is what was asked for.
expect_exit 0 $generate --max-tokens 5
! grep -q 'positions are full' "$work/stderr" || fail "$(cat "$work/stderr")"
expect_exit 0 $generate --max-tokens 100000
grep -q "the model's [0-9]* positions are full" "$work/stderr" || grep -q ' tokens, stop;' "$work/stderr" ||
  fail "nothing says why the text ended: $(cat "$work/stderr")"
