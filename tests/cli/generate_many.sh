# Prompts of a file together, and tokens that are guessed ahead: the same texts as one by one.
. tests/support/cli.sh
. tests/support/tiny_model.sh
make_model
model="--device cpu --model $work/base --max-tokens 20"

# ids FILE: the lists of drawn ids in it, one a line.
ids() { tr -d '\n ' <"$1" | grep -o '"ids":\[[0-9,]*\]'; }

printf '1 plus\n\n2 plus 2\n' >"$work/prompts.txt"
printf '"1 plus"\n{"prompt": "2 plus 2"}\n' >"$work/prompts.jsonl"
: >"$work/expected"
for prompt in "1 plus" "2 plus 2"; do
  expect_exit 0 "$CALDERA_BIN" generate --json $model --prompt "$prompt"
  ids "$work/stdout" >>"$work/expected"
  cp "$work/stdout" "$work/alone"
  for flags in --lookup "--draft-model $work/base" "--draft-model $work/base --draft-tokens 1"; do
    expect_exit 0 "$CALDERA_BIN" generate --json $model --prompt "$prompt" $flags
    [ "$(ids "$work/stdout")" = "$(ids "$work/alone")" ] || fail "$flags: another text"
  done
  grep -q '"accepted_tokens": *0' "$work/stdout" && fail "a model does not agree with itself"
done
for file in prompts.txt prompts.jsonl; do
  for batch in 1 2; do
    expect_exit 0 "$CALDERA_BIN" generate --json $model --batch "$work/$file" --max-batch $batch
    ids "$work/stdout" | cmp - "$work/expected" || fail "$file, $batch at a time: other texts"
  done
done
expect_exit 0 "$CALDERA_BIN" generate $model --batch "$work/prompts.txt"
grep -q '^1 plus' "$work/stdout" || fail "the texts do not begin with their prompts"

# From a file and from standard input, whose last line's end is none of the prompt.
printf '2 plus 2\n' >"$work/prompt.txt"
expect_exit 0 "$CALDERA_BIN" generate --json $model --prompt-file "$work/prompt.txt"
[ "$(ids "$work/stdout")" = "$(tail -n 1 "$work/expected")" ] || fail "--prompt-file: another text"
printf '2 plus 2' | "$CALDERA_BIN" generate --json $model --prompt-file - >"$work/stdout" || fail "--prompt-file -"
[ "$(ids "$work/stdout")" = "$(tail -n 1 "$work/expected")" ] || fail "standard input: another text"
expect_exit 0 "$CALDERA_BIN" generate $model -f "$work/prompt.txt"
grep -a -q '^2 plus 2' "$work/stdout" || fail "the text does not begin with its prompt"
"$CALDERA_BIN" generate --json $model --batch - <"$work/prompts.txt" >"$work/stdout" || fail "--batch -"
ids "$work/stdout" | cmp - "$work/expected" || fail "--batch -: other texts"
for command in "tokenize --json" "embed --json"; do
  [ "$command" = "embed --json" ] && flags="--device cpu --pooling mean" || flags=
  "$CALDERA_BIN" $command $flags --model "$work/base" --file - <"$work/prompts.txt" >"$work/piped" || fail "$command --file -"
  "$CALDERA_BIN" $command $flags --model "$work/base" --file "$work/prompts.txt" | cmp - "$work/piped" || fail "$command: another text"
done
expect_exit 1 "$CALDERA_BIN" generate $model --prompt-file "$work/absent"
expect_one_error_line
expect_exit 2 "$CALDERA_BIN" generate $model --prompt a --prompt-file "$work/prompt.txt"

expect_exit 2 "$CALDERA_BIN" generate $model --prompt a --batch "$work/prompts.txt"
expect_exit 2 "$CALDERA_BIN" generate $model --prompt a --lookup --draft-model "$work/base"
expect_exit 2 "$CALDERA_BIN" generate $model --batch "$work/prompts.txt" --logits "$work/logits"
printf '{"text": "a"}\n' >"$work/wrong.jsonl"
expect_exit 1 "$CALDERA_BIN" generate $model --batch "$work/wrong.jsonl"
grep -q 'wrong.jsonl:1' "$work/stderr" || fail "the line is not named: $(cat "$work/stderr")"
: >"$work/empty.txt"
expect_exit 1 "$CALDERA_BIN" generate $model --batch "$work/empty.txt"
sed -e s/258/256/ -e s/\"bos_token_id\":\ 256,// -e s/\"eos_token_id\":\ 257,// "$work/config.json" >"$work/other.json"
expect_exit 0 "$CALDERA_BIN" pretrain --device cpu --config "$work/other.json" --data "$work/data" --out "$work/other" \
  --iterations 1 --seed 1
expect_exit 1 "$CALDERA_BIN" generate $model --prompt a --draft-model "$work/other"
grep -q vocabulary "$work/stderr" || fail "the error does not name the vocabulary: $(cat "$work/stderr")"
