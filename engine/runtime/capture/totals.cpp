#include "engine/runtime/capture/totals.h"

#include <algorithm>
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

/// A total is a number plus a number: what that takes is computed sooner or later. Other numbers are made of
/// what is computed anyway, point by point and by sums: a product of its own (the loss on other data, which
/// is looked at now and then) would be work that nobody has asked for. What may fail is left alone.
bool may_be_on_the_way(OpClass kind, bool is_sum) {
  return (is_sum || (kind != OpClass::contract && kind != OpClass::convolution)) && kind != OpClass::linalg &&
         kind != OpClass::transfer && kind != OpClass::control && kind != OpClass::placeholder;
}

bool is_sum_of_numbers(const Node& node) {
  return node.kind() == OpClass::elementwise && node.op().scalar == ScalarOp::add &&
         std::all_of(node.operands().begin(), node.operands().end(),
                     [](const NodePtr& x) { return x->shape().rank() == 0 && !x->is_scalar_leaf(); });
}

/// Walks from totals to what the capture computes.
class Search {
 public:
  explicit Search(const GraphKey& c) : c_(c), walk_(next_walk()) {}

  /// Whether the total needs, of the capture's graph, something that needs data nobody else holds. False
  /// where that is more than a few operations away, or is not on the capture's device alone.
  bool needs_what_goes(Node& total) {
    if (total.device() != c_.device) return false;
    const bool is_sum = is_sum_of_numbers(total);
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
      if (!may_be_on_the_way(node.kind(), is_sum)) return false;
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

std::vector<NodePtr> find_totals(const GraphKey& c) {
  std::vector<NodePtr> found;
  if (!c.has_dear || KeepHistories::is_active()) return found;
  std::vector<NodePtr> seen;
  seen.reserve(kMostTotals);
  LazyScalar::for_each_of_this_thread(kMostTotals, [&](Node& node) {
    if (!node.is_held() || node.is_traced() || c.contains(node) || !node.add_ref_if_owned()) return false;
    seen.emplace_back(&node);
    return true;
  });
  if (seen.empty()) return found;
  Search search(c);
  // What is not found is let go of here: histories are chosen by counts of owners (Dying).
  for (NodePtr& node : seen) {
    if (!node->has_value() && search.needs_what_goes(*node)) found.push_back(std::move(node));
  }
  return found;
}

}  // namespace caldera
