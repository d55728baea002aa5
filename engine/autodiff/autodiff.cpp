#include "engine/autodiff/autodiff.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <unordered_map>

#include "engine/graph/trace.h"
#include "engine/graph/vjp.h"
#include "ops/build.h"
#include "ops/ops.h"

namespace caldera {
namespace {

void alias_vjp(VjpContext& c) { c.grads[0] = c.cotangent; }
const OpDef kTraced{.name = "traced", .kind = OpClass::identity, .vjp = alias_vjp};

/// The part of the graph between inputs and outputs, frozen so that it can be processed without the graph's
/// mutex.
struct Snapshot {
  struct Entry {
    LazyTensor tensor;
    std::vector<std::uint32_t> inputs;
    bool is_target = false;  // one of the inputs that the caller differentiates with respect to
    bool is_detached = false;
    bool depends = false;  // reached from a target through edges that carry a gradient
  };
  std::vector<Entry> entries;  // topological
  std::vector<std::uint32_t> outputs;
  std::vector<std::int64_t> targets;  // position of each input, -1 if no output reaches it
};

LazyTensor handle(Node* node) {
  node->add_ref();
  return LazyTensor(NodePtr(node));
}

bool carries_gradient(const LazyTensor& x) { return is_floating(x.dtype()) && !x.node().op().zero_gradient; }

Snapshot take_snapshot(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs) {
  Snapshot s;
  std::vector<Node*> roots;
  for (const LazyTensor& output : outputs) roots.push_back(&output.node());
  const std::scoped_lock lock(graph_mutex());
  const std::vector<Node*> order = topological_order(roots, [](const Node&) { return false; });
  const std::uint64_t walk = order.empty() ? 0 : order[0]->walk;
  s.entries.reserve(order.size());
  for (Node* node : order) {
    Snapshot::Entry entry;
    entry.tensor = handle(node);
    entry.is_detached = node->is_detached();
    for (const NodePtr& input : node->inputs()) entry.inputs.push_back(input->walk_index);
    s.entries.push_back(std::move(entry));
  }
  for (const Node* root : roots) s.outputs.push_back(root->walk_index);
  for (const LazyTensor& input : inputs) {
    const Node& node = input.node();
    const bool reached = node.walk == walk && !order.empty();
    s.targets.push_back(reached ? static_cast<std::int64_t>(node.walk_index) : -1);
    if (reached) s.entries[node.walk_index].is_target = true;
  }
  return s;
}

/// Marks what depends on a target. A value whose history was dropped may have depended on one, if it is
/// younger.
void mark_dependents(Snapshot& s, std::uint64_t oldest_target) {
  for (Snapshot::Entry& entry : s.entries) {
    if (entry.is_target) {
      entry.depends = true;
      continue;
    }
    if (!carries_gradient(entry.tensor)) continue;
    if (entry.is_detached && entry.tensor.node_id() > oldest_target) {
      throw GradientError(
          fmt::format("grad: the way to the inputs leads through a value of shape {} ({}) that was evaluated "
                      "before, so its history "
                      "is gone; differentiate before evaluating it, or use detach() if it is a constant",
                      entry.tensor.shape().to_string(), entry.tensor.node().op().name));
    }
    entry.depends = std::any_of(entry.inputs.begin(), entry.inputs.end(),
                                [&](std::uint32_t i) { return s.entries[i].depends; });
  }
}

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
  std::vector<LazyTensor> inputs;
  const auto needed = std::make_unique<bool[]>(count);
  for (std::size_t i = 0; i < count; ++i) {
    inputs.push_back(s.entries[entry.inputs[i]].tensor);
    needed[i] = s.entries[entry.inputs[i]].depends;
  }
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

/// A softmax written out, e / sum(e) with e = exp(x - max(x)) or exp(x): position of x, and the axis as the
/// mask of the reduction. Its value does not depend on the maximum, so its own rule is both shorter and more
/// accurate than the chain rule through all of it.
struct WrittenSoftmax {
  std::uint32_t x;
  int axis;
};

class SoftmaxReader {
 public:
  explicit SoftmaxReader(const Snapshot& s) : s_(s) {}

