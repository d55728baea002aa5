#include "ops/reduce/cumulative.h"

#include <fmt/core.h>

#include <limits>
#include <vector>

#include "ops/core/along_axis.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/real_function.h"

namespace caldera {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// step(earlier, y, distance) combines each element with that `distance` before it, which is `fill` where
/// there is none.
template <class Step>
LazyTensor scan(const LazyTensor& x, int at, double fill, Step step) {
  const std::int64_t n = x.shape(at);
  std::vector<std::int64_t> low(static_cast<std::size_t>(x.rank())), high(low.size());
  LazyTensor y = x;
  for (std::int64_t distance = 1; distance < n; distance *= 2) {
    low[static_cast<std::size_t>(at)] = distance;
    y = step(pad(slice(y, at, 0, n - distance), low, high, fill), y, distance);
  }
  return y;
}

/// In the type that is computed with, and back. combine(earlier, later) has to be associative, and `identity`
/// to leave the later as it is.
template <class Combine>
LazyTensor arithmetic_scan(const char* op, const LazyTensor& x, int axis, double identity, Combine combine) {
  const DType type = sum_type(x.dtype());
  const auto step = [&](const LazyTensor& earlier, const LazyTensor& y, std::int64_t) {
    return combine(earlier, y);
  };
  return ops::along_axis(op, astype(x, compute_type(type)), axis, [&](const LazyTensor& y, int at) {
    return astype(scan(y, at, identity, step), type);
  });
}

LazyTensor plus(const LazyTensor& a, const LazyTensor& b) { return a + b; }

void check_floating_sum(const char* op, const LazyTensor& x) {
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
}

/// The later only where it is better, or NaN: of equals the first, whose gradient it is.
template <LazyTensor (*IsBetter)(const LazyTensor&, const LazyTensor&)>
LazyTensor first_best(const LazyTensor& earlier, const LazyTensor& later) {
  LazyTensor replaces = IsBetter(later, earlier);
  if (is_floating(later.dtype())) {
    replaces = logical_and(logical_or(replaces, isnan(later)), logical_not(isnan(earlier)));
  }
  return where(replaces, later, earlier);
}

/// No value leaves every other as it is and loses every tie, so what has no element before it is told by its
/// place.
template <LazyTensor (*IsBetter)(const LazyTensor&, const LazyTensor&)>
LazyTensor extremum_scan(const char* op, const LazyTensor& x, int axis) {
  ops::check_domain(op, ScalarDomain::numeric, x.dtype());
  return ops::along_axis(op, x, axis, [](const LazyTensor& given, int at) {
    Shape along = given.shape();
    for (int i = 0; i < along.rank(); ++i) along[i] = i == at ? along[i] : 1;
    const LazyTensor place = iota(along, at, DType::i32, given.device());
    return scan(given, at, 0, [&](const LazyTensor& earlier, const LazyTensor& y, std::int64_t distance) {
      return where(place < distance, y, first_best<IsBetter>(earlier, y));
    });
  });
}

/// b - a, and 0 for equal infinities.
LazyTensor ahead(const LazyTensor& a, const LazyTensor& b) {
  return where(logical_and(a == b, abs(a) == kInfinity), zeros_like(a), b - a);
}

// log(exp(a) + exp(b)) of inputs 1 and 2. Input 0 is the value, whose formula is accurate but has kinks at
// equal operands; the derivatives are sigmoid(a - b) and sigmoid(b - a).
void log_add_vjp(VjpContext& c) {
  const LazyTensor lead = ahead(c.inputs[1], c.inputs[2]);
  if (c.needed[1]) c.grads[1] = c.cotangent * sigmoid(-lead);
  if (c.needed[2]) c.grads[2] = c.cotangent * sigmoid(lead);
}
void log_add_jvp(JvpContext& c) {
  const LazyTensor lead = ahead(c.inputs[1], c.inputs[2]);
  LazyTensor& sum = c.tangent;
  if (c.tangents[1].defined()) sum = c.tangents[1] * sigmoid(-lead);
  if (c.tangents[2].defined()) {
    const LazyTensor of_b = c.tangents[2] * sigmoid(lead);
    sum = sum.defined() ? sum + of_b : of_b;
  }
}
const OpDef kLogAdd{.name = "logaddexp", .kind = OpClass::identity, .vjp = log_add_vjp, .jvp = log_add_jvp};

/// Of operands of one type and shape.
LazyTensor log_add(const LazyTensor& a, const LazyTensor& b) {
  const LazyTensor value = maximum(a, b) + log1p(exp(-abs(ahead(a, b))));
  return ops::make(kLogAdd, value.shape(), value.dtype(), {stop_gradient(value), a, b});
}

/// Of exp(earlier) = 0 nothing is left, gradients included.
LazyTensor log_add_later(const LazyTensor& earlier, const LazyTensor& later) {
  return where(earlier == -kInfinity, later, log_add(earlier, later));
}

}  // namespace

LazyTensor cumsum(const LazyTensor& x, AxisIndex axis) { return arithmetic_scan("cumsum", x, axis, 0, plus); }
LazyTensor cumulative_sum(const LazyTensor& x, std::optional<AxisIndex> axis, std::optional<DType> dtype,
                          bool include_initial) {
  if (!axis && x.rank() != 1)
    throw ShapeError(
        fmt::format("cumulative_sum: {} has {} axes: name one", x.shape().to_string(), x.rank()));
  const int at = x.shape().normalize_axis(axis.value_or(0), "cumulative_sum");
  LazyTensor y = arithmetic_scan("cumulative_sum", dtype ? astype(x, *dtype) : x, at, 0, plus);
  if (dtype) y = astype(y, *dtype);
  if (!include_initial) return y;
  std::vector<std::int64_t> low(static_cast<std::size_t>(x.rank()));
  low[static_cast<std::size_t>(at)] = 1;
  return pad(y, low, std::vector<std::int64_t>(low.size()));
}
LazyTensor cumprod(const LazyTensor& x, AxisIndex axis) {
  return arithmetic_scan("cumprod", x, axis, 1, [](const auto& a, const auto& b) { return a * b; });
}
LazyTensor cummax(const LazyTensor& x, AxisIndex axis) { return extremum_scan<greater>("cummax", x, axis); }
LazyTensor cummin(const LazyTensor& x, AxisIndex axis) { return extremum_scan<less>("cummin", x, axis); }
LazyTensor logcumsumexp(const LazyTensor& x, AxisIndex axis) {
  check_floating_sum("logcumsumexp", x);
  return arithmetic_scan("logcumsumexp", x, axis, -kInfinity, log_add_later);
}

LazyTensor logaddexp(const LazyTensor& a, const LazyTensor& b) {
  const DType type = promote(ops::dtype_beside(a, b), ops::dtype_beside(b, a));
  ops::check_domain("logaddexp", ScalarDomain::floating, type);
  const ops::Pair pair = ops::paired("logaddexp", a, b, compute_type(type));
  return astype(log_add(pair.a, pair.b), type);
}

}  // namespace caldera
