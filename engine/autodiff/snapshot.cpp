#include "engine/autodiff/snapshot.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

namespace caldera {
namespace {

LazyTensor handle(Node* node) {
  node->add_ref();
  return LazyTensor(NodePtr(node));
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
  s.oldest_target = oldest;
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
    entry.is_detached = node->is_detached();
    if (!is_leaf(*node)) {
      entry.inputs.reserve(node->inputs().size());
      for (const NodePtr& input : node->inputs()) entry.inputs.push_back(input->walk_index);
    }
    s.entries.push_back(std::move(entry));
  }
  for (const Node* root : roots) s.outputs.push_back(root->walk_index);
  for (const LazyTensor& target : targets) {
    const Node& node = target.node();
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
    if (entry.is_detached && entry.tensor.node_id() > s.oldest_target) {
      throw GradientError(
          fmt::format("{}: the way to the inputs leads through a value of shape {} ({}) that was evaluated "
                      "before, so its history is gone; differentiate before evaluating it, or use detach() "
                      "if it is a constant",
                      transform, entry.tensor.shape().to_string(), entry.tensor.node().op().name));
    }
    // What else a barrier waits for has nothing to do with its value.
    const bool is_barrier = entry.tensor.node().op().kind == OpClass::barrier && !entry.inputs.empty();
    entry.depends = is_barrier ? s.entries[entry.inputs[0]].depends : s.has_path(entry);
  }
}

}  // namespace caldera
