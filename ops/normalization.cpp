// Softmax and its relatives, RMSNorm, LayerNorm, gates: composites of primitives.
#include <fmt/core.h>

#include <limits>

#include "ops/build.h"

namespace caldera {
namespace {

/// Subtracting the maximum cannot change the result, so no gradient needs to pass through it.
LazyTensor shifted(const LazyTensor& x, int axis) { return x - stop_gradient(max(x, axis, true)); }

/// The type of the result: that of x, if it is floating.
DType result_type(const LazyTensor& x) { return is_floating(x.dtype()) ? x.dtype() : DType::f32; }

/// What is computed with. 16-bit types become f32, and the result is rounded to them once: sums of squares
/// and of exponentials would lose most digits, or overflow.
LazyTensor as_computed(const LazyTensor& x) { return astype(x, compute_type(result_type(x))); }

void check_parameter(const char* op, const LazyTensor& x, const LazyTensor& parameter) {
  if (parameter.rank() != 1 || x.rank() == 0 || parameter.shape(0) != x.shape(-1)) {
    throw ShapeError(fmt::format("{}: parameter {} must be one value for each element of the last axis of {}",
                                 op, parameter.shape().to_string(), x.shape().to_string()));
  }
}

}  // namespace

LazyTensor softmax(const LazyTensor& x, int axis) {
  if (x.numel() == 0) return astype(x, result_type(x));
  const int at = x.shape().normalize_axis(axis, "softmax");
  const LazyTensor e = exp(shifted(as_computed(x), at));
  return astype(e / sum(e, at, true), result_type(x));
}

LazyTensor log_softmax(const LazyTensor& x, int axis) {
  if (x.numel() == 0) return astype(x, result_type(x));
  const int at = x.shape().normalize_axis(axis, "log_softmax");
  const LazyTensor d = shifted(as_computed(x), at);
  return astype(d - log(sum(exp(d), at, true)), result_type(x));
}

LazyTensor logsumexp(const LazyTensor& x, int axis, bool keepdims) {
  const int at = x.shape().normalize_axis(axis, "logsumexp");
  const LazyTensor y = as_computed(x);
  const LazyTensor highest = stop_gradient(max(y, at, true));
  // An infinite maximum is not subtracted: inf - inf would be NaN where the limit is that infinity.
  const LazyTensor infinite = abs(highest) == std::numeric_limits<double>::infinity();
  const LazyTensor top = where(infinite, zeros_like(highest), highest);
  const LazyTensor out = astype(log(sum(exp(y - top), at, true)) + top, result_type(x));
  return keepdims ? out : squeeze(out, at);
}

LazyTensor rms_norm(const LazyTensor& x, double eps, const LazyTensor& weight) {
  const LazyTensor y = as_computed(x);
  LazyTensor scaled = y * rsqrt(mean(y * y, -1, true) + eps);
  if (!weight.defined()) return astype(scaled, result_type(x));
  check_parameter("rms_norm", x, weight);
  return astype(scaled * weight, promote(result_type(x), weight.dtype()));
}

LazyTensor layer_norm(const LazyTensor& x, double eps, const LazyTensor& weight, const LazyTensor& bias) {
  const LazyTensor y = as_computed(x);
  const LazyTensor centred = y - mean(y, -1, true);
  LazyTensor out = centred * rsqrt(mean(centred * centred, -1, true) + eps);
  DType type = result_type(x);
  if (weight.defined()) {
    check_parameter("layer_norm", x, weight);
    type = promote(type, weight.dtype());
    out = out * weight;
  }
  if (bias.defined()) {
    check_parameter("layer_norm", x, bias);
    type = promote(type, bias.dtype());
    out = out + bias;
  }
  return astype(out, type);
}

LazyTensor silu(const LazyTensor& x) { return x * sigmoid(x); }

LazyTensor one_hot(const LazyTensor& indices, std::int64_t classes, DType dtype) {
  Shape shape = indices.shape();
  shape.push_back(classes);
  return astype(expand_dims(indices, -1) == iota(shape, -1, DType::i32, indices.device()), dtype);
}

}  // namespace caldera
