#include "engine/autodiff/reverse.h"

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <unordered_map>

#include "engine/autodiff/call.h"
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

void apply_rule(const Snapshot& s, std::size_t position, std::vector<LazyTensor>& cotangents) {
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

/// The walk from outputs to inputs.
class Reverse {
 public:
  explicit Reverse(const Snapshot& s) : s_(s), slots_(s.entries.size()) {}

  void add(std::size_t at, const LazyTensor& cotangent) {
    accumulate(slots_[at], cotangent, s_.entries[at].tensor);
  }
  const LazyTensor& operator[](std::size_t at) const { return slots_[at]; }

  void run() {
    for (std::size_t i = s_.entries.size(); i-- > 0;) {
      const Snapshot::Entry& entry = s_.entries[i];
      if (is_call(entry.tensor.node())) pull_call(i);
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
      accumulate(waiting[k], slots_[i], entry.tensor);
      return;
    }
    if (entry.tensor.node().op().kind == OpClass::barrier) {
      if (s_.entries[entry.inputs[0]].depends) add(entry.inputs[0], slots_[i]);
      return;
    }
    const auto softmax = read_softmax(s_, static_cast<std::uint32_t>(i));
    if (!softmax || !s_.entries[softmax->x].depends) {
      apply_rule(s_, i, slots_);
      return;
    }
    const LazyTensor& p = entry.tensor;
    const LazyTensor mean_cotangent = sum(p * slots_[i], softmax->axis, true);
    add(softmax->x, p * (slots_[i] - mean_cotangent));
  }

  void pull_call(std::size_t i) {
    const auto found = waiting_.find(static_cast<std::uint32_t>(i));
    if (found == waiting_.end()) return;
    const std::vector<LazyTensor> inputs = s_.inputs_of(s_.entries[i]);
    const Call call(s_.entries[i].tensor, inputs);
    std::vector<LazyTensor> cotangents = std::move(found->second);
    waiting_.erase(found);
    cotangents.resize(call.values.size());
    const auto depends = [&](const LazyTensor& x) {
      const auto at = position(x);
      return at && s_.entries[*at].depends;
    };
    const bool is_custom = rule_of(call.node.node()) != nullptr;
    if (is_custom) check_captured(call, [&](std::size_t k) { return depends(call.values[k]); });
    for (const auto& [x, cotangent] :
         is_custom ? pull_back_custom(call, cotangents) : pull_back_checkpoint(call, cotangents, depends)) {
      if (depends(x)) add(*position(x), cotangent);
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
  std::vector<LazyTensor> slots_;                                       // cotangents; empty where zero
  std::unordered_map<std::uint32_t, std::vector<LazyTensor>> waiting_;  // of the results of calls
  std::unordered_map<std::uint64_t, std::size_t> positions_;            // by node; made when first needed
};

}  // namespace

std::vector<LazyTensor> pull_back(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                                  std::span<const LazyTensor> cotangents, Targets targets) {
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
  Snapshot s = take_snapshot(outputs, inputs, targets);
  mark_differentiable(s, "grad");
  Reverse reverse(s);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (cotangents[k].shape() != outputs[k].shape()) {
      throw ShapeError(fmt::format("vjp: cotangent {} does not have the output's shape {}",
                                   cotangents[k].shape().to_string(), outputs[k].shape().to_string()));
    }
    if (s.entries[s.outputs[k]].depends) reverse.add(s.outputs[k], cotangents[k]);
  }
  reverse.run();
  std::vector<LazyTensor> grads(inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (s.targets[k] >= 0) grads[k] = reverse[static_cast<std::size_t>(s.targets[k])];
  }
  return grads;
}

}  // namespace caldera
