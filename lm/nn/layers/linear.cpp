#include "lm/nn/layers/linear.h"

#include <fmt/format.h>

#include <cmath>

#include "lm/nn/init.h"
#include "lm/nn/precision.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/quantized/quantized_products.h"
#include "ops/random/generator.h"
#include "ops/random/uniform_normal.h"

namespace caldera {

namespace {

void require_floating(const char* what, const LazyTensor& tensor) {
  if (!is_floating(tensor.dtype()))
    throw DTypeError(fmt::format("Linear: the {} is {}, not floating", what, name(tensor.dtype())));
}

}  // namespace

Linear::Linear(LazyTensor weight, LazyTensor bias) : weight_{std::move(weight)}, bias_{std::move(bias)} {
  if (this->weight().rank() != 2)
    throw ShapeError(
        fmt::format("Linear: weight {} is not a matrix (out, in)", this->weight().shape().to_string()));
  if (this->bias().defined() && this->bias().shape() != Shape{out_features()})
    throw ShapeError(fmt::format("Linear: bias {} does not fit weight {}", this->bias().shape().to_string(),
                                 this->weight().shape().to_string()));
  require_floating("weight", this->weight());
  if (this->bias().defined()) require_floating("bias", this->bias());
}

Linear::Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options) {
  if (in_features < 1 || out_features < 1)
    throw ValueError(
        fmt::format("Linear: widths {} and {}: both must be positive", in_features, out_features));
  const Device device = options.device.value_or(default_device());
  const std::uint64_t seed = options.seed ? *options.seed : next_seed();
  const double bound = 1 / std::sqrt(static_cast<double>(in_features));
  weight_.tensor = uniform_init(Shape{out_features, in_features}, bound, mix_seed(seed, 0), device);
  if (options.bias) bias_.tensor = uniform_init(Shape{out_features}, bound, mix_seed(seed, 1), device);
  materialize();
}

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool bias, double std, std::uint64_t seed,
               Device device)
    : Linear(normal_init(Shape{out_features, in_features}, std, seed, device),
             bias ? LazyTensor::zeros(Shape{out_features}, DType::f32, device) : LazyTensor{}) {}

LazyTensor Linear::forward(const LazyTensor& x) {
  if (x.rank() == 0 || x.shape(-1) != in_features())
    throw ShapeError(fmt::format("Linear: input {} does not end in the {} features that weight {} takes",
                                 x.shape().to_string(), in_features(), weight_.shape().to_string()));
  const LazyTensor y = weight_.is_quantized() ? quantized_matmul(x, weight_.quantized)
                                              : matmul(x, transpose(cast_like(weight(), x)));
  return bias().defined() ? y + cast_like(bias(), x) : y;
}

std::optional<LazyTensor> Linear::matrix() {
  if (weight_.is_quantized() || bias_.tensor.defined()) return std::nullopt;
  return weight_.tensor;
}

void Linear::visit(const std::string& prefix, ParameterVisitor& visitor) {
  visitor.matrix(join_name(prefix, "weight"), weight_);
  if (bias().defined()) visitor.parameter(join_name(prefix, "bias"), bias_);
}

}  // namespace caldera