  std::optional<WrittenSoftmax> read(std::uint32_t i) const {
    if (!is(i, ScalarOp::div)) return {};
    const std::uint32_t e = in(i, 0);
    const auto total = behind_broadcast(in(i, 1));
    if (!is(e, ScalarOp::exp) || !total || !reduces(*total, ScalarOp::add) || in(*total, 0) != e) return {};
    const std::int64_t mask = node(*total).attributes()[0];
    if (std::popcount(static_cast<std::uint64_t>(mask)) != 1) return {};
    std::uint32_t x = in(e, 0);
    if (is(x, ScalarOp::sub)) {
      const auto highest = behind_broadcast(in(x, 1));
      const bool shifted = highest && reduces(*highest, ScalarOp::maximum) && in(*highest, 0) == in(x, 0) &&
                           node(*highest).attributes()[0] == mask;
      if (shifted) x = in(x, 0);
    }
    if (node(x).shape() != node(i).shape()) return {};
    return WrittenSoftmax{x, std::countr_zero(static_cast<std::uint64_t>(mask))};
  }

 private:
  const Node& node(std::uint32_t i) const { return s_.entries[i].tensor.node(); }
  std::uint32_t in(std::uint32_t i, std::size_t k) const { return s_.entries[i].inputs[k]; }
  bool has_inputs(std::uint32_t i) const { return !s_.entries[i].inputs.empty(); }
  bool is(std::uint32_t i, ScalarOp op) const {
    return has_inputs(i) && node(i).op().kind == OpClass::elementwise && node(i).op().scalar == op;
  }
  bool reduces(std::uint32_t i, ScalarOp op) const {
    return has_inputs(i) && node(i).op().kind == OpClass::reduce && node(i).op().scalar == op;
  }
  /// What is repeated along some axes, through reshapes that come back to the extents that are broadcast.
  std::optional<std::uint32_t> behind_broadcast(std::uint32_t i) const {
    while (has_inputs(i) && node(i).op().kind == OpClass::identity) i = in(i, 0);
    if (!has_inputs(i) || node(i).op().kind != OpClass::broadcast) return {};
    i = in(i, 0);
    const Shape& seen = node(i).shape();
    while (has_inputs(i) &&
           (node(i).op().kind == OpClass::reshape || node(i).op().kind == OpClass::identity)) {
      i = in(i, 0);
    }
    if (node(i).shape() != seen) return {};
    return i;
  }

  const Snapshot& s_;
};

/// The gradient of each input; undefined where no output depends on it.
std::vector<LazyTensor> pull_back(std::span<const LazyTensor> outputs, std::span<const LazyTensor> inputs,
                                  std::span<const LazyTensor> cotangents) {
  if (cotangents.size() != outputs.size()) {
    throw ShapeError(fmt::format("vjp: {} outputs but {} cotangents", outputs.size(), cotangents.size()));
  }
  std::uint64_t oldest = ~std::uint64_t{0};
  for (const LazyTensor& input : inputs) {
    if (!is_floating(input.dtype())) {
      throw GradientError(
          fmt::format("grad: an input of shape {} is {}; only floating tensors have gradients",
                      input.shape().to_string(), name(input.dtype())));
    }
    oldest = std::min(oldest, input.node_id());
  }
  Snapshot s = take_snapshot(outputs, inputs);
  mark_dependents(s, oldest);

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
    const bool has_path = std::any_of(entry.inputs.begin(), entry.inputs.end(),
                                      [&](std::uint32_t input) { return s.entries[input].depends; });
    if (has_path && carries_gradient(entry.tensor)) {
      const auto softmax = SoftmaxReader(s).read(static_cast<std::uint32_t>(i));
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

namespace {

/// The trace of the outermost value_and_grad on this thread; calls inside it join it.
thread_local std::shared_ptr<Trace> current_trace;

class TraceScope {
 public:
  TraceScope() : outermost_(!current_trace) {
    if (outermost_) current_trace = std::make_shared<Trace>();
  }
  ~TraceScope() {
    if (!outermost_) return;
    end_trace(*current_trace);
    current_trace.reset();
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  bool outermost_;
};

}  // namespace

std::pair<LazyTensor, std::vector<LazyTensor>> value_and_grad(const TensorFunction& function,
                                                              std::span<const LazyTensor> arguments) {
  const TraceScope scope;
  std::vector<LazyTensor> traced;
  for (const LazyTensor& argument : arguments) {
    traced.push_back(ops::make(kTraced, argument.shape(), argument.dtype(), {argument}));
    traced.back().node().set_trace(current_trace);
  }
  const LazyTensor value = function(traced);
  check_scalar(value);
  const LazyTensor seed = ones_like(value);
  return {value, vjp({&value, 1}, traced, {&seed, 1})};
}

}  // namespace caldera
