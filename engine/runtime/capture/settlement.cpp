#include "engine/runtime/capture/settlement.h"

#include <mutex>
#include <unordered_set>
#include <utility>

namespace caldera {
namespace {

NodePtr owned(Node& node) {
  node.add_ref();
  return NodePtr(&node);
}

}  // namespace

void Settlement::add_value(Node& node, Value value) {
  values_.push_back(owned(node));
  node.set_value(std::move(value));
  node.set_pending(true);
}

void Settlement::cut(Node& node, OriginsPtr origins) {
  if (!node.is_pending()) nodes_.push_back(owned(node));
  const std::size_t first = inputs_.size();
  node.cut(std::move(origins), inputs_);
  cuts_.push_back({&node, first, inputs_.size() - first});
}

void Settlement::add_donor(Node& node) { donors_.push_back(owned(node)); }

void Settlement::give_away(Node& node, std::shared_ptr<Event> given) {
  const Value& former = node.value();
  if (nothing_ == nullptr) nothing_ = std::make_shared<Storage>(former.storage->device(), 0);
  given_.emplace_back(owned(node), former);
  node.set_value({nothing_, 0, std::move(given)});
}

void Settlement::succeed() {
  for (const NodePtr& value : values_) value->set_pending(false);  // before they are let go (Dying)
  values_.clear();
  nodes_.clear();
  cuts_.clear();
  inputs_.clear();
  donors_.clear();
  given_.clear();
}

bool Settlement::is_empty() const {
  return values_.empty() && nodes_.empty() && cuts_.empty() && inputs_.empty() && donors_.empty() &&
         given_.empty() && nothing_ == nullptr;
}

void Settlement::fail(const std::vector<bool>& is_there, bool has_begun,
                      const std::shared_ptr<Event>& failed) {
  {
    const std::scoped_lock lock(graph_mutex());
    std::unordered_set<const Node*> kept;
    for (std::size_t k = 0; k < values_.size(); ++k) {
      Node& node = *values_[k];
      node.set_pending(false);
      if (k < is_there.size() && is_there[k])
        kept.insert(&node);
      else
        node.drop_value();
    }
    for (auto at = cuts_.rbegin(); at != cuts_.rend(); ++at) {
      if (!kept.contains(at->node)) at->node->mend({inputs_.data() + at->first, at->count});
    }
    for (const NodePtr& donor : donors_) {
      if (!has_begun || !donor->has_value()) continue;
      Value lost = donor->value();
      lost.ready = failed;
      donor->set_value(std::move(lost));
    }
    for (auto& [node, former] : given_) {
      if (has_begun) former.ready = failed;
      node->set_value(std::move(former));
    }
    for (const NodePtr& node : nodes_) {
      if (!node->is_cut() && !node->inputs().empty()) node->keep_history(1, 0, node->history_depth());
    }
  }
  succeed();  // releases outside of the mutex
}

}  // namespace caldera
