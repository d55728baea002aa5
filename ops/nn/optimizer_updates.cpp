#include "ops/nn/optimizer_updates.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/elementwise/power.h"

namespace caldera {

namespace {

void require_shape(const LazyTensor& param, const LazyTensor& other, const char* what) {
  if (other.shape() == param.shape()) return;
  throw ShapeError(fmt::format("adamw_update: {} has shape {}, the parameter {}; they must be equal", what,
                               other.shape().to_string(), param.shape().to_string()));
}

}  // namespace

AdamWStep::AdamWStep(const AdamWScalars& scalars) {
  if (scalars.step < 1)
    throw ValueError(fmt::format("adamw_update: step {} is not positive; steps count from 1", scalars.step));
  // The bias corrections are worked out here, in double: 1 - beta2^t loses most of its digits in float.
  const auto t = static_cast<double>(scalars.step);
  const double correction1 = 1 - std::pow(scalars.beta1, t);
  const double correction2 = 1 - std::pow(scalars.beta2, t);
  beta1_ = scalars.beta1;
  rest1_ = 1 - scalars.beta1;
  beta2_ = scalars.beta2;
  rest2_ = 1 - scalars.beta2;
  decay_ = 1 - scalars.learning_rate * scalars.weight_decay;
  root_correction_ = 1 / std::sqrt(correction2);
  eps_ = scalars.eps;
  step_size_ = scalars.learning_rate / correction1;
}

AdamWUpdate AdamWStep::operator()(const LazyTensor& param, const LazyTensor& grad, const LazyTensor& m,
                                  const LazyTensor& v) const {
  require_shape(param, grad, "the gradient");
  require_shape(param, m, "the first moment");
  require_shape(param, v, "the second moment");
  const DType compute = m.dtype();
  const LazyTensor g = grad.dtype() == compute ? grad : astype(grad, compute);
  const LazyTensor p = param.dtype() == compute ? param : astype(param, compute);

  AdamWUpdate out;
  out.m = m * beta1_ + g * rest1_;
  out.v = v * beta2_ + square(g) * rest2_;
  const LazyTensor denominator = sqrt(out.v) * root_correction_ + eps_;
  const LazyTensor moved = p * decay_ - out.m / denominator * step_size_;
  out.param = param.dtype() == compute ? moved : astype(moved, param.dtype());
  return out;
}

AdamWUpdate adamw_update(const LazyTensor& param, const LazyTensor& grad, const LazyTensor& m,
                         const LazyTensor& v, const AdamWScalars& scalars) {
  return AdamWStep(scalars)(param, grad, m, v);
}

}  // namespace caldera
