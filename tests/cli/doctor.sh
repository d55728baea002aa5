# caldera doctor: a whole examination of the CPU, its JSON and its report; of Vulkan, where there is a device, the
# families that need few kernels.
. tests/support/cli.sh

expect_exit 0 "$CALDERA_BIN" doctor --device cpu --json
for part in '"device":"cpu"' '"failed":0' '"skipped":\[{"name":"' '"reason":"' '"worst":\[{"name":"' '"error":' '"tolerance":'; do
  grep -q "$part" "$work/stdout" || fail "the document has no $part"
done
checks=$(json_number checks "$work/stdout")
[ "$checks" -ge 300 ] || fail "only $checks checks"
grep -q 'doctor: attention: [0-9]* checks, 0 failed' "$work/stderr" || fail "no progress on standard error"

expect_exit 0 "$CALDERA_BIN" doctor --device cpu --filter transfers
for part in 'right: *[1-9]' 'wrong: *0' 'missing: *1' 'transfers by staging: the CPU'; do
  grep -q "$part" "$work/stdout" || fail "the report has no '$part'"
done

expect_exit 2 "$CALDERA_BIN" doctor --device cpu --filter nonsense
grep -q 'nonsense' "$work/stderr" || fail "the error does not quote the filter"

require_vulkan
for family in transfers replay memory; do
  expect_exit 0 "$CALDERA_BIN" doctor --device vulkan:0 --filter $family --json
  grep -q '"failed":0' "$work/stdout" || fail "$family fails"
done

# A way to compute products is examined, or its absence is explained.
expect_exit 0 "$CALDERA_BIN" doctor --device vulkan:0 --filter 'products: cooperative' --json
grep -q '"name":"products: cooperative-[0-9]*\(: [a-zA-Z]\|","reason":"[a-z]\)' "$work/stdout" ||
  fail "no word of cooperative products: $(cat "$work/stdout")"
grep -q 'doctor: products: cooperative-[0-9]*: [0-9]* checks, 0 failed' "$work/stderr" || fail "no progress of a way's products"
