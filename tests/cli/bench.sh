# `caldera bench`: its JSON and tables, its peers (played by a script), and what it refuses.
. tests/support/cli.sh

if ! "$CALDERA_BIN" bench --list >"$work/list" 2>/dev/null; then
  expect_exit 2 "$CALDERA_BIN" bench
  expect_one_error_line
  echo "SKIPPED: built without Google Benchmark" >&2
  exit 77
fi
for suite in seeds ops train; do
  grep -q "^$suite/" "$work/list" || fail "the suite $suite is empty"
done
[ "$(sort "$work/list" | uniq -d)" = "" ] || fail "a name occurs twice"

# A peer that knows its answers: every case takes 20 us. It writes down what it is asked.
cat >"$work/peer.sh" <<'END'
echo '{"ready":true,"library":"torch 0"}'
while read -r line; do
  echo "$line" >>"$work/asked"
  case $line in
    *'"do":"open"'*) echo '{"ok":true,"seconds":2e-5,"variant":"played"}' ;;
    *'"do":"run"'*) echo '{"ok":true,"seconds":2e-5}' ;;
    *) echo '{"ok":true}' ;;
  esac
done
END
export work

# result FIELD...: a field of the first result, through CMake's JSON parser: the document must be valid.
result() {
  cat >"$work/field.cmake" <<'END'
file(READ "${FILE}" document)
string(REPLACE "/" ";" path "${FIELD}")
string(JSON type ERROR_VARIABLE error TYPE "${document}" ${path})
if(error)
  message(FATAL_ERROR "${FIELD}: ${error}")
endif()
if(NOT type STREQUAL "NULL")
  string(JSON value GET "${document}" ${path})
else()
  set(value null)
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "${value}")
END
  cmake -DFILE="$work/stdout" -DFIELD="$1" -P "$work/field.cmake" || fail "no field $1"
}

# close A B: the same within rounding to four digits.
close() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0.999 * b && a < 1.001 * b) }' || fail "$1 is not $2: $3"; }

