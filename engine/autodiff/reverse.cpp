#include "engine/autodiff/reverse.h"

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <unordered_map>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/opaque_call.h"
#include "engine/autodiff/trace_scope.h"
#include "engine/autodiff/written_softmax.h"
#include "engine/graph/vjp.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/sum.h"
#include "ops/nn/softmax.h"

namespace caldera {
namespace {

void accumulate(LazyTensor& slot, const LazyTensor& g) { slot = slot.defined() ? slot + g : g; }

/// What the rule of `op` gave for its input `i`, brought to that input's shape, dtype and device. Only scalar
/// leaves need another shape: element-wise operations take them unbroadcast.
LazyTensor fitted(LazyTensor g, const LazyTensor& input, const OpDef& op, std::size_t i,
                  std::string_view transform) {
  if (g.shape() != input.shape() && input.rank() == 0) g = sum(g);
  const bool fits = g.shape() == input.shape() && g.device() == input.device() && !g.node().is_scalar_leaf();
  if (fits) return astype(g, input.dtype());
  return derivative_of(
      input, g, fmt::format("{}: what the gradient rule of '{}' gave for input {}", transform, op.name, i),
      "the input");
}

void apply_rule(const Snapshot& s, std::size_t position, std::vector<LazyTensor>& cotangents,
                std::string_view transform) {
  const Snapshot::Entry& entry = s.entries[position];
  const OpDef& op = entry.tensor.node().op();
  if (op.vjp == nullptr) {
    throw NoGradientRule(
        fmt::format("{}: '{}' has no gradient rule (shape {}); use stop_gradient if its inputs are constants",
                    transform, op.name, entry.tensor.shape().to_string()));
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
          fmt::format("{}: the rule of '{}' gives no gradient for its input {}", transform, op.name, i));
    }
    accumulate(cotangents[entry.inputs[i]], fitted(context.grads[i], inputs[i], op, i, transform));
  }
}

/// The walk from outputs to inputs.
class Reverse {
 public:
  Reverse(const Snapshot& s, std::string_view transform)
      : s_(s), transform_(transform), slots_(s.entries.size()) {}

  /// The cotangent has the shape, the dtype and the device of the entry.
  void add(std::size_t at, const LazyTensor& cotangent) { accumulate(slots_[at], cotangent); }
  const LazyTensor& operator[](std::size_t at) const { return slots_[at]; }

  void run() {
    for (std::size_t i = s_.entries.size(); i-- > 0;) {
      const Snapshot::Entry& entry = s_.entries[i];
      if (entry.tensor.node().is_call()) pull_call(i);
      if (!slots_[i].defined()) continue;
      if (s_.has_path(entry) && carries_gradient(entry.tensor)) pull(i);
      if (!entry.is_target) slots_[i] = LazyTensor();  // frees memory of long chains as the walk passes
    }
  }

 private:
  void pull(std::size_t i) {
    const Snapshot::Entry& entry = s_.entries[i];
    if (is_result(entry.tensor.node())) {  // waits for the other results of its call
      std::vector<LazyTensor>& waiting = waiting_[entry.inputs[1]];
      const std::size_t k = result_index(entry.tensor.node());
      if (waiting.size() <= k) waiting.resize(k + 1);
      accumulate(waiting[k], slots_[i]);
      return;
    }
    if (entry.tensor.node().op().kind == OpClass::barrier) {
      if (s_.entries[entry.inputs[0]].depends) add(entry.inputs[0], slots_[i]);
      return;
    }
    const auto softmax = read_softmax(s_, static_cast<std::uint32_t>(i));
    if (!softmax || !s_.entries[softmax->x].depends) {
      apply_rule(s_, i, slots_, transform_);
      return;
    }
    add(softmax->x, ops::softmax_derivative(entry.tensor, slots_[i], softmax->axis));
  }

