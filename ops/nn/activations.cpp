#include "ops/nn/activations.h"

#include <fmt/core.h>

#include <numbers>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/special.h"
#include "ops/elementwise/trigonometry.h"

namespace caldera {
namespace {

/// f in the type that is computed with, rounded once.
template <class F>
LazyTensor computed(std::string_view op, const LazyTensor& x, const F& f) {
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  return astype(f(astype(x, compute_type(x.dtype()))), x.dtype());
}

LazyTensor zero(const LazyTensor& x) { return zeros_like(x); }

/// x where it is below 0 or NaN, else 0: what a function of the negative side may see, so that it cannot
/// overflow where it is not chosen.
LazyTensor negative_part(const LazyTensor& x) { return where(x > 0, zero(x), x); }

LazyTensor limited(const LazyTensor& x, double low, double high) {
  return where(x <= low, full_like(x, low), where(x >= high, full_like(x, high), x));
}

LazyTensor plain_softplus(const LazyTensor& x) {
  // max(x, 0) + log(1 + exp(-|x|)), but with one side at 0, so that second derivatives are right there as
  // well.
  const LazyTensor positive = x > 0;
  return where(positive, x, zero(x)) + log1p(exp(where(positive, -x, x)));
}

LazyTensor exponential_unit(const LazyTensor& x, double alpha, double scale) {
  return where(x > 0, x, expm1(negative_part(x) * scale) * alpha);
}

}  // namespace

LazyTensor relu(const LazyTensor& x) {
  ops::check_domain("relu", ScalarDomain::floating, x.dtype());
  return where(x <= 0, zero(x), x);  // this way round NaN stays NaN
}

LazyTensor relu6(const LazyTensor& x) {
  ops::check_domain("relu6", ScalarDomain::floating, x.dtype());
  return limited(x, 0, 6);
}

LazyTensor leaky_relu(const LazyTensor& x, double negative_slope) {
  return computed("leaky_relu", x, [&](const LazyTensor& y) { return where(y > 0, y, y * negative_slope); });
}

LazyTensor prelu(const LazyTensor& x, const LazyTensor& weight) {
  ops::check_domain("prelu", ScalarDomain::floating, x.dtype());
  if (broadcast_shapes(x.shape(), weight.shape(), "prelu") != x.shape()) {
    throw ShapeError(fmt::format("prelu: weight {} does not broadcast to {}", weight.shape().to_string(),
                                 x.shape().to_string()));
  }
  const Device device = ops::device_of({x, weight});
  return computed("prelu", ops::anchored(x, device), [&](const LazyTensor& y) {
    return where(y > 0, y, y * ops::anchored(ops::as_operand(weight, y.dtype()), device));
  });
}

LazyTensor elu(const LazyTensor& x, double alpha) {
  return computed("elu", x, [&](const LazyTensor& y) { return exponential_unit(y, alpha, 1); });
}

LazyTensor celu(const LazyTensor& x, double alpha) {
  if (alpha == 0) throw ValueError("celu: alpha is 0, x / alpha is not defined");
  return computed("celu", x, [&](const LazyTensor& y) { return exponential_unit(y, alpha, 1 / alpha); });
}

LazyTensor selu(const LazyTensor& x) {
  constexpr double kAlpha = 1.6732632423543772848170429916717;
  constexpr double kScale = 1.0507009873554804934193349852946;
  return computed("selu", x, [](const LazyTensor& y) { return exponential_unit(y, kAlpha, 1) * kScale; });
}

LazyTensor gelu(const LazyTensor& x, GeluForm form) {
  return computed("gelu", x, [&](const LazyTensor& y) {
    if (form == GeluForm::exact) return y * 0.5 * (erf(y * (1 / std::numbers::sqrt2)) + 1);
    const LazyTensor inner = (y + y * y * y * 0.044715) * (std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
    return y * 0.5 * (tanh(inner) + 1);
  });
}

LazyTensor silu(const LazyTensor& x) {
  return computed("silu", x, [](const LazyTensor& y) { return y * sigmoid(y); });
}

LazyTensor mish(const LazyTensor& x) {
  return computed("mish", x, [](const LazyTensor& y) { return y * tanh(plain_softplus(y)); });
}

LazyTensor softplus(const LazyTensor& x, double beta) {
  if (beta == 0) throw ValueError("softplus: beta is 0, and divides");
  return computed("softplus", x, [&](const LazyTensor& y) { return plain_softplus(y * beta) / beta; });
}

LazyTensor softsign(const LazyTensor& x) {
  return computed("softsign", x, [](const LazyTensor& y) { return y / (abs(y) + 1); });
}

LazyTensor log_sigmoid(const LazyTensor& x) {
  return computed("log_sigmoid", x, [](const LazyTensor& y) { return -plain_softplus(-y); });
}

LazyTensor hardtanh(const LazyTensor& x, double low, double high) {
  ops::check_domain("hardtanh", ScalarDomain::floating, x.dtype());
  // Written so that NaN is refused too.
  if (!(low <= high)) throw ValueError(fmt::format("hardtanh: nothing lies in [{}, {}]", low, high));
  return limited(x, low, high);
}

LazyTensor hardsigmoid(const LazyTensor& x) {
  return computed("hardsigmoid", x, [](const LazyTensor& y) { return limited(y + 3, 0, 6) / 6; });
}

LazyTensor hardswish(const LazyTensor& x) {
  return computed("hardswish", x, [](const LazyTensor& y) { return y * (limited(y + 3, 0, 6) / 6); });
}

LazyTensor tanhshrink(const LazyTensor& x) {
  return computed("tanhshrink", x, [](const LazyTensor& y) { return y - tanh(y); });
}

LazyTensor softshrink(const LazyTensor& x, double lambda) {
  // Written so that NaN is refused too.
  if (!(lambda >= 0)) throw ValueError(fmt::format("softshrink: lambda is {}, want 0 or more", lambda));
  return computed("softshrink", x, [&](const LazyTensor& y) {
    return where(y > lambda, y - lambda, where(y < -lambda, y + lambda, y * 0));
  });
}

LazyTensor hardshrink(const LazyTensor& x, double lambda) {
  return computed("hardshrink", x, [&](const LazyTensor& y) { return where(abs(y) <= lambda, zero(y), y); });
}

LazyTensor glu(const LazyTensor& x, AxisIndex axis) {
  const int at = x.shape().normalize_axis(axis, "glu");
  const std::int64_t half = x.shape()[at] / 2;
  if (half * 2 != x.shape()[at]) {
    throw ShapeError(fmt::format("glu: axis {} of {} cannot be halved", axis, x.shape().to_string()));
  }
  return computed("glu", x, [&](const LazyTensor& y) {
    return slice(y, at, 0, half) * sigmoid(slice(y, at, half, std::nullopt));
  });
}

}  // namespace caldera
