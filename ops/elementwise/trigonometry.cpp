#include "ops/elementwise/trigonometry.h"

#include <numbers>

#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/real_function.h"

namespace caldera {
namespace {

using ops::real_function;
using std::numbers::ln2;

// ---- primitives

void sin_vjp(VjpContext& c) { c.grads[0] = c.cotangent * cos(c.inputs[0]); }
void cos_vjp(VjpContext& c) { c.grads[0] = -(c.cotangent * sin(c.inputs[0])); }
void tan_vjp(VjpContext& c) { c.grads[0] = c.cotangent * (c.output * c.output + 1); }
/// (1 - x)(1 + x): 1 - x^2 would cancel near 1.
LazyTensor complement(const LazyTensor& x) { return (1 - x) * (1 + x); }
void asin_vjp(VjpContext& c) { c.grads[0] = c.cotangent * rsqrt(complement(c.inputs[0])); }
void acos_vjp(VjpContext& c) { c.grads[0] = -(c.cotangent * rsqrt(complement(c.inputs[0]))); }
void atan_vjp(VjpContext& c) { c.grads[0] = c.cotangent * reciprocal(1 + c.inputs[0] * c.inputs[0]); }
void tanh_vjp(VjpContext& c) { c.grads[0] = c.cotangent * (1 - c.output * c.output); }
void atan2_vjp(VjpContext& c) {
  const LazyTensor y = ops::anchored(c.inputs[0], c.output.device());
  const LazyTensor x = ops::anchored(c.inputs[1], c.output.device());
  const LazyTensor scaled = c.cotangent / (x * x + y * y);
  if (c.needed[0]) c.grads[0] = scaled * x;
  if (c.needed[1]) c.grads[1] = -(scaled * y);
}

const OpDef kSin = ops::elementwise_op("sin", ScalarOp::sin, sin_vjp);
const OpDef kCos = ops::elementwise_op("cos", ScalarOp::cos, cos_vjp);
const OpDef kTan = ops::elementwise_op("tan", ScalarOp::tan, tan_vjp);
const OpDef kAsin = ops::elementwise_op("asin", ScalarOp::asin, asin_vjp);
const OpDef kAcos = ops::elementwise_op("acos", ScalarOp::acos, acos_vjp);
const OpDef kAtan = ops::elementwise_op("atan", ScalarOp::atan, atan_vjp);
const OpDef kTanh = ops::elementwise_op("tanh", ScalarOp::tanh, tanh_vjp);
const OpDef kAtan2 = ops::elementwise_op("atan2", ScalarOp::atan2, atan2_vjp);

/// A primitive whose derivative, too, is computed in f32 where x has 16 bits: squares would leave their
/// range.
LazyTensor wide_function(const OpDef& op, const LazyTensor& x) {
  return real_function(x, [&](const auto& y) { return ops::elementwise(op, y); });
}

// ---- derivatives that have formulas of their own

LazyTensor cosh_slope(const LazyTensor& x, const LazyTensor&) { return sinh(x); }
LazyTensor sinh_slope(const LazyTensor& x, const LazyTensor&) { return cosh(x); }
LazyTensor acosh_slope(const LazyTensor& x, const LazyTensor&) { return rsqrt(x - 1) * rsqrt(x + 1); }
LazyTensor asinh_slope(const LazyTensor& x, const LazyTensor&) { return reciprocal(hypot(x, ones_like(x))); }
LazyTensor atanh_slope(const LazyTensor& x, const LazyTensor&) { return reciprocal(complement(x)); }

const OpDef kCosh = ops::sloped<cosh_slope>("cosh");
const OpDef kSinh = ops::sloped<sinh_slope>("sinh");
const OpDef kAcosh = ops::sloped<acosh_slope>("acosh");
const OpDef kAsinh = ops::sloped<asinh_slope>("asinh");
const OpDef kAtanh = ops::sloped<atanh_slope>("atanh");

/// f with the derivative that `op` has. Values are computed aside, where no gradient follows.
template <class F>
LazyTensor sloped_function(const OpDef& op, const LazyTensor& x, const F& f) {
  return real_function(x, [&](const LazyTensor& y) { return ops::with_slope(op, f(y), y); });
}

/// An odd function from its values for |x|: zeros keep their sign, NaN stays.
LazyTensor odd(const LazyTensor& x, const LazyTensor& of_magnitude) {
  return where(x > 0, of_magnitude, where(x < 0, -of_magnitude, x));
}

/// From here on sqrt(x^2 + 1) is x, and x^2 does not overflow yet.
constexpr double kLarge = 0x1p28;

/// The exponential of |x| in two factors, neither of which overflows before the result of cosh and sinh does.
struct Exponent {
  LazyTensor bounded, excess;
};
Exponent split_exponent(const LazyTensor& magnitude) {
  const double limit = magnitude.dtype() == DType::f64 ? 709 : 88;
  const LazyTensor bounded = minimum(magnitude, full_like(magnitude, limit));
  return {bounded, exp(magnitude - bounded)};
}

}  // namespace

LazyTensor sin(const LazyTensor& x) { return ops::elementwise(kSin, x); }
LazyTensor cos(const LazyTensor& x) { return ops::elementwise(kCos, x); }
LazyTensor tan(const LazyTensor& x) { return ops::elementwise(kTan, x); }
LazyTensor asin(const LazyTensor& x) { return wide_function(kAsin, x); }
LazyTensor acos(const LazyTensor& x) { return wide_function(kAcos, x); }
LazyTensor atan(const LazyTensor& x) { return wide_function(kAtan, x); }
LazyTensor tanh(const LazyTensor& x) { return ops::elementwise(kTanh, x); }
LazyTensor atan2(const LazyTensor& y, const LazyTensor& x) { return ops::elementwise(kAtan2, y, x); }

LazyTensor deg2rad(const LazyTensor& x) {
  return real_function(x, [](const auto& y) { return y * (std::numbers::pi / 180); });
}
LazyTensor rad2deg(const LazyTensor& x) {
  return real_function(x, [](const auto& y) { return y * (180 / std::numbers::pi); });
}

LazyTensor cosh(const LazyTensor& x) {
  return sloped_function(kCosh, x, [](const auto& y) {
    const Exponent part = split_exponent(abs(y));
    const LazyTensor e = exp(part.bounded);
    return (e * 0.5 + 0.5 / e) * part.excess;
  });
}
LazyTensor sinh(const LazyTensor& x) {
  return sloped_function(kSinh, x, [](const auto& y) {
    const Exponent part = split_exponent(abs(y));
    const LazyTensor e = expm1(part.bounded);
    return odd(y, (e + e / (1 + e)) * 0.5 * part.excess);
  });
}
LazyTensor acosh(const LazyTensor& x) {
  return sloped_function(kAcosh, x, [](const auto& y) {
    const LazyTensor above = y - 1;
    // Two roots: their product neither overflows nor is real where both factors are negative.
    return where(y > kLarge, log(y) + ln2, log1p(above + sqrt(above) * sqrt(y + 1)));
  });
}
LazyTensor asinh(const LazyTensor& x) {
  return sloped_function(kAsinh, x, [](const auto& y) {
    const LazyTensor a = abs(y);
    const LazyTensor square = a * a;
    return odd(y, where(a > kLarge, log(a) + ln2, log1p(a + square / (1 + sqrt(1 + square)))));
  });
}
LazyTensor atanh(const LazyTensor& x) {
  return sloped_function(kAtanh, x, [](const auto& y) {
    const LazyTensor a = abs(y);
    return odd(y, 0.5 * log1p((a + a) / (1 - a)));
  });
}

}  // namespace caldera
