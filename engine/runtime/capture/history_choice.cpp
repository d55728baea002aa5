#include "engine/runtime/capture/history_choice.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "engine/graph/data_leaf.h"
#include "engine/graph/histories.h"
#include "engine/graph/origins_walk.h"
#include "engine/runtime/capture/buffer_donation.h"
#include "engine/runtime/capture/dying.h"

namespace caldera {
namespace {

/// Host data of so many bytes, which nobody else holds, are kept for the sake of a history. More is kept for
/// single numbers alone.
constexpr std::uint64_t kSmallData = std::uint64_t{4} << 20;

/// Calls are no part of the walk, so what came of them counted as having origins. Walks anew: places in the
/// walk hold no longer.
void ask_exactly(const GraphKey& c, HistoryChoice& choice) {
  const std::vector<OriginsPtr> origins = origins_of(c.outputs);
  for (std::size_t k = 0; k < origins.size(); ++k) {
    if (origins[k]) continue;
    choice.has_origins[k] = false;
    choice.keeps[k] = false;
  }
}

/// Where nothing goes.
HistoryChoice keep_all(const GraphKey& c) {
  HistoryChoice choice;
  choice.donors.assign(c.outputs.size(), -1);
  for (const Node* output : c.outputs) choice.has_origins.push_back(c.has_origins(output->walk_index));
  choice.keeps = choice.has_origins;
  if (c.has_calls) ask_exactly(c, choice);
  return choice;
}

class Chooser {
 public:
  Chooser(const GraphKey& c, const Plan* plan) : c_(c), plan_(plan), order_(c.walk.order), dying_(c) {}

  HistoryChoice run() {
    HistoryChoice choice;
    find_earlier(choice);
    std::vector<bool> ends = find_replaced();
    end_ways(ends);
    choice.donors.assign(c_.outputs.size(), -1);
    if (plan_ != nullptr && !plan_->donations.empty()) {
      choice.donors = find_donors(c_, *plan_, may_give(ends));
      for (const std::int32_t donor : choice.donors) {
        if (donor >= 0) ends[c_.data[static_cast<std::size_t>(donor)]->walk_index] = true;
      }
    }
    end_ways(ends);
    for (const Node* output : c_.outputs) {
      const bool has_origins = c_.has_origins(output->walk_index);
      choice.has_origins.push_back(has_origins);
      choice.keeps.push_back(has_origins && !ends[output->walk_index]);
    }
    for (const Node* leaf : c_.data) {
      if (dying_[leaf->walk_index] && !ends[leaf->walk_index]) choice.kept_bytes += bytes_of(*leaf);
    }
    end_earlier(ends, choice);
    if (c_.has_calls) ask_exactly(c_, choice);
    return choice;
  }

 private:
  /// Histories of earlier evaluations do not keep what this one replaces. They are asked only where a leaf is
  /// held by no program, and still does not go.
  void find_earlier(HistoryChoice& choice) {
    const bool is_wanted = std::any_of(c_.data.begin(), c_.data.end(), [&](const Node* leaf) {
      return !leaf->is_held() && !dying_[leaf->walk_index];
    });
    if (!is_wanted) return;
    needs_earlier_.assign(order_.size(), false);
    for (const Node* leaf : c_.data) needs_earlier_[leaf->walk_index] = !dying_[leaf->walk_index];
    for (NodePtr& node : kept_histories()) {
      // One that is yet to be computed needs its inputs, should that fail.
      (node->is_pending() ? choice.others : earlier_).push_back(std::move(node));
    }
    dying_.release_inputs_of(earlier_);
  }

  /// Whether an output may take the memory of the data leaf of this number: it is computed of it point by
  /// point.
  bool has_successor(std::size_t leaf) const {
    return plan_ != nullptr &&
           std::any_of(plan_->donations.begin(), plan_->donations.end(), [&](const Donation& donation) {
             const auto output = static_cast<std::size_t>(donation.output - plan_->input_count);
             return static_cast<std::size_t>(donation.input) == leaf &&
                    bytes_of(*c_.data[leaf]) == bytes_of(*c_.outputs[output]);
           });
  }