bench="$CALDERA_BIN bench --device cpu --repetitions 2 --repetition-ms 2"
expect_exit 0 $bench --suite ops --filter '^ops/elementwise/add$' --json --peer ". $work/peer.sh"
for field in name shape dtype device submit_us device_us total_us spread limit_us gb_per_s gflop_per_s peers/torch \
  ratio/torch first_us; do
  value=$(result "results/0/$field")
  case $field in
    *_us | *_per_s | peers/* | ratio/*)
      awk -v x="$value" 'BEGIN { exit !(x > 0) }' || fail "$field is $value"
      ;;
  esac
done
for field in cpu device threads limits/bandwidth limits/gflop_per_s peer; do
  [ "$(result "environment/$field")" != null ] || fail "the environment lacks $field"
done
[ "$(result results/0/name)" = ops/elementwise/add ] || fail "another case ran"
[ "$(result results/0/device)" = cpu ] || fail "on another device"
[ "$(result results/0/dtype)" = float32 ] || fail "of another type"
close "$(result results/0/peers/torch)" 20 "the peer's time"
total=$(result results/0/total_us)
close "$(result results/0/ratio/torch)" "$(awk -v t="$total" 'BEGIN { print t / 20 }')" "ratio"
# Two operands and a result of 4 Mi floats; one addition each.
close "$(result results/0/gb_per_s)" "$(awk -v t="$total" 'BEGIN { print 3 * 4 * 4194304 / t / 1e3 }')" "GB/s"
close "$(result results/0/gflop_per_s)" "$(awk -v t="$total" 'BEGIN { print 4194304 / t / 1e3 }')" "GFLOP/s"
# The peer was told which case, and was asked once a repetition in one setting.
grep -q '"op":"add"' "$work/asked" || fail "the peer was not told the case"
[ "$(grep -c '"do":"run"' "$work/asked")" -eq 2 ] || fail "the peer was not asked once a repetition"

# Cases in 16 bits: the type is in the name, the result and what the peer is asked; half the bytes; the steps of
# training alone have other types inside. A peer that lacks the type costs its figure only, by name.
for case in ops/matmul/1024 ops/softmax/named ops/rms_norm/named ops/attention/full/128 seeds/lora/lazy/32x1024/r16 \
  train/llama_3.3M/lora_step; do
  for type in "" /f16 /bf16; do
    grep -qx "$case$type" "$work/list" || fail "no case $case$type"
  done
done
for type in float16 bfloat16; do
  case $type in float16) short=f16 ;; *) short=bf16 ;; esac
  rm "$work/asked"
  expect_exit 0 $bench --suite ops --filter "^ops/softmax/named/$short\$" --json --peer ". $work/peer.sh"
  [ "$(result results/0/dtype)" = $type ] || fail "$short: of another type"
  close "$(result results/0/gb_per_s)" "$(awk -v t="$(result results/0/total_us)" 'BEGIN { print 4 * 1048576 / t / 1e3 }')" \
    "GB/s of $short"
  grep -q "\"dtype\":\"$type\"" "$work/asked" || fail "the peer was not told the type $type"
done
expect_exit 0 $bench --suite ops --filter '^ops/softmax/named/f16$' --json \
  --peer 'echo "{\"ready\":true,\"library\":\"torch 0\"}"; while read -r line; do echo "{\"ok\":false,\"error\":\"no f16\"}"; done'
[ "$(result results/0/peers)" = "{}" ] || fail "figures of a peer that lacks the type"
grep -q 'ops/softmax/named/f16: torch 0 cannot run it: no f16' "$work/stderr" || fail "the row without a peer is not named"

# Eager calls return when they are done: nothing to submit. Nodes that are only built have no limit and no peer.
expect_exit 0 $bench --suite seeds --filter 'softmax/eager/1x1024|graph/build' --json --peer none
[ "$(result results/0/submit_us)" = null ] || fail "an eager call was submitted"
[ "$(result results/1/limit_us)" = null ] || fail "building nodes has a limit"
[ "$(result results/1/peers)" = "{}" ] || fail "a peer where none was wanted"

# A peer that cannot be started, or dies at work, costs its figures only.
expect_exit 0 $bench --filter 'seeds/softmax/lazy/1x1024$' --json --peer 'exit 1'
[ "$(result results/0/peers)" = "{}" ] || fail "figures of a peer that did not start"
grep -q 'without a peer' "$work/stderr" || fail "nothing says that the peer is missing"
expect_exit 0 $bench --filter 'seeds/softmax/lazy/1x1024$' --json \
  --peer 'echo "{\"ready\":true,\"library\":\"torch 0\"}"; read -r line; exit 1'
[ "$(result results/0/peers)" = "{}" ] || fail "figures of a peer that died"
grep -q 'cannot run it' "$work/stderr" || fail "nothing says that the peer died"
hello='echo "{\"ready\":true,\"library\":\"torch 0\"}"'
expect_exit 0 $bench --filter 'seeds/softmax/lazy/1x1024$' --json \
  --peer "$hello; read -r line; echo '{\"ok\":true,\"seconds\":1e-5}'; read -r line; exit 1"
[ "$(result results/0/peers)" = "{}" ] || fail "figures of a peer that died in its first repetition"
grep -q 'torch 0 ran 0 of 2 repetitions: it has ended' "$work/stderr" || fail "nothing says that the peer died later"
# So does one whose answers are not what the protocol has: other types, no time, a time that cannot be.
for answer in '{"ok":"yes","seconds":1}' '{"ok":true,"seconds":"1"}' '{"ok":true}' '{"ok":true,"seconds":-1}' \
  '{"ok":false,"error":7}' '[]' 'ok'; do
  expect_exit 0 $bench --filter 'seeds/softmax/lazy/1x1024$' --json --peer "$hello; while read -r line; do echo '$answer'; done"
  [ "$(result results/0/peers)" = "{}" ] || fail "figures of a peer that answers $answer"
  grep -q 'torch 0 cannot run it: ' "$work/stderr" || fail "nothing says that the peer answers $answer"
done
expect_exit 0 $bench --filter 'seeds/softmax/lazy/1x1024$' --json --peer 'echo "{\"ready\":1}"; cat >/dev/null'
grep -q 'without a peer: it gave no reason' "$work/stderr" || fail "a peer whose greeting is of another type"
expect_exit 0 timeout 60 $bench --filter 'seeds/softmax/lazy/1x1024$' --json --peer "$hello; exec cat /dev/zero"
grep -q 'cannot run it: its answer has no end' "$work/stderr" || fail "a peer that writes on and on is waited for"

# Tokens a second: models of random weights, in files that are gone afterwards. Shares are those of rates that the
# environment has, for each number of threads.
"$CALDERA_BIN" bench --suite decode --list >"$work/decode" 2>/dev/null
for type in f32 f16 bf16 q8_0 q4_0 q4_k q6_k mxfp4; do
  for row in prefill/128 prefill/512 token/0/x1 token/0/x16 token/2048/x4; do
    for model in 110M 1.2B; do
      grep -qx "decode/$model/$type/$row/t1" "$work/decode" || fail "no row $model/$type/$row"
    done
  done
done
mkdir "$work/temporary"
expect_exit 0 env TMPDIR="$work/temporary" OMP_NUM_THREADS=2 $bench --suite decode --json \
  --filter '^decode/stories260K/(f32/prefill/128/t1|q8_0/token/0/x1/t1|q4_0/token/0/x4/t2)$'
[ "$(ls -A "$work/temporary")" = "" ] || fail "files of models are left"
for i in 0 1 2; do
  case $(result results/$i/name) in
    decode/stories260K/f32/prefill/128/t1) tokens=128 threads=1 of="peak of floats" ;;
    decode/stories260K/q8_0/token/0/x1/t1) tokens=1 threads=1 of="read bandwidth" one=$i ;;
    decode/stories260K/q4_0/token/0/x4/t2) tokens=4 threads=2 of="read bandwidth" ;;
    *) fail "another row ran" ;;
  esac
  close "$(result results/$i/tokens_per_s)" \
    "$(awk -v n=$tokens -v t="$(result results/$i/total_us)" 'BEGIN { print 1e6 * n / t }')" "tokens a second"
  [ "$(result results/$i/share_of)" = "$of" ] || fail "row $i: a share of something else"
  awk -v x="$(result results/$i/share)" 'BEGIN { exit !(x > 0 && x < 2) }' || fail "row $i: its share is $(result results/$i/share)"
  [ "$(result results/$i/threads)" = $threads ] || fail "row $i: of another number of threads"
done
for field in limits/read_bandwidth limits_of_threads/1/read_bandwidth limits_of_threads/1/gflop_per_s; do
  [ "$(result "environment/$field")" != null ] || fail "the environment lacks $field"
done
# A processor computes with integers of 8 bits no slower than with floats, and no chain of its loops is left out.
if [ "$(result environment/limits/integer_gop_per_s)" != null ]; then
  awk -v i="$(result environment/limits/integer_gop_per_s)" -v f="$(result environment/limits/gflop_per_s)" \
    'BEGIN { exit !(i > 0.6 * f && i < 9 * f) }' || fail "the peak of integers is $(result environment/limits/integer_gop_per_s)"
fi
# 204 thousand weights of 8 bits and their scales; one matrix a layer, whose rows are no blocks, in f16; norms are floats.
weights=$(awk -v t="$(result results/$one/total_us)" -v g="$(result results/$one/gb_per_s)" 'BEGIN { print g * t * 1e3 }')
close "$weights" 329952 "bytes that a token reads"
expect_exit 1 env TMPDIR="$work/nowhere" $bench --suite decode --filter '^decode/stories260K/f32/prefill/128/t1$'
grep -q TMPDIR "$work/stderr" || fail "nothing says what to do where there is no room"

# llama.cpp beside them: a program that answers as its llama-bench did, 7.3 ms a run, and writes down what it is asked.
# A text's tokens come one by one; several texts side by side it does not have, and an old one no context.
mkdir "$work/path"
cat >"$work/path/llama-bench" <<'END'
#!/bin/sh
if [ "$1" = --help ]; then
  echo "  -p, --n-prompt <n>                        (default: 512)"
  [ -e "$work/old" ] || echo "  -d, --n-depth <n>                         (default: 0)"
  exit 0
fi
echo "$*" >>"$work/asked"
[ "$(head -c 4 "$2")" = GGUF ] || exit 1
if [ -e "$work/broken" ]; then
  echo "main: error: failed to load model" >&2
  exit 1
fi
echo "load_backend: loaded CPU backend" >&2
cat <<'JSON'
[
  {
    "build_commit": "c392e50", "build_number": 4751, "cpu_info": "AMD EPYC", "gpu_info": "", "backends": "CPU",
    "model_type": "llama ?B Q8_0", "model_size": 329952, "model_n_params": 260032, "n_batch": 2048, "n_ubatch": 512,
    "n_threads": 2, "type_k": "f16", "type_v": "f16", "n_gpu_layers": 0, "use_mmap": true,
    "n_prompt": 0, "n_gen": 32, "test_time": "2026-11-28T04:20:50Z",
    "avg_ns": 7305036, "stddev_ns": 0, "avg_ts": 4380.539672, "stddev_ts": 0.000000,
    "samples_ns": [ 7305036 ],
    "samples_ts": [ 4380.54 ]
  }
]
JSON
END
chmod +x "$work/path/llama-bench"
: >"$work/asked"
export PATH="$work/path:$PATH"
bench_llama="env TMPDIR=$work/temporary OMP_NUM_THREADS=1 $bench --suite decode --json"
expect_exit 0 $bench_llama --threads 2 --peer llama.cpp \
  --filter '^decode/stories260K/q8_0/(prefill/128/t2|token/0/x1/t1|token/0/x4/t1|token/2048/x1/t1)$'
for i in 0 1 2 3; do
  case $(result results/$i/name) in
    */prefill/*) peer=7305.036 asked="-t 2 -p 128 -n 0 -ngl 0 -r 1" ;;
    */token/0/x1/*) peer=228.28 asked="-t 1 -p 0 -n 32 -ngl 0 -r 1" ;;
    */token/2048/*) peer=228.28 asked="-t 1 -p 0 -n 32 -ngl 0 -d 2048 -r 1" ;;
    *) peer='' ;;
  esac
  if [ -z "$peer" ]; then
    [ "$(result results/$i/peers)" = "{}" ] || fail "several texts have a figure of llama.cpp"
    continue
  fi
  close "$(result results/$i/peers/llama.cpp)" $peer "time of llama.cpp"
  close "$(result results/$i/ratio/llama.cpp)" "$(awk -v t="$(result results/$i/total_us)" -v p=$peer 'BEGIN { print t / p }')" \
    "ratio to llama.cpp"
  grep -q -e "-o json $asked\$" "$work/asked" || fail "llama-bench was not asked for $asked"
done
# Of each row a trial, and its turns in two repetitions.
[ "$(wc -l <"$work/asked")" -eq 9 ] || fail "llama-bench was started $(wc -l <"$work/asked") times"
! grep -q load_backend "$work/stderr" || fail "what llama-bench says is mixed with what bench says"

# Without it, or with one that is too old or fails, the figures of this engine are there, and a line says why.
one='^decode/stories260K/q8_0/token/0/x1/t1$'
touch "$work/old"
expect_exit 0 $bench_llama --peer "llama.cpp=$work/path/llama-bench" --filter '^decode/stories260K/q8_0/token/2048/x1/t1$'
grep -q 'has no --n-depth' "$work/stderr" || fail "nothing says that llama-bench is too old"
[ "$(result results/0/peers)" = "{}" ] || fail "a context that llama-bench has not"
touch "$work/broken"
expect_exit 0 $bench_llama --peer llama.cpp --filter "$one"
grep -q 'cannot run it: main: error: failed to load model' "$work/stderr" || fail "nothing says why llama-bench failed"
expect_exit 0 $bench_llama --peer "llama.cpp=$work/none" --filter "$one"
[ "$(grep -c 'without a peer: .*/none: No such file.*--peer llama.cpp=PATH' "$work/stderr")" -eq 1 ] || fail "nothing says that llama-bench is missing"
[ "$(result results/0/tokens_per_s)" != null ] || fail "no figure without a peer"
expect_exit 0 $bench_llama --peer llama.cpp=true --filter "$one"
grep -q 'true: is no llama-bench' "$work/stderr" || fail "another program passes for llama-bench"
expect_exit 0 $bench --suite seeds --filter '^seeds/graph/replay/8$' --peer llama.cpp
grep -q 'llama-bench runs none of these cases' "$work/stderr" || fail "nothing says that llama-bench has no such case"

