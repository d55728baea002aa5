#include "engine/autodiff/forward.h"

#include <fmt/core.h>

#include <memory>
#include <unordered_map>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/opaque_call.h"
#include "engine/autodiff/snapshot.h"
#include "engine/autodiff/trace_scope.h"
#include "engine/autodiff/written_softmax.h"
#include "engine/graph/jvp.h"
#include "engine/graph/vjp.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/nn/softmax.h"

namespace caldera {
namespace {

void check_tangents(std::span<const LazyTensor> inputs, std::span<const LazyTensor> tangents,
                    std::string_view transform) {
  if (inputs.size() != tangents.size()) {
    throw ShapeError(fmt::format("{}: {} inputs but {} tangents", transform, inputs.size(), tangents.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_floating(inputs[i].dtype()) || !tangents[i].defined()) continue;
    throw GradientError(
        fmt::format("{}: input {} of shape {} is {}; only floating tensors have tangents, give an empty one",
                    transform, i, inputs[i].shape().to_string(), name(inputs[i].dtype())));
  }
}

/// The Jacobian of an element-wise operation is diagonal, so the gradient rule for an input, given that
/// input's tangent for a cotangent, is its share of the tangent.
LazyTensor elementwise_tangent(const LazyTensor& output, std::span<const LazyTensor> inputs,
                               std::span<const LazyTensor> tangents, std::string_view transform) {
  const auto needed = std::make_unique<bool[]>(inputs.size());
  LazyTensor total;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!tangents[i].defined()) continue;
    needed[i] = true;
    const LazyTensor along = astype(broadcast_to(tangents[i], output.shape()), output.dtype());
    VjpContext context{.inputs = inputs,
                       .output = output,
                       .cotangent = along,
                       .needed = {needed.get(), inputs.size()},
                       .grads = std::vector<LazyTensor>(inputs.size())};
    output.node().op().vjp(context);
    needed[i] = false;
    if (!context.grads[i].defined()) {
      throw GradientError(fmt::format("{}: the gradient rule of '{}' gives nothing for its input {}",
                                      transform, output.node().op().name, i));
    }
    const LazyTensor share = astype(context.grads[i], output.dtype());
    total = total.defined() ? total + share : share;
  }
  return total;
}

class Forward {
 public:
  Forward(Snapshot& s, std::string_view transform) : s_(s), transform_(transform), slots_(s.entries.size()) {}

  void add(std::size_t at, const LazyTensor& tangent) {
    slots_[at] = slots_[at].defined() ? slots_[at] + tangent : tangent;
  }
  const LazyTensor& operator[](std::size_t at) const { return slots_[at]; }

  void run() {
    for (std::size_t i = 0; i < s_.entries.size(); ++i) {
      const Snapshot::Entry& entry = s_.entries[i];
      if (!entry.depends || !carries_gradient(entry.tensor)) continue;
      if (is_result(entry.tensor.node())) {
        take_result(i);
        continue;
      }
      if (!has_tangent(entry)) continue;
      if (entry.tensor.node().is_call()) {
        push_call(i);
        continue;
      }
      add(i, fitted(tangent_of(i), entry.tensor));
    }
  }

 private:
  /// What the rule of an operation gave, in the dtype of its value.
  LazyTensor fitted(const LazyTensor& tangent, const LazyTensor& value) const {
    const bool fits = tangent.shape() == value.shape() && tangent.device() == value.device() &&
                      !tangent.node().is_scalar_leaf();
    if (fits) return astype(tangent, value.dtype());
    return derivative_of(
        value, tangent,
        fmt::format("{}: what the tangent rule of '{}' gave", transform_, value.node().op().name),
        "its value");
  }

  bool has_tangent(const Snapshot::Entry& entry) const {
    for (std::uint32_t input : entry.inputs) {
      if (slots_[input].defined()) return true;
    }
    return false;
  }

  std::vector<LazyTensor> tangents_into(const Snapshot::Entry& entry) const {
    std::vector<LazyTensor> tangents;
    tangents.reserve(entry.inputs.size());
    for (std::uint32_t input : entry.inputs) tangents.push_back(slots_[input]);
    return tangents;
  }

