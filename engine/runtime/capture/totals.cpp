#include "engine/runtime/capture/totals.h"

#include <cstddef>
#include <span>
#include <utility>

#include "engine/graph/histories.h"
#include "engine/graph/history/lazy_scalars.h"

namespace caldera {
namespace {

/// So many are looked at, and so many nodes of theirs: a total is computed of what is there anyway, and a few
/// operations more.
constexpr std::size_t kMostTotals = 64;
constexpr std::size_t kMostNodes = 4096;

/// Walks from totals to what the capture computes.
class Search {
 public:
  explicit Search(const GraphKey& c) : c_(c), walk_(next_walk()) {}

  /// Whether the total needs, of the capture's graph, something that needs data nobody else holds. False
  /// where that is more than a few operations away, or does not lie on the capture's device alone.
  bool needs_what_goes(Node& total) {
    if (total.device() != c_.device) return false;
    bool needs = false;
    stack_.assign(1, &total);
    while (!stack_.empty()) {
      Node& node = *stack_.back();
      stack_.pop_back();
      if (c_.contains(node)) {
        needs = needs || c_.is_dear(node.walk_index);
        continue;
      }
      if (node.walk == walk_ && !node.has_value()) continue;
      if (nodes_++ == kMostNodes) return false;
      node.walk = walk_;
      if (node.has_value()) continue;
      if (node.kind() == OpClass::transfer || node.kind() == OpClass::placeholder) return false;
      for (const NodePtr& input : node.operands()) stack_.push_back(input.get());
    }
    return needs;
  }

 private:
  const GraphKey& c_;
  const std::uint64_t walk_;
  std::size_t nodes_ = 0;
  std::vector<Node*> stack_;
};

}  // namespace

std::vector<NodePtr> find_totals(const GraphKey& c, std::vector<NodePtr>& bin) {
  std::vector<NodePtr> found;
  if (!c.has_dear || KeepHistories::is_active()) return found;
  std::vector<NodePtr> seen;
  seen.reserve(kMostTotals);
  LazyScalar::for_each_of_this_thread(kMostTotals, [&](Node& node) {
    if (!c.contains(node) && node.add_ref_if_owned()) seen.emplace_back(&node);
  });
  if (seen.empty()) return found;
  Search search(c);
  for (NodePtr& node : seen) {
    const bool is_wanted =
        node->is_held() && !node->has_value() && !node->is_traced() && search.needs_what_goes(*node);
    (is_wanted ? found : bin).push_back(std::move(node));
  }
  return found;
}

}  // namespace caldera
