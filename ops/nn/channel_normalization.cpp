#include "ops/nn/channel_normalization.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "ops/core/cast.h"
#include "ops/core/node_builder.h"
#include "ops/core/views.h"
#include "ops/elementwise/power.h"
#include "ops/nn/normalization.h"
#include "ops/reduce/mean.h"
#include "ops/reduce/statistics.h"

namespace caldera {
namespace {

void check_image(const char* op, const LazyTensor& x, int rank) {
  ops::check_domain(op, ScalarDomain::floating, x.dtype());
  if (x.rank() < rank)
    throw ShapeError(fmt::format("{}: {} is not (batch, channels{})", op, x.shape().to_string(),
                                 rank == 2 ? ", ..." : ", extent, ..."));
}

void check_eps(const char* op, double eps) {
  // Written so that NaN is refused too.
  if (!(eps >= 0)) throw ValueError(fmt::format("{}: eps is {}, want 0 or more", op, eps));
}

void check_channels(const char* op, const char* what, const LazyTensor& x, const LazyTensor& parameter) {
  if (!parameter.defined()) return;
  if (parameter.shape() != Shape{x.shape(1)})
    throw ShapeError(fmt::format("{}: {} {} is not one value for each channel of {}", op, what,
                                 parameter.shape().to_string(), x.shape().to_string()));
  ops::check_domain(op, ScalarDomain::floating, parameter.dtype());
}

/// A value for each channel as it broadcasts to x.
LazyTensor across(const LazyTensor& parameter, const LazyTensor& x) {
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) shape.push_back(i == 1 ? x.shape(1) : 1);
  return reshape(parameter, shape);
}

/// normalised * weight + bias, in the type of the result. `x` is what was normalised.
LazyTensor scaled(const char* op, const LazyTensor& x, const LazyTensor& normalised, const LazyTensor& weight,
                  const LazyTensor& bias) {
  check_channels(op, "weight", x, weight);
  check_channels(op, "bias", x, bias);
  DType type = x.dtype();
  LazyTensor out = normalised;
  if (weight.defined()) {
    type = promote(type, weight.dtype());
    out = out * across(weight, x);
  }
  if (bias.defined()) {
    type = promote(type, bias.dtype());
    out = out + across(bias, x);
  }
  return astype(out, type);
}

/// layer_norm over groups of each example's channels.
LazyTensor grouped(const LazyTensor& x, std::int64_t groups, double eps) {
  const std::int64_t batch = x.shape(0);
  const std::int64_t values = x.numel() == 0 ? 0 : x.numel() / (batch * groups);
  LazyTensor y = astype(x, compute_type(x.dtype()));
  if (x.numel() == 0) return y;
  return reshape(layer_norm(reshape(y, Shape{batch, groups, values}), eps), x.shape());
}

/// One step of an exponential average, in the type of the average.
LazyTensor moved(const LazyTensor& running, const LazyTensor& now, double momentum) {
  if (!running.defined()) return running;
  const LazyTensor before = astype(running, now.dtype());
  return astype(before * (1 - momentum) + now * momentum, running.dtype());
}

}  // namespace

BatchNormResult batch_norm(const LazyTensor& x, const LazyTensor& running_mean, const LazyTensor& running_var,
                           const LazyTensor& weight, const LazyTensor& bias,
                           const BatchNormOptions& options) {
  constexpr const char* kOp = "batch_norm";
  check_image(kOp, x, 2);
  check_eps(kOp, options.eps);
  check_channels(kOp, "running_mean", x, running_mean);
  check_channels(kOp, "running_var", x, running_var);
  const LazyTensor y = astype(x, compute_type(x.dtype()));
  BatchNormResult out{{}, running_mean, running_var};
  LazyTensor centre, variance;  // (1, channels, 1, ...)
  if (options.training) {
    const std::int64_t count = x.numel() / std::max<std::int64_t>(1, x.shape(1));
    if (count < 2 && x.shape(1) > 0)
      throw ShapeError(fmt::format("batch_norm: {} has {} values a channel; training needs at least 2",
                                   x.shape().to_string(), count));
    std::vector<int> others{0};
    for (int i = 2; i < x.rank(); ++i) others.push_back(i);
    centre = mean(y, others, true);
    variance = var(y, others, 0, true);
    const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
    const Shape channels{x.shape(1)};
    out.running_mean = moved(running_mean, reshape(centre, channels), options.momentum);
    out.running_var = moved(running_var, reshape(variance, channels) * unbiased, options.momentum);
  } else {
    if (!running_mean.defined() || !running_var.defined())
      throw ValueError("batch_norm: running statistics are not given, and it is not training");
    centre = across(astype(running_mean, y.dtype()), x);
    variance = across(astype(running_var, y.dtype()), x);
  }
  out.output = scaled(kOp, x, (y - centre) * rsqrt(variance + options.eps), weight, bias);
  return out;
}

LazyTensor group_norm(const LazyTensor& x, std::int64_t groups, const LazyTensor& weight,
                      const LazyTensor& bias, double eps) {
  check_image("group_norm", x, 2);
  check_eps("group_norm", eps);
  if (groups < 1 || x.shape(1) % groups != 0)
    throw ShapeError(
        fmt::format("group_norm: {} groups do not divide the channels of {}", groups, x.shape().to_string()));
  return scaled("group_norm", x, grouped(x, groups, eps), weight, bias);
}

LazyTensor instance_norm(const LazyTensor& x, const LazyTensor& weight, const LazyTensor& bias, double eps) {
  check_image("instance_norm", x, 3);
  check_eps("instance_norm", eps);
  if (x.numel() > 0 && x.numel() == x.shape(0) * x.shape(1))
    throw ShapeError(fmt::format("instance_norm: {} has one value a channel, which is its own mean",
                                 x.shape().to_string()));
  return scaled("instance_norm", x, grouped(x, std::max<std::int64_t>(1, x.shape(1)), eps), weight, bias);
}

}  // namespace caldera
