#include "ops/nn/softmax.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "ops/core/along_axis.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/exponential.h"
#include "ops/reduce/extrema.h"

namespace caldera {
namespace {

/// Subtracting the maximum cannot change the result, so no gradient needs to pass through it.
LazyTensor shifted(const LazyTensor& x, int axis) { return x - stop_gradient(max(x, axis, true)); }

/// The type of the result: that of x, if it is floating.
DType softmax_type(const LazyTensor& x) { return is_floating(x.dtype()) ? x.dtype() : DType::f32; }

/// What is computed with. 16-bit types become f32, and the result is rounded to them once: sums of squares
/// and of exponentials would lose most digits, or overflow.
LazyTensor as_summed(const LazyTensor& x) { return astype(x, compute_type(softmax_type(x))); }

}  // namespace

LazyTensor softmax(const LazyTensor& x, AxisIndex axis) {
  return ops::along_axis("softmax", x, axis, [](const LazyTensor& given, int at) {
    if (given.numel() == 0) return astype(given, softmax_type(given));
    const LazyTensor e = exp(shifted(as_summed(given), at));
    return astype(e / sum(e, at, true), softmax_type(given));
  });
}

LazyTensor log_softmax(const LazyTensor& x, AxisIndex axis) {
  return ops::along_axis("log_softmax", x, axis, [](const LazyTensor& given, int at) {
    if (given.numel() == 0) return astype(given, softmax_type(given));
    const LazyTensor d = shifted(as_summed(given), at);
    return astype(d - log(sum(exp(d), at, true)), softmax_type(given));
  });
}

LazyTensor logsumexp(const LazyTensor& x, const Axes& axes, bool keepdims) {
  const Dims resolved = ops::resolve_axes(axes, x.shape(), "logsumexp");
  const LazyTensor y = as_summed(x);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool of_none =
      std::ranges::any_of(resolved, [&](std::int64_t axis) { return x.shape(static_cast<int>(axis)) == 0; });
  if (of_none) return astype(sum(y, axes, keepdims) - kInfinity, softmax_type(x));  // log(0)
  const LazyTensor highest = stop_gradient(max(y, axes, true));
  // An infinite maximum is not subtracted: inf - inf would be NaN where the limit is that infinity.
  const LazyTensor infinite = abs(highest) == kInfinity;
  const LazyTensor top = where(infinite, zeros_like(highest), highest);
  LazyTensor out = astype(log(sum(exp(y - top), axes, true)) + top, softmax_type(x));
  if (keepdims || x.rank() == 0) return out;
  std::vector<int> reduced;
  for (const std::int64_t axis : resolved) reduced.push_back(static_cast<int>(axis));
  return reduced.empty() ? out : squeeze(out, reduced);
}

LazyTensor ops::softmax_derivative(const LazyTensor& p, const LazyTensor& d, int axis) {
  return p * (d - sum(p * d, axis, true));
}

}  // namespace caldera
