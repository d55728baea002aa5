# sh loops.sh COMPILER ROOT INCLUDE: a loop over a typed tensor's values compiles to the instructions of one over a
# pointer, and an element at constant indices to one load.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v objdump >/dev/null || exit 77

cat >"$work/loops.cpp" <<'CODE'
#include "engine/typed/typed_tensor.h"
using Values = caldera::HostValues<float, caldera::shape_of(32, 32)>;
extern "C" float typed_total(const Values& x) {
  float total = 0;
  for (const float v : x) total += v * v;
  return total;
}
extern "C" float plain_total(const float* const& x) {
  float total = 0;
  const float* const end = x + 1024;
  for (const float* v = x; v != end; ++v) total += *v * *v;
  return total;
}
extern "C" float typed_column(const Values& x) {
  float total = 0;
  for (int i = 0; i < 32; ++i) total += x(i, 5);
  return total;
}
extern "C" float plain_column(const float* const& x) {
  float total = 0;
  for (int i = 0; i < 32; ++i) total += x[i * 32 + 5];
  return total;
}
CODE
"$1" -std=c++20 -O2 -I"$2" -I"$3" -c "$work/loops.cpp" -o "$work/loops.o"

# instructions FUNCTION: without addresses, and without the order in which a comparison of two registers names them.
instructions() {
  objdump -d --no-show-raw-insn --no-addresses "$work/loops.o" |
    sed -n "/<$1>:/,/^\$/p" | sed "1d; s/$1/f/g; s/^[[:space:]]*//; s/[0-9a-f]* <f/<f/; s/^cmp .*/cmp/" | grep -v -e nop -e '^$'
}
for what in total column; do
  instructions typed_$what >"$work/typed"
  instructions plain_$what >"$work/plain"
  [ -s "$work/typed" ] || { echo "FAILED: no code of typed_$what" >&2; exit 1; }
  diff "$work/plain" "$work/typed" >&2 || { echo "FAILED: typed_$what differs from the loop over a pointer" >&2; exit 1; }
done