# A baseline: the ratio to the peer, or to the limit, is held against it. What has lost is measured three times, and is
# then an error that names it; what the baseline does not know is none.
row='seeds/softmax/lazy/1x1024'
bound=
for _ in 1 2 3; do # what else runs may hold up the kernel of a try
  [ "$bound" != overhead ] || break
  expect_exit 0 $bench --filter "^$row\$" --peer ". $work/peer.sh" --save-baseline "$work/baseline.json" --json
  bound=$(result results/0/bound_by)
done
torch=$(result results/0/ratio/torch)
[ "$bound" = overhead ] || fail "a row of 4 KiB is bound by $bound"
written=$(sed -n 's/.*"torch": *\([0-9.e+-]*\).*/\1/p' "$work/baseline.json")
awk -v a="$written" -v b="$torch" 'BEGIN { exit !(a > 0.99 * b && a < 1.01 * b) }' || fail "the baseline has $written, not $torch"
printf '{"rows": {"%s": {"torch": 1e9, "limit": 1e-9}, "gone": {"torch": 1}}}' $row >"$work/easy.json"
expect_exit 0 $bench --filter "^$row\$" --peer ". $work/peer.sh" --check "$work/easy.json" --json
[ "$(result check/slower)" = "[]" ] || fail "a row that a peer finds faster has lost"
printf '{"rows": {"%s": {"torch": 1e-9}, "seeds/softmax/eager/1x1024": {"limit": 1e-9}}}' $row >"$work/hard.json"
expect_exit 1 $bench --filter '^seeds/softmax/(lazy|eager)/1x1024$' --peer ". $work/peer.sh" --check "$work/hard.json" --json
[ "$(grep -c 'once more$' "$work/stderr")" -eq 4 ] || fail "rows that had lost were not measured three times"
[ "$(result check/slower/1/of)$(result check/slower/0/of)" = torchlimit ] || [ "$(result check/slower/0/of)$(result check/slower/1/of)" = torchlimit ] ||
  fail "what the rows are measured by"
