#include "ops/elementwise/rounding.h"

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/elementwise_op.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/elementwise/real_function.h"

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

}  // namespace

LazyTensor floor(const LazyTensor& x) { return rounding(kFloor, x); }
LazyTensor ceil(const LazyTensor& x) { return rounding(kCeil, x); }
LazyTensor round(const LazyTensor& x) { return rounding(kRound, x); }
LazyTensor trunc(const LazyTensor& x) { return rounding(kTrunc, x); }

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
