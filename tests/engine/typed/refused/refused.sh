# sh refused.sh COMPILER ROOT INCLUDE: compiles each of programs.txt, none of which may compile, and looks for the words
# that its error must have. The precompiled beginning is read once.
set -eu
compiler=$1 root=$2 include=$3
here=$root/tests/engine/typed/refused
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/begin.h" <<'CODE'
#include "engine/typed/typed.h"
using namespace caldera;
using caldera::extents::Batch;
namespace nn = caldera::typed_nn;
inline constexpr Extent Time{"Time"};
using Image = TypedTensor<float, Batch, 1, 28, 28>;
inline void takes(const Image&) {}
CODE

# A function template's body would not be compiled; this is a plain function.
compile() {
  cat >"$work/program.cpp" <<CODE
#include "begin.h"
constexpr auto singular() { return inverse(FixedTensor<double, 2, 2>{1, 2, 2, 4}); }
void program(const LazyTensor& lazy, const TypedTensor<float, Batch, 784>& x, const TypedTensor<float, 784, 10>& w,
             const TypedTensor<double, Batch, 784>& d, const TypedTensor<int, 3>& i, const TypedTensor<float, 3>& v,
             const TypedNumber<float>& n, const TypedTensor<float>& any, const Image& image) {
  $1;
  (void)lazy, (void)x, (void)w, (void)d, (void)i, (void)v, (void)n, (void)any, (void)image;
}
CODE
  "$compiler" -std=c++20 -I"$root" -I"$include" -I"$work" -fsyntax-only "$work/program.cpp" >"$work/errors" 2>&1
}

"$compiler" -std=c++20 -I"$root" -I"$include" -x c++-header "$work/begin.h" -o "$work/begin.h.gch"
# What is right does compile, or all would be refused for another reason.
compile "TypedTensor<float, Batch, 10> y = matmul(x, w); (void)y" || { cat "$work/errors" >&2; exit 1; }

count=0
while IFS='|' read -r words statement; do
  case $words in '#'* | '') continue ;; esac
  [ "$statement" != kSingular ] || statement='constexpr auto kInverse = singular(); (void)kInverse'
  if compile "$statement"; then
    echo "FAILED: this compiles: $statement" >&2
    exit 1
  fi
  grep -q -e "$words" "$work/errors" || { echo "FAILED: no '$words' for: $statement" >&2; cat "$work/errors" >&2; exit 1; }
  count=$((count + 1))
done <"$here/programs.txt"
[ "$count" -ge 25 ] || { echo "FAILED: only $count programs" >&2; exit 1; }
echo "$count programs are refused"