grep -q "2 of 2 rows are more than 15 % slower than $work/hard.json" "$work/stderr" || fail "nothing says what has lost"
expect_exit 1 $bench --filter '^seeds/graph/replay/8$' --peer none --check "$work/hard.json" --json
grep -q 'compared nothing' "$work/stderr" || fail "nothing says that no row was compared"
[ "$(result check/not_in_baseline/0)" = seeds/graph/replay/8 ] || fail "a row that the baseline has not is not named"
for text in '{}' '[]' '{"rows": 1}' '{"rows": {"a": 1}}' '{"rows": {"a": {"torch": "1"}}}' '{"rows": {"a": {"torch": -1}}}' '{'; do
  printf '%s' "$text" >"$work/bad.json"
  expect_exit 1 $bench --filter '^seeds/graph/replay/8$' --peer none --check "$work/bad.json"
  expect_one_error_line
done
printf '{\n "rows": {\n  "a": {"torch": 1,,}\n' >"$work/bad.json"
expect_exit 1 $bench --filter '^seeds/graph/replay/8$' --peer none --check "$work/bad.json"
grep -q "$work/bad.json: it is no JSON: .* line 3, column 20: " "$work/stderr" || fail "nothing says where a baseline is at fault"
expect_exit 1 $bench --filter '^seeds/graph/replay/8$' --check "$work/none.json"
expect_one_error_line
(cd "$work" && expect_exit 1 $bench --filter '^seeds/graph/replay/8$' --check)
grep -q benches/baseline.json "$work/stderr" || fail "--check alone does not read benches/baseline.json"

