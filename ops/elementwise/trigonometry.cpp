#include "ops/elementwise/trigonometry.h"

#include <fmt/core.h>

#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "ops/elementwise/real_function.h"

namespace caldera {
namespace {

using ops::real_function;
using std::numbers::ln2;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// ---- primitives

void exp2_vjp(VjpContext& c) { c.grads[0] = c.cotangent * (c.output * ln2); }
void log2_vjp(VjpContext& c) { c.grads[0] = c.cotangent * std::numbers::log2e / c.inputs[0]; }
void log10_vjp(VjpContext& c) { c.grads[0] = c.cotangent * std::numbers::log10e / c.inputs[0]; }
constexpr OpDef primitive(std::string_view name, ScalarOp function, VjpRule vjp) {
  return {.name = name, .kind = OpClass::elementwise, .scalar = function, .vjp = vjp};
}

const OpDef kExp2 = primitive("exp2", ScalarOp::exp2, exp2_vjp);
const OpDef kLog2 = primitive("log2", ScalarOp::log2, log2_vjp);
const OpDef kLog10 = primitive("log10", ScalarOp::log10, log10_vjp);

// ---- derivatives that have formulas of their own

/// (1 - x)(1 + x): 1 - x^2 would cancel near 1.
LazyTensor complement(const LazyTensor& x) { return (1 - x) * (1 + x); }

LazyTensor acos_slope(const LazyTensor& x, const LazyTensor&) { return -rsqrt(complement(x)); }
LazyTensor asin_slope(const LazyTensor& x, const LazyTensor&) { return rsqrt(complement(x)); }
LazyTensor atan_slope(const LazyTensor& x, const LazyTensor&) { return reciprocal(1 + x * x); }
LazyTensor cosh_slope(const LazyTensor& x, const LazyTensor&) { return sinh(x); }
LazyTensor sinh_slope(const LazyTensor& x, const LazyTensor&) { return cosh(x); }
LazyTensor acosh_slope(const LazyTensor& x, const LazyTensor&) { return rsqrt(x - 1) * rsqrt(x + 1); }
LazyTensor asinh_slope(const LazyTensor& x, const LazyTensor&) { return reciprocal(hypot(x, ones_like(x))); }
LazyTensor atanh_slope(const LazyTensor& x, const LazyTensor&) { return reciprocal(complement(x)); }
LazyTensor logit_slope(const LazyTensor& x, const LazyTensor&) { return reciprocal(x * (1 - x)); }

const OpDef kAcos = ops::sloped<acos_slope>("acos");
const OpDef kAsin = ops::sloped<asin_slope>("asin");
const OpDef kAtan = ops::sloped<atan_slope>("atan");
const OpDef kCosh = ops::sloped<cosh_slope>("cosh");
const OpDef kSinh = ops::sloped<sinh_slope>("sinh");
const OpDef kAcosh = ops::sloped<acosh_slope>("acosh");
const OpDef kAsinh = ops::sloped<asinh_slope>("asinh");
const OpDef kAtanh = ops::sloped<atanh_slope>("atanh");
const OpDef kLogit = ops::sloped<logit_slope>("logit");

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

LazyTensor acos(const LazyTensor& x) {
  return sloped_function(kAcos, x, [](const auto& y) { return atan2(sqrt(complement(y)), y); });
}
LazyTensor asin(const LazyTensor& x) {
  return sloped_function(kAsin, x, [](const auto& y) { return atan2(y, sqrt(complement(y))); });
}
LazyTensor atan(const LazyTensor& x) {
  return sloped_function(kAtan, x, [](const auto& y) { return atan2(y, ones_like(y)); });
}
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

LazyTensor exp2(const LazyTensor& x) { return ops::elementwise(kExp2, x); }
LazyTensor log2(const LazyTensor& x) { return ops::elementwise(kLog2, x); }
LazyTensor log10(const LazyTensor& x) { return ops::elementwise(kLog10, x); }

LazyTensor hypot(const LazyTensor& a, const LazyTensor& b) {
  return real_function("hypot", a, b, [](const LazyTensor& x, const LazyTensor& y) {
    // The scale divides out, so it may count as a constant in differentiation.
    const LazyTensor longer = stop_gradient(maximum(abs(x), abs(y)));
    const LazyTensor usable = logical_and(longer > 0, longer < kInfinity);
    const LazyTensor scale = where(usable, longer, ones_like(longer));
    const LazyTensor square = caldera::square(x / scale) + caldera::square(y / scale);
    const LazyTensor is_zero = longer == 0;
    const LazyTensor root = scale * sqrt(where(is_zero, ones_like(square), square));
    const LazyTensor finite = where(is_zero, zeros_like(root), root);
    return where(logical_or(isinf(x), isinf(y)), full_like(root, kInfinity), finite);
  });
}

LazyTensor xlogy(const LazyTensor& x, const LazyTensor& y) {
  return real_function("xlogy", x, y, [](const LazyTensor& a, const LazyTensor& b) {
    const LazyTensor is_limit = logical_and(a == 0, logical_or(b <= 0, b == kInfinity));
    return a * log(where(is_limit, ones_like(b), b));
  });
}

LazyTensor logit(const LazyTensor& x, std::optional<double> eps) {
  if (eps && !(*eps >= 0 && *eps <= 0.5)) {
    throw ValueError(fmt::format("logit: eps is {}, but x is limited to [eps, 1 - eps]", *eps));
  }
  return real_function(x, [&](const LazyTensor& given) {
    const LazyTensor y = eps ? clip(given, *eps, 1 - *eps) : given;
    // Near 1/2 the logarithms cancel, but 2 y - 1 is exact.
    const LazyTensor middle = log1p((y + y - 1) / (1 - y));
    const LazyTensor value = where(abs(y - 0.5) < 0.25, middle, log(y) - log1p(-y));
    return ops::with_slope(kLogit, value, y);
  });
}

}  // namespace caldera