  void pull_call(std::size_t i) {
    const auto found = waiting_.find(static_cast<std::uint32_t>(i));
    if (found == waiting_.end()) return;
    const std::vector<LazyTensor> inputs = s_.inputs_of(s_.entries[i]);
    const Call call = take_apart(s_.entries[i].tensor, inputs);
    std::vector<LazyTensor> cotangents = std::move(found->second);
    waiting_.erase(found);
    cotangents.resize(call.values.size());
    const auto is_wanted = [&](const LazyTensor& x) {
      const auto at = position(x);
      return at && s_.entries[*at].depends;
    };
    const CallRule& rule = *call.node.node().call_rule();
    for (const auto& [x, cotangent] : rule.pull_back(call, cotangents, is_wanted, transform_)) {
      if (is_wanted(x)) add(*position(x), cotangent);
    }
  }

  std::optional<std::size_t> position(const LazyTensor& x) {
    if (positions_.empty()) {
      for (std::size_t i = 0; i < s_.entries.size(); ++i) positions_[s_.entries[i].tensor.node_id()] = i;
    }
    const auto found = positions_.find(x.node_id());
    if (found == positions_.end()) return std::nullopt;
    return found->second;
  }

  const Snapshot& s_;
  std::string_view transform_;
  std::vector<LazyTensor> slots_;                                       // cotangents; empty where zero
  std::unordered_map<std::uint32_t, std::vector<LazyTensor>> waiting_;  // of the results of calls
  std::unordered_map<std::uint64_t, std::size_t> positions_;            // by node; made when first needed
};

}  // namespace

std::vector<LazyTensor> pull_back(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                                  std::span<const LazyTensor> cotangents, std::string_view transform,
                                  Targets targets) {
  check_defined(outputs, transform, "output");
  check_defined(inputs, transform, "input");
  if (cotangents.size() != outputs.size()) {
    throw ShapeError(
        fmt::format("{}: {} outputs but {} cotangents", transform, outputs.size(), cotangents.size()));
  }
  check_defined(cotangents, transform, "cotangent");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_floating(inputs[i].dtype())) continue;
    throw GradientError(fmt::format("{}: input {} of shape {} is {}; only floating tensors have gradients",
                                    transform, i, inputs[i].shape().to_string(), name(inputs[i].dtype())));
  }
  Snapshot s = take_snapshot(outputs, inputs, targets);
  mark_differentiable(s, transform);
  Reverse reverse(s, transform);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const LazyTensor along =
        derivative_of(outputs[k], cotangents[k], fmt::format("{}: cotangent {}", transform, k),
                      fmt::format("output {}", k));
    if (s.entries[s.outputs[k]].depends) reverse.add(s.outputs[k], along);
  }
  reverse.run();
  std::vector<LazyTensor> grads(inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (s.targets[k] >= 0) grads[k] = reverse[static_cast<std::size_t>(s.targets[k])];
  }
  return grads;
}

void check_scalar(const LazyTensor& output, std::string_view transform) {
  if (output.numel() == 1 && is_floating(output.dtype())) return;
  throw GradientError(
      fmt::format("{}: the output must be one floating number, got shape {} of {}; reduce it first "
                  "(sum, mean) or use vjp",
                  transform, output.shape().to_string(), name(output.dtype())));
}

std::pair<LazyTensor, std::vector<LazyTensor>> value_and_gradients(const TensorFunction& function,
                                                                   std::span<const LazyTensor> arguments,
                                                                   std::string_view transform) {
  check_callable(function, transform);
  check_defined(arguments, transform, "argument");
  const TraceScope scope;
  const std::vector<LazyTensor> traced = scope.traced(arguments);
  const FloatingTensors varied(traced, transform);
  const LazyTensor value = function(traced);
  check_defined({&value, 1}, transform, "result");
  check_scalar(value, transform);
  const LazyTensor seed = ones_like(value);
  std::vector<LazyTensor> grads = pull_back({&value, 1}, varied.tensors, {&seed, 1}, transform);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) grads[i] = zeros_like(varied.tensors[i]);
  }
  return {value, std::move(grads)};
}

}  // namespace caldera
