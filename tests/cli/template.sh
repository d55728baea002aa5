# Conversations as the text that a model reads.
. tests/support/cli.sh

mkdir "$work/model"
cat >"$work/model/tokenizer_config.json" <<'END'
{"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template":
 "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}{{ mood }}{{ pad_token }}"}
END
echo '{"messages": [{"role": "user", "content": "Grüße"}], "add_generation_prompt": true, "mood": "!"}' >"$work/messages.json"

expect_exit 0 "$CALDERA_BIN" template --model "$work/model" --messages "$work/messages.json" --pad '<p>'
[ "$(cat "$work/stdout")" = '<s>[user]Grüße</s>[assistant]!<p>' ] || fail "$(cat "$work/stdout")"
expect_exit 0 "$CALDERA_BIN" template --model "$work/model" --messages "$work/messages.json" --bos B --json
[ "$(tr -d ' \n' <"$work/stdout")" = '{"text":"B[user]Grüße</s>[assistant]!","spans":[[7,16]]}' ] ||
  fail "$(cat "$work/stdout")"

# The list of messages alone, a template of its own, a clock that stands.
echo '[{"role": "user", "content": "Hi"}]' >"$work/list.json"
printf '{{ messages[0].content }} {{ strftime_now("%%d %%b %%Y %%H:%%M") }}' >"$work/t.jinja"
expect_exit 0 "$CALDERA_BIN" template --template "$work/t.jinja" --messages "$work/list.json" --now "2026-11-22 12:34:56"
[ "$(cat "$work/stdout")" = 'Hi 22 Nov 2026 12:34' ] || fail "$(cat "$work/stdout")"

expect_exit 2 "$CALDERA_BIN" template --template "$work/t.jinja" --messages "$work/list.json" --now "2026-02-30 12:00:00"
expect_exit 2 "$CALDERA_BIN" template --messages "$work/list.json"
expect_exit 2 "$CALDERA_BIN" template --template "$work/t.jinja"

# What fails says where.
printf 'x\n{%% if %%}' >"$work/bad.jinja"
expect_exit 1 "$CALDERA_BIN" template --template "$work/bad.jinja" --messages "$work/list.json"
expect_one_error_line
grep -q 'line 2, column' "$work/stderr" || fail "$(cat "$work/stderr")"
printf '{{ raise_exception("roles must alternate") }}' >"$work/bad.jinja"
expect_exit 1 "$CALDERA_BIN" template --template "$work/bad.jinja" --messages "$work/list.json"
grep -q 'roles must alternate' "$work/stderr" || fail "$(cat "$work/stderr")"
for wrong in '{}' '3' '{"messages": 3}' '{"messages": [], "add_generation_prompt": 1}' '['; do
  echo "$wrong" >"$work/wrong.json"
  expect_exit 1 "$CALDERA_BIN" template --template "$work/t.jinja" --messages "$work/wrong.json"
  expect_one_error_line
done
mkdir "$work/silent"
expect_exit 1 "$CALDERA_BIN" template --model "$work/silent" --messages "$work/list.json"
grep -q 'no chat template' "$work/stderr" || fail "$(cat "$work/stderr")"
