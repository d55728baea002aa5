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

/// Calls are no part of the walk, so what came of them counted as having origins. Walks again: places in the
/// walk hold no longer.
void ask_exactly(const GraphKey& c, HistoryChoice& choice) {
  const std::vector<OriginsPtr> origins = origins_of(c.outputs);
  for (std::size_t k = 0; k < origins.size(); ++k) {
    if (origins[k]) continue;
    choice.has_origins[k] = false;
    choice.keeps[k] = false;
  }
}

/// Notes how deep the histories are that go through the data, and ends those of data that are too deep. One
/// that is yet to be computed needs its inputs, should that fail.
void bound_depth(const GraphKey& c, HistoryChoice& choice) {
  for (Node* leaf : c.data) {
    if (&leaf->op() == &kDataOp || leaf->is_cut() || leaf->inputs().empty()) continue;
    const std::uint32_t depth = leaf->history_depth() + 1;
    if (depth <= kDeepestHistory || leaf->is_pending()) {
      choice.depth = std::max(choice.depth, depth);
      continue;
    }
    leaf->add_ref();
    choice.ended.emplace_back(leaf);
  }
}

/// Where nothing goes.
void keep_all(const GraphKey& c, HistoryChoice& choice) {
  choice.donors.assign(c.outputs.size(), -1);
  choice.has_origins.reserve(c.outputs.size());
  for (const Node* output : c.outputs) choice.has_origins.push_back(c.has_origins(output->walk_index));
  choice.keeps = choice.has_origins;
  bound_depth(c, choice);
  if (c.has_calls) ask_exactly(c, choice);
}

class Chooser {
 public:
  Chooser(const GraphKey& c, const Plan* plan)
      : c_(c), plan_(plan), order_(c.walk.order), dying_(c), is_output_(order_.size(), false) {
    for (const Node* output : c.outputs) is_output_[output->walk_index] = true;
  }

  void run(HistoryChoice& choice) {
    bound_depth(c_, choice);
    find_earlier(choice);
    std::vector<bool> ends = find_replaced();
    end_ways(ends);
    choice.donors.assign(c_.outputs.size(), -1);
    if (plan_ != nullptr && !plan_->donations.empty()) {
      const std::vector<std::int32_t> donors = find_donors(c_, *plan_, may_give(ends));
      choice.donors.assign(donors.begin(), donors.end());
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
    drop_repeated(choice);
    if (c_.has_calls) ask_exactly(c_, choice);
  }

 private:
  /// A history that is too deep may need what goes as well.
  static void drop_repeated(HistoryChoice& choice) {
    auto& ended = choice.ended;
    std::sort(ended.begin(), ended.end(),
              [](const NodePtr& a, const NodePtr& b) { return a.get() < b.get(); });
    const auto last = std::unique(ended.begin(), ended.end(),
                                  [](const NodePtr& a, const NodePtr& b) { return a.get() == b.get(); });
    ended.erase(last, ended.end());
  }

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

  /// Marks what some output comes from point by point: that has as many elements, and could be in its place.
  std::vector<bool> find_predecessors() const {
    std::vector<bool> is_predecessor(order_.size(), false);
    for (const Node* output : c_.outputs) is_predecessor[output->walk_index] = true;
    for (std::size_t i = order_.size(); i-- > 0;) {
      const Node& node = *order_[i];
      if (!is_predecessor[i] || node.has_value()) continue;
      const auto operands = node.operands();
      // An update of a part comes from its base.
      const bool is_update = node.kind() == OpClass::dynamic_update || node.kind() == OpClass::scatter;
      if (is_update)
        is_predecessor[operands[0]->walk_index] = true;
      else if (is_point_by_point(node.kind()))
        for (const NodePtr& x : operands)
          if (x->shape().numel() == node.shape().numel()) is_predecessor[x->walk_index] = true;
    }
    return is_predecessor;
  }
  static bool is_point_by_point(OpClass kind) {
    return kind == OpClass::elementwise || kind == OpClass::reshape || kind == OpClass::permute ||
           kind == OpClass::broadcast || kind == OpClass::identity || kind == OpClass::barrier;
  }

  /// Leaves that were replaced: computed values that go, and have a successor. Values of which an earlier
  /// history remembers how they came about may be intermediates of that, so there it takes one that has their
  /// memory.
  std::vector<bool> find_replaced() const {
    std::vector<bool> replaced(order_.size(), false);
    std::vector<bool> is_predecessor;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < c_.data.size(); ++i) {
      const Node* leaf = c_.data[i];
      if (!dying_[leaf->walk_index]) continue;
      const bool is_earlier = !needs_earlier_.empty() && needs_earlier_[leaf->walk_index];
      if (!is_earlier) bytes += bytes_of(*leaf);
      if (&leaf->op() == &kDataOp) continue;
      if (is_predecessor.empty()) is_predecessor = find_predecessors();
      if (is_earlier) {
        const bool remembers = !leaf->is_cut() && !leaf->inputs().empty();
        replaced[leaf->walk_index] = remembers ? has_successor(i) : is_predecessor[leaf->walk_index];
        continue;
      }
      replaced[leaf->walk_index] = is_predecessor[leaf->walk_index];
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
      if (!is_needed[i] || order_[i]->has_value() || is_cut(i, ends)) continue;
      for (const NodePtr& input : order_[i]->operands()) is_needed[input->walk_index] = true;
    }
    std::vector<bool> may(order_.size(), false);
    for (const Node* leaf : c_.data) {
      const std::uint32_t at = leaf->walk_index;
      may[at] = dying_[at] && !is_needed[at];
    }
    return may;
  }

  /// A history ends with any of the leaves that it needs. It does not need what an output was computed from
  /// that has a value then, and lets go of its inputs.
  void end_ways(std::vector<bool>& ends) const {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i]->has_value()) continue;
      for (const NodePtr& input : order_[i]->operands())
        ends[i] = ends[i] || (ends[input->walk_index] && !is_output_[input->walk_index]);
    }
  }
  /// Whether the node is an output that lets go of its inputs.
  bool is_cut(std::size_t place, const std::vector<bool>& ends) const {
    return is_output_[place] && (ends[place] || !c_.has_origins(place));
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
  std::vector<bool> is_output_;   // by position
  std::vector<NodePtr> earlier_;  // that keep their history
  std::vector<bool>
      needs_earlier_;  // by position: leaves that go only if those let go; empty: there are none
};

}  // namespace

void choose_histories(const GraphKey& c, const Plan* plan, HistoryChoice& choice) {
  choice.clear();
  if (KeepHistories::is_active()) {
    choice.donors.assign(c.outputs.size(), -1);
    choice.keeps.assign(c.outputs.size(), true);
    choice.has_origins.assign(c.outputs.size(), true);
    return;
  }
  // Only what no program holds can go, or be replaced.
  if (std::all_of(c.data.begin(), c.data.end(), [](const Node* leaf) { return leaf->is_held(); }))
    return keep_all(c, choice);
  Chooser(c, plan).run(choice);
}

}  // namespace caldera
