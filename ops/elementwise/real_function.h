// Makes functions of real numbers: the type they are computed in, and derivatives of their own.
#pragma once

#include <iterator>
#include <string_view>

#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"

namespace caldera::ops {

/// The type of a real function's result: integers and bool become f32.
constexpr DType real_type(DType type) { return is_floating(type) ? type : DType::f32; }

/// Whether a function of x is computed in f64, which takes more terms of its series than f32.
inline bool is_f64(const LazyTensor& x) { return x.dtype() == DType::f64; }

/// f in the type that is computed with, rounded once.
template <class F>
LazyTensor real_function(const LazyTensor& x, const F& f) {
  const DType type = real_type(x.dtype());
  return astype(f(as_operand(x, compute_type(type))), type);
}

struct Pair {
  LazyTensor a, b;
};
/// Both operands in `type` and broadcast, numbers beside a tensor where that is. `op` is for the messages
/// where shapes do not broadcast or a number does not fit.
inline Pair paired(const char* op, const LazyTensor& a, const LazyTensor& b, DType type) {
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), op);
  const auto operand = [&](const LazyTensor& x, const LazyTensor& other) {
    const LazyTensor y = as_held_operand(op, x, type);
    return broadcast_operand(other.node().is_scalar_leaf() ? y : anchored(y, other.device()), shape);
  };
  return {operand(a, b), operand(b, a)};
}

/// The type that two operands are promoted to.
inline DType common_type(const LazyTensor& a, const LazyTensor& b) {
  return promote(dtype_beside(a, b), dtype_beside(b, a));
}

/// A real function of two operands.
template <class F>
LazyTensor real_function(const char* op, const LazyTensor& a, const LazyTensor& b, const F& f) {
  const DType type = real_type(common_type(a, b));
  const Pair pair = paired(op, a, b, compute_type(type));
  return astype(f(pair.a, pair.b), type);
}

/// A function of two numbers of one type, which may be an integer. DTypeError for bool.
template <class F>
LazyTensor numeric_function(const char* op, const LazyTensor& a, const LazyTensor& b, const F& f) {
  const DType type = common_type(a, b);
  check_domain(op, ScalarDomain::numeric, type);
  const Pair pair = paired(op, a, b, type);
  return f(pair.a, pair.b);
}

/// A value that is given, as a function of one operand with the derivative Slope(x, y). The composition that
/// computes it then need not be one whose derivative is finite or accurate. The node itself vanishes in
/// compilation: it stands for its first input, and the second is for differentiation only.
template <LazyTensor (*Slope)(const LazyTensor& x, const LazyTensor& y)>
constexpr OpDef sloped(std::string_view name) {
  return {.name = name,
          .kind = OpClass::identity,
          .vjp = [](VjpContext& c) { c.grads[1] = c.cotangent * Slope(c.inputs[1], c.output); },
          .jvp = [](JvpContext& c) { c.tangent = c.tangents[1] * Slope(c.inputs[1], c.output); }};
}

inline LazyTensor with_slope(const OpDef& op, const LazyTensor& value, const LazyTensor& x) {
  return make(op, value.shape(), value.dtype(), {stop_gradient(value), x});
}

/// c[0] + x (c[1] + x (c[2] + …)).
template <class Coefficients>
LazyTensor polynomial(const LazyTensor& x, const Coefficients& c) {
  LazyTensor sum;
  for (auto at = std::rbegin(c); at != std::rend(c); ++at)
    sum = sum.defined() ? sum * x + *at : LazyTensor(*at);
  return sum;
}

}  // namespace caldera::ops
