#include "engine/autodiff/jvp.h"

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/forward.h"
#include "engine/autodiff/reverse.h"

namespace caldera {

std::vector<LazyTensor> jvp(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                            std::span<const LazyTensor> tangents) {
  return push_forward(outputs, inputs, tangents, "jvp");
}

std::pair<std::vector<LazyTensor>, std::vector<LazyTensor>> jvp(const VectorFunction& function,
                                                                std::span<const LazyTensor> primals,
                                                                std::span<const LazyTensor> tangents) {
  return value_and_tangents(function, primals, tangents, "jvp");
}

std::pair<LazyTensor, LazyTensor> jvp(const TensorFunction& function, std::span<const LazyTensor> primals,
                                      std::span<const LazyTensor> tangents) {
  const auto [outputs, along] = jvp(as_vector_function(function), primals, tangents);
  return {outputs[0], along[0]};
}

std::vector<LazyTensor> hvp(const TensorFunction& function, std::span<const LazyTensor> primals,
                            std::span<const LazyTensor> tangents) {
  check_callable(function, "hvp");
  check_defined(primals, "hvp", "argument");
  const FloatingTensors varied(primals, "hvp");
  const VectorFunction gradients = [&](std::span<const LazyTensor> arguments) {
    return value_and_gradients(function, arguments, "hvp").second;
  };
  return varied.spread(value_and_tangents(gradients, primals, tangents, "hvp").second, primals.size());
}

}  // namespace caldera
