# benches/gpu.sh: what it packs runs by itself, every stage is run and judged, and nothing fails in silence.
. tests/support/cli.sh

tree=$(cd "$(dirname "$CALDERA_BIN")/.." && pwd)
for program in test_device test_ops test_gpu; do
  if [ ! -x "$tree/tests/$program" ]; then
    echo "SKIPPED: $program is not built" >&2
    exit 77
  fi
done
if ! "$CALDERA_BIN" bench --list >/dev/null 2>&1; then
  echo "SKIPPED: caldera is built without benchmarks (libbenchmark-dev)" >&2
  exit 77
fi
if ldd "$CALDERA_BIN" | grep -q 'lib[at]san'; then
  echo "SKIPPED: sanitizers' libraries are not for bundles" >&2
  exit 77
fi

expect_exit 0 env CALDERA_BUILD="$tree" sh benches/gpu.sh build --no-compile "$work/bundle.tar.gz"
bytes=$(wc -c <"$work/bundle.tar.gz")
[ "$bytes" -lt $((60 * 1024 * 1024)) ] || fail "the bundle has $bytes bytes"
tar -C "$work" -xzf "$work/bundle.tar.gz"
bundle=$work/caldera-gpu

# Of the machine's libraries the programs need only the C library's.
for program in "$bundle"/bin/*; do
  ldd "$program" | grep '=> /' | grep -v "=> $bundle/" >"$work/outside" || true
  if grep -vE '/(libc|libm|libmvec|libdl|libpthread|librt)\.so' "$work/outside" >&2; then
    fail "$program needs more of the machine than its C library"
  fi
done
# They start with the packed C library, too: for machines whose own is older.
# Set, the variable keeps the program from starting itself once more, which would start the loader alone.
expect_exit 0 env GOMP_SPINCOUNT=10000 "$bundle"/lib/libc/ld-linux* --library-path "$bundle/lib/libc:$bundle/lib" \
  "$bundle/bin/caldera" --version
grep -q '^caldera ' "$work/stdout" || fail "the packed C library does not start caldera"

# A bare environment. Without Vulkan the CPU is examined, and the bundle says that there is no GPU.
run="env -i PATH=/usr/bin:/bin HOME=$work sh $bundle/gpu.sh run --quick"
if "$CALDERA_BIN" devices --json | grep -q '"id":"vulkan'; then device=vulkan; else device=cpu; fi
expect_exit 0 $run --device $device --out "$work/results"
for file in doctor.json tests.txt bench.json performance.md summary.txt devices.json; do
  [ -s "$work/results/$file" ] || fail "no $file"
done
grep -q '^ok .*doctor: [0-9][0-9]* checks, 0 failed' "$work/results/summary.txt" || fail "no doctor in the summary"
grep -q '^ok .*bench' "$work/results/summary.txt" || fail "no bench in the summary"
grep -q 'softmax/named' "$work/results/performance.md" || fail "no figures in performance.md"
grep -q '"failed":0' "$work/results/doctor.json" || fail "doctor.json does not say that nothing failed"

# A machine with a driver and no loader gets the packed one; one without a driver is told so.
if [ $device = vulkan ]; then
  [ -s "$bundle/lib/vulkan/libvulkan.so.1" ] || fail "no loader in the bundle"
  mkdir "$work/no-loader"
  # Needs a library that does not exist, and stands in the way of the machine's own.
  for name in libvulkan.so.1 libvulkan.so; do
    LC_ALL=C sed 's/libc\.so\.6/libq.so.6/g' "$bundle/lib/vulkan/libvulkan.so.1" >"$work/no-loader/$name"
  done
  expect_exit 0 env -i PATH=/usr/bin:/bin HOME="$work" LD_LIBRARY_PATH="$work/no-loader" sh "$bundle/gpu.sh" devices
  grep -q 'with the packed loader' "$work/stdout" || fail "the packed loader is not used"
  grep -q 'vulkan:0' "$work/stdout" || fail "the packed loader finds no device"
  expect_exit 1 env -i PATH=/usr/bin:/bin HOME="$work" VK_ICD_FILENAMES="$work/none.json" VK_DRIVER_FILES="$work/none.json" \
    sh "$bundle/gpu.sh" devices
  grep -q "no driver of these gives a device.*none.json" "$work/stdout" || fail "no word of the missing driver"
fi

# A program that crashes, one that is not there, a device that does not exist: each is named, the others go on.
printf '#!/bin/sh\nkill -SEGV $$\n' >"$bundle/bin/test_ops"
rm "$bundle/bin/test_gpu"
expect_exit 1 $run --device vulkan:77 --out "$work/broken"
for line in 'FAILED  doctor' 'FAILED  test_ops (crashed' 'FAILED  test_gpu' 'ok      test_device' 'FAILED  bench' \
  'stages failed'; do
  grep -q "$line" "$work/broken/summary.txt" || {
    cat "$work/broken/summary.txt" >&2
    fail "the summary lacks: $line"
  }
done

expect_exit 2 sh benches/gpu.sh
expect_exit 2 sh benches/gpu.sh run --nonsense
expect_exit 1 sh benches/gpu.sh run