# Tables: aligned on standard output, and in a file between its marks.
printf 'before\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nafter\n' >"$work/page.md"
expect_exit 0 $bench --filter 'seeds/graph/replay/8$' --peer ". $work/peer.sh" --markdown "$work/page.md"
[ "$(awk '{ print length($0) }' "$work/stdout" | sort -u | wc -l)" -eq 1 ] || fail "the table is not aligned"
grep -q '^seeds/graph/replay/8 ' "$work/stdout" || fail "the table lacks its row"
[ "$(head -n 1 "$work/page.md")$(tail -n 1 "$work/page.md")" = beforeafter ] || fail "the page lost its text"
grep -q '^| graph/replay/8 ' "$work/page.md" || fail "the page lacks its row"
! grep -q '^old' "$work/page.md" || fail "the page kept its old table"
# Every suite has a table, and marks that stand elsewhere are text of the page.
printf '<!-- bench:end -->\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nafter\n' >"$work/page.md"
expect_exit 0 $bench --suite graph --filter 'plan/deep/1000$' --peer none --markdown "$work/page.md"
grep -q '^| plan/deep/1000 ' "$work/page.md" || fail "the page lacks the row of the suite graph"
[ "$(tail -n 1 "$work/page.md")" = after ] || fail "the page lost what follows its tables"
echo plain >"$work/plain.md"
expect_exit 1 $bench --filter replay/8 --markdown "$work/plain.md"
expect_one_error_line

