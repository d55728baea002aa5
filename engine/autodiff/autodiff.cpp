#include "engine/autodiff/autodiff.h"

#include <fmt/core.h>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/reverse.h"
#include "ops/core/creation.h"

namespace caldera {

std::vector<LazyTensor> vjp(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                            std::span<const LazyTensor> cotangents) {
  std::vector<LazyTensor> grads = pull_back(outputs, inputs, cotangents, "vjp");
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) grads[i] = zeros_like(inputs[i]);
  }
  return grads;
}

std::vector<LazyTensor> grad(const LazyTensor& output, std::span<const LazyTensor> inputs) {
  check_defined({&output, 1}, "grad", "output");
  check_scalar(output, "grad");
  const LazyTensor seed = ones_like(output);
  std::vector<LazyTensor> grads = pull_back({&output, 1}, inputs, {&seed, 1}, "grad");
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
  auto [value, grads] = value_and_gradients(function, arguments, "value_and_grad");
  return {value, FloatingTensors(arguments, "value_and_grad").spread(grads, arguments.size())};
}

}  // namespace caldera