  void push_call(std::size_t i) {
    const Snapshot::Entry& entry = s_.entries[i];
    const std::vector<LazyTensor> inputs = s_.inputs_of(entry);
    const Call call = take_apart(entry.tensor, inputs);
    results_[i] = entry.tensor.node().call_rule()->push_forward(call, tangents_into(entry), transform_);
  }

  /// The tangent of one result of a call.
  void take_result(std::size_t i) {
    const Snapshot::Entry& entry = s_.entries[i];
    if (entry.inputs.empty()) return;  // evaluated before: a constant, or the target itself
    const auto call = results_.find(entry.inputs[1]);
    if (call == results_.end()) return;
    const LazyTensor& tangent = call->second[result_index(entry.tensor.node())];
    if (tangent.defined()) add(i, astype(tangent, entry.tensor.dtype()));
  }

  LazyTensor tangent_of(std::size_t i) {
    const Snapshot::Entry& entry = s_.entries[i];
    const OpDef& op = entry.tensor.node().op();
    const auto softmax = read_softmax(s_, static_cast<std::uint32_t>(i));
    if (softmax && slots_[softmax->x].defined()) {
      return ops::softmax_derivative(entry.tensor, slots_[softmax->x], softmax->axis);
    }
    const std::vector<LazyTensor> inputs = s_.inputs_of(entry);
    const std::vector<LazyTensor> tangents = tangents_into(entry);
    if (op.jvp != nullptr) {
      JvpContext context{.inputs = inputs, .output = entry.tensor, .tangents = tangents, .tangent = {}};
      op.jvp(context);
      return context.tangent;
    }
    if (op.kind == OpClass::elementwise && op.vjp != nullptr) {
      return elementwise_tangent(entry.tensor, inputs, tangents, transform_);
    }
    throw NoTangentRule(
        fmt::format("{}: '{}' has no tangent rule (shape {}); use stop_gradient if its inputs are constants",
                    transform_, op.name, entry.tensor.shape().to_string()));
  }

  Snapshot& s_;
  std::string_view transform_;
  std::vector<LazyTensor> slots_;                                     // tangents; empty where zero
  std::unordered_map<std::size_t, std::vector<LazyTensor>> results_;  // of calls: tangents of their results
};

}  // namespace

std::vector<LazyTensor> push_forward(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                                     std::span<const LazyTensor> tangents, std::string_view transform) {
  check_defined(outputs, transform, "output");
  check_defined(inputs, transform, "input");
  check_tangents(inputs, tangents, transform);
  std::vector<LazyTensor> targets, along;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!tangents[i].defined()) continue;
    targets.push_back(inputs[i]);
    along.push_back(derivative_of(inputs[i], tangents[i], fmt::format("{}: tangent {}", transform, i),
                                  fmt::format("input {}", i)));
  }
  std::vector<LazyTensor> out;
  out.reserve(outputs.size());
  Snapshot s = take_snapshot(outputs, targets);
  mark_differentiable(s, transform);
  Forward forward(s, transform);
  for (std::size_t k = 0; k < targets.size(); ++k) {
    if (s.targets[k] >= 0) forward.add(static_cast<std::size_t>(s.targets[k]), along[k]);
  }
  forward.run();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const LazyTensor& tangent = forward[s.outputs[k]];
    out.push_back(tangent.defined() ? tangent : zeros_like(outputs[k]));
  }
  return out;
}

std::pair<std::vector<LazyTensor>, std::vector<LazyTensor>> value_and_tangents(
    const VectorFunction& function, std::span<const LazyTensor> primals, std::span<const LazyTensor> tangents,
    std::string_view transform) {
  check_callable(function, transform);
  check_defined(primals, transform, "argument");
  check_tangents(primals, tangents, transform);
  const TraceScope scope;
  const std::vector<LazyTensor> traced = scope.traced(primals);
  std::vector<LazyTensor> outputs = function(traced);
  check_defined(outputs, transform, "result");
  std::vector<LazyTensor> along = push_forward(outputs, traced, tangents, transform);
  return {std::move(outputs), std::move(along)};
}

}  // namespace caldera
