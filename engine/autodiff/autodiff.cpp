#include "engine/autodiff/autodiff.h"

#include <fmt/core.h>

#include "engine/autodiff/reverse.h"
#include "engine/autodiff/traced.h"
#include "ops/ops.h"

namespace caldera {
namespace {

void check_scalar(const LazyTensor& output) {
  if (output.numel() == 1 && is_floating(output.dtype())) return;
  throw GradientError(
      fmt::format("grad: the output must be one floating number, got shape {} of {}; reduce it first "
                  "(sum, mean) or use vjp",
                  output.shape().to_string(), name(output.dtype())));
}

}  // namespace

std::vector<LazyTensor> vjp(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                            std::span<const LazyTensor> cotangents) {
  std::vector<LazyTensor> grads = pull_back(outputs, inputs, cotangents);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) grads[i] = zeros_like(inputs[i]);
  }
  return grads;
}

std::vector<LazyTensor> grad(const LazyTensor& output, std::span<const LazyTensor> inputs) {
  check_scalar(output);
  const LazyTensor seed = ones_like(output);
  std::vector<LazyTensor> grads = pull_back({&output, 1}, inputs, {&seed, 1});
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) continue;
    throw GradientError(
        fmt::format("grad: the output does not depend on input {} (shape {}); leave it out, or use vjp, "
                    "which gives zeros",
                    i, inputs[i].shape().to_string()));
  }
  return grads;
}

std::vector<LazyTensor> grad(const LazyTensor& output, std::initializer_list<LazyTensor> inputs) {
  return grad(output, std::span<const LazyTensor>(inputs.begin(), inputs.size()));
}

LazyTensor grad(const LazyTensor& output, const LazyTensor& input) {
  return grad(output, std::span<const LazyTensor>(&input, 1))[0];
}

std::pair<LazyTensor, std::vector<LazyTensor>> value_and_grad(const TensorFunction& function,
                                                              std::span<const LazyTensor> arguments) {
  const TraceScope scope;
  const std::vector<LazyTensor> traced = scope.traced(arguments);
  const LazyTensor value = function(traced);
  check_scalar(value);
  const LazyTensor seed = ones_like(value);
  return {value, vjp({&value, 1}, traced, {&seed, 1})};
}

}  // namespace caldera
