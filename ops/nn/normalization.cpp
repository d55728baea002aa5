#include "ops/nn/normalization.h"

#include <fmt/core.h>

#include <string>

#include "ops/core/cast.h"
#include "ops/core/node_builder.h"
#include "ops/core/views.h"
#include "ops/elementwise/power.h"
#include "ops/reduce/mean.h"

namespace caldera {
namespace {

/// The type of the result: that of x, if it is floating.
DType result_type(const LazyTensor& x) { return is_floating(x.dtype()) ? x.dtype() : DType::f32; }

/// What is computed with. 16-bit types become f32, and the result is rounded to them once: sums of squares
/// and of exponentials would lose most digits, or overflow.
LazyTensor as_computed(const LazyTensor& x) { return astype(x, compute_type(result_type(x))); }

/// A parameter of the last `axes` axes of x.
void check_parameter(const char* op, const LazyTensor& x, const LazyTensor& parameter, int axes = 1) {
  bool fits = parameter.rank() == axes && x.rank() >= axes;
  for (int i = 1; fits && i <= axes; ++i) fits = parameter.shape(-i) == x.shape(-i);
  if (fits) return;
  throw ShapeError(fmt::format("{}: parameter {} must be one value for each element of the last {} of {}", op,
                               parameter.shape().to_string(),
                               axes == 1 ? std::string("axis") : fmt::format("{} axes", axes),
                               x.shape().to_string()));
}

/// x with the last `axes` axes as one.
LazyTensor flattened(const LazyTensor& x, int axes) {
  if (axes == 1) return x;
  Shape shape;
  for (int i = 0; i + axes < x.rank(); ++i) shape.push_back(x.shape(i));
  std::int64_t together = 1;
  for (int i = 1; i <= axes; ++i) together *= x.shape(-i);
  shape.push_back(together);
  return reshape(x, shape);
}

}  // namespace

LazyTensor rms_norm(const LazyTensor& x, double eps, const LazyTensor& weight) {
  ops::check_domain("rms_norm", ScalarDomain::floating, x.dtype());
  if (x.rank() == 0) throw ShapeError("rms_norm: () has no last axis");
  const LazyTensor y = as_computed(x);
  LazyTensor scaled = y * rsqrt(mean(y * y, -1, true) + eps);
  if (!weight.defined()) return astype(scaled, result_type(x));
  check_parameter("rms_norm", x, weight);
  return astype(scaled * weight, promote(result_type(x), weight.dtype()));
}

LazyTensor layer_norm(const LazyTensor& x, double eps, const LazyTensor& weight, const LazyTensor& bias,
                      int axes) {
  ops::check_domain("layer_norm", ScalarDomain::floating, x.dtype());
  if (axes < 1 || axes > x.rank())
    throw ShapeError(fmt::format("layer_norm: {} has no last {} axes", x.shape().to_string(), axes));
  const LazyTensor y = flattened(as_computed(x), axes);
  const LazyTensor centred = y - mean(y, -1, true);
  LazyTensor out = centred * rsqrt(mean(centred * centred, -1, true) + eps);
  DType type = result_type(x);
  if (weight.defined()) {
    check_parameter("layer_norm", x, weight, axes);
    type = promote(type, weight.dtype());
    out = out * flattened(weight, axes);
  }
  if (bias.defined()) {
    check_parameter("layer_norm", x, bias, axes);
    type = promote(type, bias.dtype());
    out = out + flattened(bias, axes);
  }
  out = astype(out, type);
  return axes == 1 ? out : reshape(out, x.shape());
}

}  // namespace caldera
