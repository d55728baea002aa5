#include "ops/elementwise/rounding.h"

#include <fmt/core.h>

#include <cmath>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/elementwise/real_function.h"
#include "ops/elementwise/sign.h"

namespace caldera {
namespace {

using ops::elementwise_op;

const OpDef kFloor = elementwise_op("floor", ScalarOp::floor);
const OpDef kCeil = elementwise_op("ceil", ScalarOp::ceil);
const OpDef kRound = elementwise_op("round", ScalarOp::round);
const OpDef kTrunc = elementwise_op("trunc", ScalarOp::trunc);

/// Rounding functions leave integers as they are (Array API).
LazyTensor rounding(const OpDef& op, const LazyTensor& x) {
  return is_integral(x.dtype()) ? x : ops::elementwise(op, x);
}

/// How many digits of a number of the type stand in front of the point at most.
int digits_in_front(DType type) {
  switch (compute_type(type)) {
    case DType::f64:
      return 308;
    case DType::f32:
      return 38;
    case DType::i64:
      return 18;
    default:
      return type == DType::u8 || type == DType::i8 ? 2 : type == DType::i16 ? 4 : 9;
  }
}

/// To the nearest multiple of an integer, halves to the even one.
LazyTensor integers_rounded_to(const LazyTensor& x, std::int64_t unit) {
  const LazyTensor rest = remainder(x, unit);
  const LazyTensor below = x - rest;
  const LazyTensor left = unit - rest;
  const LazyTensor is_odd = remainder(floor_divide(below, unit), 2) != 0;
  const LazyTensor up = logical_or(left < rest, logical_and(left == rest, is_odd));
  return where(up, below + unit, below);
}

}  // namespace

LazyTensor floor(const LazyTensor& x) { return rounding(kFloor, x); }
LazyTensor ceil(const LazyTensor& x) { return rounding(kCeil, x); }
LazyTensor round(const LazyTensor& x) { return rounding(kRound, x); }
LazyTensor trunc(const LazyTensor& x) { return rounding(kTrunc, x); }

LazyTensor round(const LazyTensor& x, int decimals) {
  ops::check_domain("round", ScalarDomain::numeric, x.dtype());
  const int most = digits_in_front(x.dtype());
  const bool whole = is_integral(x.dtype());
  if (decimals < -most || (!whole && decimals > most))
    throw ValueError(
        fmt::format("round: {} decimals of {}, want {} to {}", decimals, name(x.dtype()), -most, most));
  if (decimals == 0) return round(x);
  if (whole) {
    if (decimals > 0) return x;
    std::int64_t unit = 1;
    for (int i = 0; i < -decimals; ++i) unit *= 10;
    return integers_rounded_to(x, unit);
  }
  const double unit = std::pow(10.0, std::abs(decimals));
  return ops::real_function(x, [&](const LazyTensor& y) {
    const LazyTensor rounded = decimals > 0 ? round(y * unit) / unit : round(y / unit) * unit;
    // What is too large to be multiplied has no digits behind the point.
    return where(isfinite(rounded), rounded, y);
  });
}

LazyTensor frac(const LazyTensor& x) {
  ops::check_domain("frac", ScalarDomain::floating, x.dtype());
  return x - trunc(x);
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

}  // namespace caldera