# A picture of the rows that have a peer; a place that cannot be written to is found before anything is measured.
expect_exit 0 $bench --filter 'seeds/graph/replay/(1|8)$' --peer ". $work/peer.sh" --picture "$work/rows.svg"
python3 - "$work/rows.svg" <<'EOF' || fail "the picture lacks rows"
import sys, xml.etree.ElementTree as tree
svg = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
titles = [title.text for title in root.iter(svg + "title")]
assert len(titles) == 2 and all(t.startswith("seeds/graph/replay/") and "peer" in t or "us" in t for t in titles), titles
assert "seeds/graph" in [text.text for text in root.iter(svg + "text")]
EOF
for flag in --picture --save-baseline; do
  expect_exit 1 $bench --filter 'seeds/graph/replay/8$' "$flag" "$work/none/file"
  expect_one_error_line
  ! grep -q measuring "$work/stderr" || fail "$flag: measured before it looked where to write"
done

for flags in "--suite nonsense" "--repetitions 0" "--repetitions x" "--repetition-ms 0" "--filter (" \
  "--filter no-such-case" "--suite train --filter ^ops" "--device gpu" "--device null" "--nonsense"; do
  expect_exit 2 "$CALDERA_BIN" bench $flags
  expect_one_error_line
  [ ! -s "$work/stdout" ] || fail "output on standard output: $flags"
done
for flag in --markdown --picture --save-baseline --peer; do
  expect_exit 2 $bench --filter 'seeds/graph/replay/8$' "$flag" ""
  expect_one_error_line
done
