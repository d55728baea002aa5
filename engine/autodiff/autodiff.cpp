#include "engine/autodiff/autodiff.h"

#include <fmt/core.h>

#include <memory>

#include "engine/autodiff/snapshot.h"
#include "engine/autodiff/traced.h"
#include "engine/autodiff/written_softmax.h"
#include "engine/graph/vjp.h"
#include "ops/ops.h"

namespace caldera {
namespace {

/// Adds `g` to the cotangent in `slot`, brought to the shape and dtype of the value it belongs to. Only
/// scalar leaves need that: element-wise operations take them unbroadcast.
void accumulate(LazyTensor& slot, LazyTensor g, const LazyTensor& value) {
  if (g.shape() != value.shape() && value.rank() == 0) g = sum(g);
  if (g.shape() != value.shape()) {
    throw ShapeError(fmt::format("grad: a rule gave shape {} for a value of shape {}", g.shape().to_string(),
                                 value.shape().to_string()));
  }
  g = astype(g, value.dtype());
  slot = slot.defined() ? slot + g : g;
}

void apply_rule(Snapshot& s, std::size_t position, std::vector<LazyTensor>& cotangents) {
  const Snapshot::Entry& entry = s.entries[position];
  const OpDef& op = entry.tensor.node().op();
  if (op.vjp == nullptr) {
    throw GradientError(fmt::format(
        "grad: '{}' has no gradient rule (shape {}); use stop_gradient if its inputs are constants", op.name,
        entry.tensor.shape().to_string()));
  }
  const std::size_t count = entry.inputs.size();
  const std::vector<LazyTensor> inputs = s.inputs_of(entry);
  const auto needed = std::make_unique<bool[]>(count);
  for (std::size_t i = 0; i < count; ++i) needed[i] = s.entries[entry.inputs[i]].depends;
  VjpContext context{.inputs = inputs,
                     .output = entry.tensor,
                     .cotangent = cotangents[position],
                     .needed = {needed.get(), count},
                     .grads = std::vector<LazyTensor>(count)};
  op.vjp(context);
  for (std::size_t i = 0; i < count; ++i) {
    if (!needed[i]) continue;
    if (!context.grads[i].defined()) {
      throw GradientError(
          fmt::format("grad: the rule of '{}' gives no gradient for its input {}", op.name, i));
    }
    accumulate(cotangents[entry.inputs[i]], context.grads[i], inputs[i]);
  }
}

/// The gradient of each input; undefined where no output depends on it.
std::vector<LazyTensor> pull_back(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                                  std::span<const LazyTensor> cotangents) {
  if (cotangents.size() != outputs.size()) {
    throw ShapeError(fmt::format("vjp: {} outputs but {} cotangents", outputs.size(), cotangents.size()));
  }
  for (const LazyTensor& input : inputs) {
    if (!is_floating(input.dtype())) {
      throw GradientError(
          fmt::format("grad: an input of shape {} is {}; only floating tensors have gradients",
                      input.shape().to_string(), name(input.dtype())));
    }
  }
  Snapshot s = take_snapshot(outputs, inputs);
  mark_differentiable(s, "grad");

  std::vector<LazyTensor> slots(s.entries.size());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (cotangents[k].shape() != outputs[k].shape()) {
      throw ShapeError(fmt::format("vjp: cotangent {} does not have the output's shape {}",
                                   cotangents[k].shape().to_string(), outputs[k].shape().to_string()));
    }
    if (s.entries[s.outputs[k]].depends) accumulate(slots[s.outputs[k]], cotangents[k], outputs[k]);
  }
  std::vector<LazyTensor> grads(inputs.size());
  for (std::size_t i = s.entries.size(); i-- > 0;) {
    if (!slots[i].defined()) continue;
    const Snapshot::Entry& entry = s.entries[i];
    if (s.has_path(entry) && carries_gradient(entry.tensor)) {
      const auto softmax = read_softmax(s, static_cast<std::uint32_t>(i));
      if (softmax && s.entries[softmax->x].depends) {
        const LazyTensor& p = entry.tensor;
        const LazyTensor mean_cotangent = sum(p * slots[i], softmax->axis, true);
        accumulate(slots[softmax->x], p * (slots[i] - mean_cotangent), s.entries[softmax->x].tensor);
      } else {
        apply_rule(s, i, slots);
      }
    }
    if (!entry.is_target) slots[i] = LazyTensor();  // frees memory of long chains as the walk passes
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (s.targets[k] >= 0) grads[k] = slots[static_cast<std::size_t>(s.targets[k])];
  }
  return grads;
}

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
