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

AdamWUpdate adamw_update(const LazyTensor& param, const LazyTensor& grad, const LazyTensor& m,
                         const LazyTensor& v, const AdamWScalars& scalars) {
  require_shape(param, grad, "the gradient");
  require_shape(param, m, "the first moment");
  require_shape(param, v, "the second moment");
  if (scalars.step < 1)
    throw ValueError(fmt::format("adamw_update: step {} is not positive; steps count from 1", scalars.step));

  // The bias corrections are worked out here, in double: 1 - beta2^t loses most of its digits in float.
  const auto t = static_cast<double>(scalars.step);
  const double correction1 = 1 - std::pow(scalars.beta1, t);
  const double correction2 = 1 - std::pow(scalars.beta2, t);
  const double step_size = scalars.learning_rate / correction1;
  const double root_correction = 1 / std::sqrt(correction2);

  const DType compute = m.dtype();
  const LazyTensor g = grad.dtype() == compute ? grad : astype(grad, compute);
  const LazyTensor p = param.dtype() == compute ? param : astype(param, compute);

  AdamWUpdate out;
  out.m = m * scalars.beta1 + g * (1 - scalars.beta1);
  out.v = v * scalars.beta2 + square(g) * (1 - scalars.beta2);
  const LazyTensor decayed = p * (1 - scalars.learning_rate * scalars.weight_decay);
  const LazyTensor denominator = sqrt(out.v) * root_correction + scalars.eps;
  const LazyTensor moved = decayed - out.m / denominator * step_size;
  out.param = param.dtype() == compute ? moved : astype(moved, param.dtype());
  return out;
}

}  // namespace caldera
