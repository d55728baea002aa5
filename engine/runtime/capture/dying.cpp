#include "engine/runtime/capture/dying.h"

namespace caldera {

Dying::Dying(const GraphKey& c) : order_(c.walk.order), states_(order_.size()) {
  for (const Node* output : c.outputs) states_[output->walk_index].is_output = true;
  for (const Node* output : c.outputs) drop_inputs(*output);
  run();
}

void Dying::release_inputs_of(std::span<const NodePtr> nodes) {
  for (const NodePtr& node : nodes) {
    release(*node);  // by the caller
    drop_inputs(*node);
  }
  run();
}

Dying::State& Dying::state_of(const Node& node) {
  const std::uint32_t at = node.walk_index;
  return at < order_.size() && order_[at] == &node ? states_[at] : elsewhere_[&node];
}

void Dying::drop_inputs(const Node& node) {
  State& state = state_of(node);
  if (state.has_dropped) return;
  state.has_dropped = true;
  droppers_.push_back(&node);
}

/// One of the node's owners lets go of it.
void Dying::release(const Node& node) {
  State& state = state_of(node);
  ++state.released;
  // The count first: a job that is yet to compute the node's value owns it, and says that it does no longer
  // before it lets it go.
  const std::uint32_t owners = node.ref_count();
  const std::uint32_t jobs = node.is_pending() ? 1 : 0;
  if (state.is_output || state.is_dying || state.released + jobs != owners) return;
  state.is_dying = true;
  drop_inputs(node);
}

void Dying::run() {
  while (!droppers_.empty()) {
    const Node& node = *droppers_.back();
    droppers_.pop_back();
    for (const NodePtr& input : node.inputs()) release(*input);
  }
}

}  // namespace caldera
