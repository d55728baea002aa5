// Element-wise functions of one operand, with their gradients.
#include <array>
#include <numbers>

#include "ops/core/node_builder.h"

namespace caldera {
namespace {

using Context = VjpContext;

void neg_vjp(Context& c) { c.grads[0] = -c.cotangent; }
void abs_vjp(Context& c) { c.grads[0] = c.cotangent * sign(c.inputs[0]); }
void exp_vjp(Context& c) { c.grads[0] = c.cotangent * c.output; }
// Not output + 1, which cancels far below 0.
void expm1_vjp(Context& c) { c.grads[0] = c.cotangent * exp(c.inputs[0]); }
void log_vjp(Context& c) { c.grads[0] = c.cotangent / c.inputs[0]; }
void log1p_vjp(Context& c) { c.grads[0] = c.cotangent / (c.inputs[0] + 1); }
void sqrt_vjp(Context& c) { c.grads[0] = c.cotangent * 0.5 / c.output; }
void rsqrt_vjp(Context& c) { c.grads[0] = c.cotangent * (-0.5 * (c.output * c.output * c.output)); }
void sin_vjp(Context& c) { c.grads[0] = c.cotangent * cos(c.inputs[0]); }
void cos_vjp(Context& c) { c.grads[0] = -(c.cotangent * sin(c.inputs[0])); }
void tan_vjp(Context& c) { c.grads[0] = c.cotangent * (c.output * c.output + 1); }
void tanh_vjp(Context& c) { c.grads[0] = c.cotangent * (1 - c.output * c.output); }
void sigmoid_vjp(Context& c) { c.grads[0] = c.cotangent * (c.output * (1 - c.output)); }
void reciprocal_vjp(Context& c) { c.grads[0] = -(c.cotangent * (c.output * c.output)); }
void cast_vjp(Context& c) { c.grads[0] = astype(c.cotangent, c.inputs[0].dtype()); }
void erf_vjp(Context& c) {
  c.grads[0] = c.cotangent * (2.0 * std::numbers::inv_sqrtpi * exp(-(c.inputs[0] * c.inputs[0])));
}

/// Casts change the dtype, so their gradient rule cannot serve both ways.
constexpr OpDef unary(std::string_view name, ScalarOp function, VjpRule vjp, JvpRule jvp = nullptr) {
  return {.name = name,
          .kind = OpClass::elementwise,
          .scalar = function,
          .vjp = vjp,
          .jvp = jvp,
          .zero_gradient = vjp == nullptr};
}

const OpDef kNeg = unary("negative", ScalarOp::neg, neg_vjp);
const OpDef kAbs = unary("abs", ScalarOp::abs, abs_vjp);
const OpDef kSign = unary("sign", ScalarOp::sign, nullptr);
const OpDef kFloor = unary("floor", ScalarOp::floor, nullptr);
const OpDef kCeil = unary("ceil", ScalarOp::ceil, nullptr);
const OpDef kRound = unary("round", ScalarOp::round, nullptr);
const OpDef kTrunc = unary("trunc", ScalarOp::trunc, nullptr);
const OpDef kExp = unary("exp", ScalarOp::exp, exp_vjp);
const OpDef kExpm1 = unary("expm1", ScalarOp::expm1, expm1_vjp);
const OpDef kLog = unary("log", ScalarOp::log, log_vjp);
const OpDef kLog1p = unary("log1p", ScalarOp::log1p, log1p_vjp);
const OpDef kSqrt = unary("sqrt", ScalarOp::sqrt, sqrt_vjp);
const OpDef kRsqrt = unary("rsqrt", ScalarOp::rsqrt, rsqrt_vjp);
const OpDef kSin = unary("sin", ScalarOp::sin, sin_vjp);
const OpDef kCos = unary("cos", ScalarOp::cos, cos_vjp);
const OpDef kTan = unary("tan", ScalarOp::tan, tan_vjp);
const OpDef kTanh = unary("tanh", ScalarOp::tanh, tanh_vjp);
const OpDef kSigmoid = unary("sigmoid", ScalarOp::sigmoid, sigmoid_vjp);
const OpDef kErf = unary("erf", ScalarOp::erf, erf_vjp);
const OpDef kReciprocal = unary("reciprocal", ScalarOp::reciprocal, reciprocal_vjp);
const OpDef kLogicalNot = unary("logical_not", ScalarOp::logical_not, nullptr);
const OpDef kIsNan = unary("isnan", ScalarOp::isnan, nullptr);
const OpDef kCast = unary("astype", ScalarOp::cast, cast_vjp, ops::linear_jvp);

/// Rounding functions leave integers as they are (Array API).
LazyTensor rounding(const OpDef& op, const LazyTensor& x) {
  return is_integral(x.dtype()) ? x : ops::elementwise(op, x);
}

}  // namespace

LazyTensor negative(const LazyTensor& x) { return ops::elementwise(kNeg, x); }
LazyTensor abs(const LazyTensor& x) { return ops::elementwise(kAbs, x); }
LazyTensor sign(const LazyTensor& x) { return ops::elementwise(kSign, x); }
LazyTensor floor(const LazyTensor& x) { return rounding(kFloor, x); }
LazyTensor ceil(const LazyTensor& x) { return rounding(kCeil, x); }
LazyTensor round(const LazyTensor& x) { return rounding(kRound, x); }
LazyTensor trunc(const LazyTensor& x) { return rounding(kTrunc, x); }
LazyTensor exp(const LazyTensor& x) { return ops::elementwise(kExp, x); }
LazyTensor expm1(const LazyTensor& x) { return ops::elementwise(kExpm1, x); }
LazyTensor log(const LazyTensor& x) { return ops::elementwise(kLog, x); }
LazyTensor log1p(const LazyTensor& x) { return ops::elementwise(kLog1p, x); }
LazyTensor sqrt(const LazyTensor& x) { return ops::elementwise(kSqrt, x); }
LazyTensor rsqrt(const LazyTensor& x) { return ops::elementwise(kRsqrt, x); }
LazyTensor sin(const LazyTensor& x) { return ops::elementwise(kSin, x); }
LazyTensor cos(const LazyTensor& x) { return ops::elementwise(kCos, x); }
LazyTensor tan(const LazyTensor& x) { return ops::elementwise(kTan, x); }
LazyTensor tanh(const LazyTensor& x) { return ops::elementwise(kTanh, x); }
LazyTensor sigmoid(const LazyTensor& x) { return ops::elementwise(kSigmoid, x); }
LazyTensor erf(const LazyTensor& x) { return ops::elementwise(kErf, x); }
LazyTensor reciprocal(const LazyTensor& x) { return ops::elementwise(kReciprocal, x); }
LazyTensor logical_not(const LazyTensor& x) { return ops::elementwise(kLogicalNot, x); }
LazyTensor isnan(const LazyTensor& x) { return ops::elementwise(kIsNan, x); }
LazyTensor square(const LazyTensor& x) {
  ops::check_domain("square", ScalarDomain::numeric, x.dtype());
  return x * x;
}

LazyTensor astype(const LazyTensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return ops::make(kCast, x.shape(), dtype, {x});
}

}  // namespace caldera
