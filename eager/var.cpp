#include "eager/var.h"

#include <fmt/format.h>

#include "eager/errors.h"
#include "engine/autodiff/autodiff.h"
#include "engine/graph/histories.h"
#include "ops/core/views.h"

namespace caldera::v1 {

const Tensor& Var::tensor() const {
  if (!cell_) throw Error("this Var is empty: make it from a Tensor before using it");
  return *cell_;
}

void Var::set(const Tensor& value) const {
  const Tensor& old = tensor();
  if (value.shape() != old.shape())
    throw ShapeError(fmt::format("Var::set: the value has shape {}, the variable {}",
                                 value.shape().to_string(), old.shape().to_string()));
  if (value.dtype() != old.dtype())
    throw DTypeError(fmt::format("Var::set: the value is {}, the variable {}; convert it with astype",
                                 name(value.dtype()), name(old.dtype())));
  if (value.lazy().device() != old.lazy().device())
    throw caldera::DeviceError(
        fmt::format("Var::set: the value lies on {}, the variable on {}; move it with "
                    "to_device",
                    value.lazy().device().to_string(), old.lazy().device().to_string()));
  *cell_ = value;
}

/// Lends variables other values for the length of a scope: the arguments that differentiation traces.
class VarBinding {
 public:
  VarBinding(std::span<const Var> variables, std::span<const LazyTensor> values) : variables_(variables) {
    std::vector<Tensor> lent;
    for (std::size_t i = 0; i < variables.size(); ++i) {
      saved_.push_back(*variables[i].cell_);
      lent.emplace_back(values[i]);
    }
    // From here on nothing throws: a half-bound set would not be restored.
    for (std::size_t i = 0; i < variables.size(); ++i) std::swap(*variables[i].cell_, lent[i]);
  }
  ~VarBinding() {
    for (std::size_t i = 0; i < variables_.size(); ++i) *variables_[i].cell_ = saved_[i];
  }
  VarBinding(const VarBinding&) = delete;
  VarBinding& operator=(const VarBinding&) = delete;

 private:
  std::span<const Var> variables_;
  std::vector<Tensor> saved_;
};

std::pair<Tensor, std::vector<Tensor>> value_and_grad(const std::function<Tensor()>& loss,
                                                      std::span<const Var> variables) {
  std::vector<LazyTensor> arguments;
  arguments.reserve(variables.size());
  for (const Var& variable : variables) {
    arguments.push_back(variable.tensor().lazy());
    if (is_floating(arguments.back().dtype())) continue;
    throw GradientError(fmt::format(
        "value_and_grad: variable {} of shape {} is {}; only floating ones have gradients",
        arguments.size() - 1, arguments.back().shape().to_string(), name(arguments.back().dtype())));
  }

  auto [value, grads] = caldera::value_and_grad(
      [&](std::span<const LazyTensor> traced) {
        const VarBinding binding(variables, traced);
        const Tensor result = loss();
        if (result.numel() != 1)
          throw TrainingError::gradient(
              fmt::format("the loss has shape {}, want a scalar; reduce it with sum "
                          "or mean",
                          result.shape().to_string()));
        return reshape(result.lazy(), Shape());
      },
      arguments);

  std::vector<LazyTensor> outputs(grads);
  outputs.push_back(value);
  eval(outputs);
  // Inside another value_and_grad the results keep their history: they can be differentiated again.
  std::vector<Tensor> results;
  results.reserve(grads.size());
  for (const LazyTensor& grad : grads) results.push_back(Tensor::of_call(grad));
  return {Tensor::of_call(value), std::move(results)};
}

}  // namespace caldera::v1
