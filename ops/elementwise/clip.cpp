// Functions that choose between values or change their signs: copysign, clip, fmax and the like.
#include <limits>
#include <string>

#include "ops/elementwise/real_function.h"

namespace caldera {
namespace {

using ops::real_function;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void copysign_vjp(VjpContext& c) {
  if (c.needed[0])
    c.grads[0] = c.cotangent * sign(c.inputs[0]) * copysign(ones_like(c.cotangent), c.inputs[1]);
  if (c.needed[1]) c.grads[1] = zeros_like(c.cotangent);
}

const OpDef kCopysign{
    .name = "copysign", .kind = OpClass::elementwise, .scalar = ScalarOp::copysign, .vjp = copysign_vjp};

/// `low` where x lies below it: of a bound that is NaN nothing is left.
LazyTensor not_below(const LazyTensor& x, const LazyTensor& low) {
  return is_floating(x.dtype()) ? where(x >= low, x, where(isnan(x), x, low)) : where(x >= low, x, low);
}
LazyTensor not_above(const LazyTensor& x, const LazyTensor& high) {
  return is_floating(x.dtype()) ? where(x <= high, x, where(isnan(x), x, high)) : where(x <= high, x, high);
}

/// An integer beyond an integer type as the nearest that it holds.
LazyTensor saturated(const LazyTensor& bound, DType type) {
  if (ops::holds(type, bound) || is_floating(bound.dtype())) return bound;
  return bound.node().attributes()[0] < 0 ? facts(type).lowest : facts(type).highest;
}

/// Of a number and NaN the number.
template <LazyTensor (*Choose)(const LazyTensor&, const LazyTensor&)>
LazyTensor number_of(const LazyTensor& a, const LazyTensor& b) {
  const LazyTensor chosen = Choose(a, b);
  return is_floating(chosen.dtype()) ? where(isnan(a), b, where(isnan(b), a, chosen)) : chosen;
}

double largest(DType type) {
  switch (type) {
    case DType::f16:
      return 65504;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

}  // namespace

LazyTensor copysign(const LazyTensor& a, const LazyTensor& b) { return ops::elementwise(kCopysign, a, b); }

LazyTensor signbit(const LazyTensor& x) {
  ops::check_domain("signbit", ScalarDomain::numeric, x.dtype());
  return is_floating(x.dtype()) ? copysign(ones_like(x), x) < 0 : x < 0;
}
LazyTensor isfinite(const LazyTensor& x) {
  ops::check_domain("isfinite", ScalarDomain::numeric, x.dtype());
  return is_floating(x.dtype()) ? abs(x) < kInfinity : x == x;
}
LazyTensor isinf(const LazyTensor& x) {
  ops::check_domain("isinf", ScalarDomain::numeric, x.dtype());
  return is_floating(x.dtype()) ? abs(x) == kInfinity : x != x;
}
LazyTensor positive(const LazyTensor& x) {
  ops::check_domain("positive", ScalarDomain::numeric, x.dtype());
  return x;
}

LazyTensor clip(const LazyTensor& x, const std::optional<LazyTensor>& low,
                const std::optional<LazyTensor>& high) {
  LazyTensor y = x;
  for (const auto* bound : {&low, &high}) {
    // A number between tensors is one of their type, and lies where they do.
    if (!*bound || (*bound)->node().is_scalar_leaf()) continue;
    y = ops::anchored(ops::as_held_operand("clip", y, ops::dtype_beside(y, **bound)), (*bound)->device());
  }
  ops::check_domain("clip", ScalarDomain::numeric, y.dtype());
  if (low) {
    broadcast_shapes(y.shape(), low->shape(), "clip");
    y = not_below(y, saturated(*low, y.dtype()));
  }
  if (high) {
    broadcast_shapes(y.shape(), high->shape(), "clip");
    y = not_above(y, saturated(*high, y.dtype()));
  }
  return y;
}

LazyTensor fmax(const LazyTensor& a, const LazyTensor& b) {
  return ops::numeric_function("fmax", a, b, number_of<maximum>);
}
LazyTensor fmin(const LazyTensor& a, const LazyTensor& b) {
  return ops::numeric_function("fmin", a, b, number_of<minimum>);
}

LazyTensor fmod(const LazyTensor& a, const LazyTensor& b) {
  return ops::numeric_function("fmod", a, b, [](const LazyTensor& x, const LazyTensor& y) {
    if (!is_floating(x.dtype())) {  // the least integer has no magnitude
      const LazyTensor rest = remainder(x, y);
      return where(logical_and(rest != 0, logical_xor(rest < 0, x < 0)), rest - y, rest);
    }
    // The remainder of magnitudes is exact, and the sign is that of a.
    const LazyTensor rest = remainder(abs(x), abs(y));
    const LazyTensor of_zero = where(rest == 0, x, rest);
    return where(x > 0, rest, where(x < 0, -rest, of_zero));
  });
}

LazyTensor frac(const LazyTensor& x) {
  ops::check_domain("frac", ScalarDomain::floating, x.dtype());
  return x - trunc(x);
}

LazyTensor heaviside(const LazyTensor& x, const LazyTensor& values) {
  return ops::numeric_function("heaviside", x, values, [](const LazyTensor& y, const LazyTensor& at_zero) {
    return where(y > 0, 1, where(y < 0, 0, where(y == 0, at_zero, stop_gradient(y))));
  });
}

LazyTensor nan_to_num(const LazyTensor& x, double nan, std::optional<double> positive_infinity,
                      std::optional<double> negative_infinity) {
  ops::check_domain("nan_to_num", ScalarDomain::numeric, x.dtype());
  if (!is_floating(x.dtype())) return x;
  const double high = positive_infinity.value_or(largest(x.dtype()));
  const double low = negative_infinity.value_or(-largest(x.dtype()));
  return where(isnan(x), nan, where(x == kInfinity, high, where(x == -kInfinity, low, x)));
}

LazyTensor lerp(const LazyTensor& start, const LazyTensor& end, const LazyTensor& weight) {
  const LazyTensor from = real_function("lerp", start, end, [](const auto& a, const auto&) { return a; });
  return real_function("lerp", from, weight, [&](const LazyTensor& a, const LazyTensor& w) {
    const LazyTensor b = ops::as_operand(end, a.dtype());
    const LazyTensor step = b - a;
    return where(abs(w) < 0.5, a + w * step, b - step * (1 - w));
  });
}

}  // namespace caldera
