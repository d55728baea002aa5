# What `caldera fit` says fits does, and a little more does not; `explain --task train` tells what limits cost.
# shellcheck source=tests/support/cli.sh
. tests/support/cli.sh
# shellcheck source=tests/support/tiny_model.sh
. tests/support/tiny_model.sh

make_model

"$CALDERA_BIN" fit --model "$work/base" --memory-limit 600KiB --batch-size 4 --seq-len 32 --json >"$work/fit.json"
longest=$(sed -n "s/.*\"longest_seq_len\":\([0-9]*\).*/\1/p" "$work/fit.json")
rows=$(sed -n "s/.*\"largest_batch\":\([0-9]*\).*/\1/p" "$work/fit.json")
[ "$longest" -gt 0 ] || fail "nothing fits"
[ "$longest" -lt 64 ] || fail "the limit bounds nothing: $longest tokens"
[ "$rows" -gt 0 ] || fail "no batch fits"
"$CALDERA_BIN" fit --model "$work/base" --memory-limit 600KiB --batch-size 4 | grep -q "longest text: *$longest tokens" ||
  fail "the text says another length"
if "$CALDERA_BIN" fit --model "$work/base" 2>"$work/error"; then fail "fits without a limit"; fi
grep -q -- "--memory-limit" "$work/error" || fail "does not ask for --memory-limit"

"$CALDERA_BIN" explain --model "$work/base" --task train --batch-size 4 --seq-len 64 --memory-limit 1500KiB \
  --html "$work/page.html" --json >"$work/explain.json"
grep -q '"least_bytes"\|"peak_bytes"' "$work/explain.json" || fail "no limits in the document"
grep -q 'class="cal-curve"' "$work/page.html" || fail "no picture of the limits in the page"
if "$CALDERA_BIN" explain --model "$work/base" --task decode --memory-limit 1MiB 2>"$work/error"; then
  fail "--memory-limit goes with decode"
fi

# A limit below what is in use is told, not run into.
"$CALDERA_BIN" fit --model "$work/base" --memory-limit 100KiB >"$work/stdout" || fail "does not say that nothing fits"
grep -q "not even one token" "$work/stdout" || fail "does not say that nothing fits"
"$CALDERA_BIN" explain --model "$work/base" --task train --batch-size 1 --seq-len 8 --memory-limit 4MiB >"$work/stdout" ||
  fail "limits below what the weights take end the table"
grep -q "at least .* is needed" "$work/stdout" || fail "no limit is too low"
