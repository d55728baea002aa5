# A conversation with a model: lines in, answers out.
. tests/support/cli.sh
. tests/support/tiny_model.sh

make_model
model=$work/base
chat() { "$CALDERA_BIN" chat --model "$model" --device cpu --max-tokens 6 "$@" >"$work/stdout" 2>"$work/stderr"; }
refused_with() {
  text=$1
  shift
  code=0
  chat "$@" </dev/null || code=$?
  [ "$code" -eq 1 ] || fail "exit code $code: $*"
  expect_one_error_line
  grep -q "$text" "$work/stderr" || fail "the error does not say '$text': $(cat "$work/stderr")"
}

refused_with 'no chat template'
cat >"$model/tokenizer_config.json" <<'END'
{"chat_template": "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}{{ end }}{% if messages[0].role == 'system' and messages|length > 4 %}{{ raise_exception('enough') }}{% endif %}"}
END

# One object a turn, and what was said before counts: system 2, then user 3, answer 1 + 6 and user 3 bytes.
printf 'hi\nyo\n' | chat --json --system S
[ "$(wc -l <"$work/stdout")" -eq 2 ] || fail "$(cat "$work/stdout")"
grep -q '^{"role":"assistant","content":".*","finish_reason":"length","prompt_tokens":5,.*"tokens":6,' "$work/stdout" ||
  fail "$(cat "$work/stdout")"
# The same conversation gives the same answers, whatever of it is computed again.
cp "$work/stdout" "$work/first"
printf 'no\n/reset\nhi\nyo\n/undo\nyo\n' | chat --json --system S
sed -n '2,3p' "$work/stdout" | cut -d , -f 1-4 >"$work/second"
cut -d , -f 1-4 "$work/first" | cmp -s - "$work/second" || fail "$(cat "$work/first" "$work/stdout")"

# A conversation is saved and gone on from; a line that ends in a backslash goes on.
printf 'a\\\nb\n/save %s\n' "$work/saved.json" | chat
tr -d ' \n' <"$work/saved.json" | grep -q '^\[{"role":"user","content":"a\\nb"},{"role":"assistant",' ||
  fail "$(cat "$work/saved.json")"
printf '/load %s\nmore\n' "$work/saved.json" | chat --json
grep -q '"prompt_tokens":16,' "$work/stdout" || fail "$(cat "$work/stdout")"

# Variables go into the template.
echo x | chat --json --chat-template-kwargs '{"end": "1234"}'
grep -q '"prompt_tokens":6,' "$work/stdout" || fail "$(cat "$work/stdout")"
expect_exit 2 "$CALDERA_BIN" chat --model "$model" --chat-template-kwargs 3

# What does not work out ends a script with one line.
printf 'a\nb\nc\n' >"$work/lines"
code=0
chat --system S <"$work/lines" || code=$?
[ "$code" -eq 1 ] || fail "exit code $code"
grep -q 'enough' "$work/stderr" || fail "$(cat "$work/stderr")"
code=0
echo '0123456789012345678901234567890123456789012345678901234567890123456789' | chat || code=$?
[ "$code" -eq 1 ] || fail "exit code $code"
grep -q 'context' "$work/stderr" || fail "$(cat "$work/stderr")"
refused_with 'positions' --context 65
