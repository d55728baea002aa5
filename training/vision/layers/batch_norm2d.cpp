#include "training/vision/layers/batch_norm2d.h"

#include "engine/autodiff/custom_vjp.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/power.h"
#include "ops/reduce/mean.h"
#include "ops/reduce/statistics.h"

namespace caldera::vision {
namespace {

/// Of (images, channels, ...): all axes but that of the channels.
std::vector<int> axes_around(const LazyTensor& x) {
  std::vector<int> axes{0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

/// A value for each channel as it broadcasts to x.
LazyTensor along_channels(const LazyTensor& values, const LazyTensor& x) {
  Shape shape(Dims::filled(x.rank(), 1));
  shape[1] = x.shape(1);
  return reshape(values, shape);
}

struct BatchStatistics {
  LazyTensor mean, variance, inverse;  // (1, channels, 1, ...)
};
BatchStatistics statistics_of(const LazyTensor& x, double eps) {
  const std::vector<int> axes = axes_around(x);
  BatchStatistics s{mean(x, axes, true), var(x, axes, 0, true), {}};
  s.inverse = rsqrt(s.variance + eps);
  return s;
}

/// Normalises by the batch's statistics: x, weight, bias to y, mean and biased variance. Differentiated as a
/// whole: with u the normalised x, n values a channel and the cotangent g, the bias's gradient is sum g, the
/// weight's sum g u, and x's weight / deviation * (g - (sum g + u sum g u) / n) (Ioffe and Szegedy 2015): two
/// sums, where the chain of operations has five.
VectorFunction normalisation(double eps) {
  return custom_vjp(CustomVjp{
      .name = "batch norm",
      .forward =
          [eps](std::span<const LazyTensor> in) {
            const LazyTensor& x = in[0];
            const BatchStatistics s = statistics_of(x, eps);
            const Shape channels{x.shape(1)};
            return std::vector<LazyTensor>{
                (x - s.mean) * (s.inverse * along_channels(in[1], x)) + along_channels(in[2], x),
                reshape(s.mean, channels), reshape(s.variance, channels)};
          },
      .backward =
          [eps](std::span<const LazyTensor> in, std::span<const LazyTensor> /*results*/,
                std::span<const LazyTensor> along) {
            const LazyTensor &x = in[0], &g = along[0];
            const BatchStatistics s = statistics_of(x, eps);
            const std::vector<int> axes = axes_around(x);
            const Shape channels{x.shape(1)};
            const double n = static_cast<double>(x.numel()) / static_cast<double>(x.shape(1));
            const LazyTensor of_bias = sum(g, axes, true),
                             of_weight = sum(g * (x - s.mean), axes, true) * s.inverse;
            const LazyTensor scale = s.inverse * along_channels(in[1], x);
            const LazyTensor of_x =
                g * scale - ((x - s.mean) * (scale * s.inverse * of_weight / n) + scale * of_bias / n);
            return std::vector<LazyTensor>{of_x, reshape(of_weight, channels), reshape(of_bias, channels)};
          }});
}

}  // namespace

BatchNorm2d::BatchNorm2d(std::int64_t channels, Device device, double eps, double momentum)
    : weight_{LazyTensor::ones(Shape{channels}, DType::f32, device)},
      bias_{LazyTensor::zeros(Shape{channels}, DType::f32, device)},
      mean_{.tensor = LazyTensor::zeros(Shape{channels}, DType::f32, device), .trainable = false},
      variance_{.tensor = LazyTensor::ones(Shape{channels}, DType::f32, device), .trainable = false},
      eps_(eps),
      momentum_(momentum) {}

LazyTensor BatchNorm2d::forward(const LazyTensor& x) {
  // Statistics are the past's: no gradient goes through them.
  const LazyTensor mean_before = mean_.tensor.detach(), variance_before = variance_.tensor.detach();
  const bool is_whole = x.dtype() == weight_.tensor.dtype() && x.dtype() == mean_before.dtype();
  if (!is_training() || !is_whole) {
    const BatchNormResult result =
        batch_norm(x, mean_before, variance_before, weight_.tensor, bias_.tensor,
                   {.training = is_training(), .momentum = momentum_, .eps = eps_});
    if (is_training()) {
      mean_.tensor = result.running_mean;
      variance_.tensor = result.running_var;
    }
    return result.output;
  }
  const double n = static_cast<double>(x.numel()) / static_cast<double>(x.shape(1));
  if (n < 2)
    throw ShapeError("BatchNorm2d: " + x.shape().to_string() +
                     " has one value a channel; training needs at least 2");
  const std::vector<LazyTensor> results = normalisation(eps_)(std::vector{x, weight_.tensor, bias_.tensor});
  mean_.tensor = mean_before * (1 - momentum_) + results[1].detach() * momentum_;
  variance_.tensor = variance_before * (1 - momentum_) + results[2].detach() * (n / (n - 1) * momentum_);
  return results[0];
}

void BatchNorm2d::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.parameter(join_name(prefix, "weight"), weight_);
  visitor.parameter(join_name(prefix, "bias"), bias_);
  visitor.parameter(join_name(prefix, "running_mean"), mean_);
  visitor.parameter(join_name(prefix, "running_var"), variance_);
}

std::vector<LazyTensor> running_statistics(Module& model) {
  std::vector<LazyTensor> all;
  for (const Parameter& p : model.parameters()) {
    if (!p.trainable && !p.tensor->is_evaluated()) all.push_back(*p.tensor);
  }
  return all;
}

}  // namespace caldera::vision
