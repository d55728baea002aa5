#include "engine/autodiff/snapshot.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <unordered_set>

#include "engine/graph/data_leaf.h"
#include "engine/graph/origins_walk.h"

namespace caldera {
namespace {

LazyTensor handle(Node* node) {
  node->add_ref();
  return LazyTensor(NodePtr(node));
}

bool is_barrier(const Snapshot::Entry& entry) {
  return entry.tensor.node().op().kind == OpClass::barrier && !entry.inputs.empty();
}

/// What gradients of the outputs come by, whether they go on to a target or not.
std::vector<bool> reached_by_gradients(const Snapshot& s) {
  std::vector<bool> reached(s.entries.size(), false);
  for (const std::uint32_t output : s.outputs) reached[output] = true;
  for (std::size_t i = s.entries.size(); i-- > 0;) {
    const Snapshot::Entry& entry = s.entries[i];
    if (!reached[i] || !carries_gradient(entry.tensor)) continue;
    const std::size_t count = is_barrier(entry) ? 1 : entry.inputs.size();
    for (std::size_t k = 0; k < count; ++k) reached[entry.inputs[k]] = true;
  }
  return reached;
}

/// Throws for a value on the way whose history was dropped, and which may have come from a target.
void check_history(const Snapshot& s, std::string_view transform) {
  std::vector<const LazyTensor*> dropped;
  const std::vector<bool> reached = reached_by_gradients(s);
  for (std::size_t i = 0; i < s.entries.size(); ++i) {
    const Snapshot::Entry& entry = s.entries[i];
    if (!reached[i] || !entry.is_cut || entry.is_target || !carries_gradient(entry.tensor)) continue;
    dropped.push_back(&entry.tensor);
  }
  if (dropped.empty()) return;
  const std::scoped_lock lock(graph_mutex());
  for (const LazyTensor& target : s.target_tensors) {
    if (!target.node().origin_tag()) continue;
    for (const LazyTensor* value : dropped) {
      if (!may_have_come_from(value->node(), target.node())) continue;
      if (&value->node().op() == &kCompiledOp) {
        throw GradientError(fmt::format(
            "{}: the way to an input of shape {} leads through a result of a compiled function, of shape {}, "
            "which is computed at once and keeps no history; differentiate inside of the compiled function, "
            "as compiled() of a function that calls value_and_grad() does, or pass stop_gradient() or "
            "detach() of the result if it is a constant",
            transform, target.shape().to_string(), value->shape().to_string()));
      }
      throw GradientError(fmt::format(
          "{}: the way to an input of shape {} leads through a value of shape {} ({}) whose history has "
          "ended: "
          "what it was computed from was replaced, or there was too much to keep; differentiate before that, "
          "or pass stop_gradient() or detach() of the value if it is a constant, as a parameter is that was "
          "updated",
          transform, target.shape().to_string(), value->shape().to_string(), value->node().op().name));
    }
  }
}

}  // namespace

bool Snapshot::has_path(const Entry& entry) const {
  return std::any_of(entry.inputs.begin(), entry.inputs.end(),
                     [&](std::uint32_t i) { return entries[i].depends; });
}

std::vector<LazyTensor> Snapshot::inputs_of(const Entry& entry) const {
  std::vector<LazyTensor> inputs;
  inputs.reserve(entry.inputs.size());
  for (std::uint32_t i : entry.inputs) inputs.push_back(entries[i].tensor);
  return inputs;
}

Snapshot take_snapshot(std::span<const LazyTensor> outputs, std::span<const LazyTensor> targets,
                       Targets walk_on) {
  Snapshot s;
  std::vector<Node*> roots;
  for (const LazyTensor& output : outputs) roots.push_back(&output.node());
  std::uint64_t oldest = ~std::uint64_t{0};
  for (const LazyTensor& target : targets) oldest = std::min(oldest, target.node_id());
  s.target_tensors.assign(targets.begin(), targets.end());
  std::unordered_set<const Node*> last;
  if (walk_on == Targets::end_walk) {
    for (const LazyTensor& target : targets) last.insert(&target.node());
  }
  const auto is_leaf = [&](const Node& node) {
    return node.id() < oldest || (!last.empty() && last.contains(&node));
  };
  const std::scoped_lock lock(graph_mutex());
  const std::vector<Node*> order = topological_order(roots, is_leaf);
  const std::uint64_t walk = order.empty() ? 0 : order[0]->walk;
  s.entries.reserve(order.size());
  for (Node* node : order) {
    Snapshot::Entry entry;
    entry.tensor = handle(node);
    entry.is_cut = node->is_cut();
    if (!is_leaf(*node)) {
      entry.inputs.reserve(node->inputs().size());
      for (const NodePtr& input : node->inputs()) entry.inputs.push_back(input->walk_index);
    }
    s.entries.push_back(std::move(entry));
  }
  for (const Node* root : roots) s.outputs.push_back(root->walk_index);
  for (const LazyTensor& target : targets) {
    const Node& node = target.node();
    // What a target was given away to (compiled) says so: it has no value to differentiate at.
    if (node.has_value() && node.value().ready && node.value().ready->is_set() && node.value().ready->error())
      std::rethrow_exception(node.value().ready->error());
    const bool reached = node.walk == walk && !order.empty();
    s.targets.push_back(reached ? static_cast<std::int64_t>(node.walk_index) : -1);
    if (reached) s.entries[node.walk_index].is_target = true;
  }
  return s;
}

bool carries_gradient(const LazyTensor& x) { return is_floating(x.dtype()) && !x.node().op().zero_gradient; }

void mark_differentiable(Snapshot& s, std::string_view transform) {
  for (Snapshot::Entry& entry : s.entries) {
    if (entry.is_target) {
      entry.depends = true;
      continue;
    }
    if (!carries_gradient(entry.tensor)) continue;
    // What else a barrier waits for has nothing to do with its value.
    entry.depends = is_barrier(entry) ? s.entries[entry.inputs[0]].depends : s.has_path(entry);
  }
  check_history(s, transform);
}

}  // namespace caldera
