#include "training/vision/layers/conv2d.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/base/error.h"
#include "lm/nn/init.h"
#include "lm/nn/precision.h"

namespace caldera::vision {

Conv2d::Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, const Conv2dOptions& options)
    : options_{.stride = {options.stride}, .padding = {options.padding}, .groups = options.groups} {
  const std::int64_t groups = options.groups;
  if (in < 1 || out < 1 || kernel < 1 || groups < 1 || in % groups != 0 || out % groups != 0)
    throw ValueError(
        fmt::format("Conv2d: {} to {} channels in {} groups by a kernel of {}", in, out, groups, kernel));
  const Shape shape{out, in / groups, kernel, kernel};
  const auto area = static_cast<double>(kernel * kernel);
  if (options.bias) {
    const double bound = 1 / std::sqrt(static_cast<double>(shape[1]) * area);
    weight_.tensor = uniform_init(shape, bound, mix_seed(options.seed, 0), options.device);
    bias_.tensor = uniform_init(Shape{out}, bound, mix_seed(options.seed, 1), options.device);
  } else {
    const double std = std::sqrt(2 / (static_cast<double>(out) * area));
    weight_.tensor = normal_init(shape, std, mix_seed(options.seed, 0), options.device);
  }
}

LazyTensor Conv2d::forward(const LazyTensor& x) {
  return conv(x, cast_like(weight_.tensor, x),
              bias_.tensor.defined() ? cast_like(bias_.tensor, x) : LazyTensor{}, options_);
}

void Conv2d::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.parameter(join_name(prefix, "weight"), weight_);
  if (bias_.tensor.defined()) visitor.parameter(join_name(prefix, "bias"), bias_);
}

}  // namespace caldera::vision