  /// Leaves that were replaced: computed values that go, of the size of an output. What an earlier history
  /// has too may be of that size by chance, so there it takes a successor.
  std::vector<bool> find_replaced() const {
    std::vector<bool> replaced(order_.size(), false);
    std::vector<std::int64_t> sizes;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < c_.data.size(); ++i) {
      const Node* leaf = c_.data[i];
      if (!dying_[leaf->walk_index]) continue;
      if (!needs_earlier_.empty() && needs_earlier_[leaf->walk_index]) {
        replaced[leaf->walk_index] = &leaf->op() != &kDataOp && has_successor(i);
        continue;
      }
      bytes += bytes_of(*leaf);
      if (sizes.empty()) {
        for (const Node* output : c_.outputs) sizes.push_back(output->shape().numel());
        std::sort(sizes.begin(), sizes.end());
      }
      replaced[leaf->walk_index] =
          &leaf->op() != &kDataOp && std::binary_search(sizes.begin(), sizes.end(), leaf->shape().numel());
    }
    if (bytes <= kSmallData) return replaced;
    // Too much to keep for anything but single numbers.
    std::vector<bool> is_read(order_.size(), false);
    for (const Node* output : c_.outputs) is_read[output->walk_index] = output->shape().numel() > 1;
    for (std::size_t i = order_.size(); i-- > 0;) {
      if (!is_read[i]) continue;
      if (order_[i]->has_value()) {
        if (dying_[i]) replaced[i] = true;
        continue;
      }
      for (const NodePtr& input : order_[i]->operands()) is_read[input->walk_index] = true;
    }
    return replaced;
  }

  /// Which leaves may be overwritten: what goes, and is needed by no history that goes on. `ends` says which
  /// values were replaced, and what came of them.
  std::vector<bool> may_give(const std::vector<bool>& ends) const {
    std::vector<bool> is_needed(order_.size(), false);
    for (const Node* output : c_.outputs)
      is_needed[output->walk_index] = c_.has_origins(output->walk_index) && !ends[output->walk_index];
    for (std::size_t i = order_.size(); i-- > 0;) {
      if (!is_needed[i] || order_[i]->has_value()) continue;
      for (const NodePtr& input : order_[i]->operands()) is_needed[input->walk_index] = true;
    }
    std::vector<bool> may(order_.size(), false);
    for (const Node* leaf : c_.data) {
      const std::uint32_t at = leaf->walk_index;
      may[at] = dying_[at] && !is_needed[at];
    }
    return may;
  }

  /// A history ends with any of the leaves that it needs.
  void end_ways(std::vector<bool>& ends) const {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i]->has_value()) continue;
      for (const NodePtr& input : order_[i]->operands()) ends[i] = ends[i] || ends[input->walk_index];
    }
  }

  /// Ends the earlier histories that need a leaf which goes.
  void end_earlier(const std::vector<bool>& ends, HistoryChoice& choice) {
    std::unordered_map<const Node*, bool> known;
    const auto is_gone = [&](const Node& node) {
      const std::uint32_t at = node.walk_index;
      return at < order_.size() && order_[at] == &node && node.has_value() && ends[at] && dying_[at];
    };
    for (NodePtr& node : earlier_) {
      const bool ends_here = needs(*node, is_gone, known);
      (ends_here ? choice.ended : choice.others).push_back(std::move(node));
    }
  }

  /// Whether the node's history leads to a leaf that goes. Iterative: histories are long.
  template <class IsGone>
  static bool needs(const Node& root, const IsGone& is_gone, std::unordered_map<const Node*, bool>& known) {
    std::vector<std::pair<const Node*, std::size_t>> stack{{&root, 0}};
    while (!stack.empty()) {
      const Node& node = *stack.back().first;
      const std::size_t next = stack.back().second;
      const auto [at, fresh] = known.try_emplace(&node, false);
      if (next == 0 && fresh) at->second = is_gone(node);
      if ((next == 0 && !fresh) || at->second || next == node.inputs().size()) {
        const bool needed = at->second;
        stack.pop_back();
        if (needed && !stack.empty()) known[stack.back().first] = true;
        continue;
      }
      ++stack.back().second;
      stack.emplace_back(node.inputs()[next].get(), 0);
    }
    return known[&root];
  }

  const GraphKey& c_;
  const Plan* plan_;
  const std::vector<Node*>& order_;
  Dying dying_;
  std::vector<NodePtr> earlier_;  // that keep their history
  std::vector<bool>
      needs_earlier_;  // by position: leaves that go only if those let go; empty: there are none
};

}  // namespace

HistoryChoice choose_histories(const GraphKey& c, const Plan* plan) {
  if (KeepHistories::is_active()) {
    HistoryChoice all;
    all.donors.assign(c.outputs.size(), -1);
    all.keeps.assign(c.outputs.size(), true);
    all.has_origins.assign(c.outputs.size(), true);
    return all;
  }
  // Only what no program holds can go, or be replaced.
  if (std::all_of(c.data.begin(), c.data.end(), [](const Node* leaf) { return leaf->is_held(); }))
    return keep_all(c);
  return Chooser(c, plan).run();
}

}  // namespace caldera
