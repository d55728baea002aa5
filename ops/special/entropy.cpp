#include "ops/special/entropy.h"

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/infinity.h"
#include "ops/elementwise/real_function.h"

namespace caldera {
namespace {

LazyTensor entr_slope(const LazyTensor& x, const LazyTensor&) { return -(1 + log(x)); }
const OpDef kEntr = ops::sloped<entr_slope>("entr");

}  // namespace

LazyTensor entr(const LazyTensor& x) {
  return ops::real_function(x, [](const LazyTensor& y) {
    const LazyTensor value = -y * log(where(y > 0, y, ones_like(y)));
    const LazyTensor limited = where(y < 0, full_like(y, -kInfinity), where(y == 0, zeros_like(y), value));
    return ops::with_slope(kEntr, where(y == kInfinity, full_like(y, -kInfinity), limited), y);
  });
}

LazyTensor xlog1py(const LazyTensor& x, const LazyTensor& y) {
  return ops::real_function("xlog1py", x, y, [](const LazyTensor& a, const LazyTensor& b) {
    const LazyTensor is_limit = logical_and(a == 0, logical_or(b <= -1, b == kInfinity));
    return a * log1p(where(is_limit, zeros_like(b), b));
  });
}

}  // namespace caldera
