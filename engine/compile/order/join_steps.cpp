#include "engine/compile/order/join_steps.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/compile/order/dispatch_class.h"
#include "engine/compile/order/in_place.h"
#include "engine/compile/order/step_graph.h"
#include "engine/compile/order/waiting_bytes.h"
#include "engine/compile/program/limits.h"

namespace caldera {
namespace {

using Order = std::vector<std::uint32_t>;

/// Of a step that no other can share a dispatch with.
constexpr std::uint32_t kAlone = ~std::uint32_t{0};

/// For each step the first one of its class.
std::vector<std::uint32_t> classes_of(const Plan& plan) {
  std::unordered_map<Hash128, std::uint32_t> first_of;
  std::vector<std::uint32_t> class_of(plan.steps.size(), kAlone);
  for (std::uint32_t s = 0; s < plan.steps.size(); ++s) {
    const std::optional<Hash128> hash = dispatch_class(plan, plan.steps[s]);
    if (!hash) continue;
    const auto [first, is_new] = first_of.try_emplace(*hash, s);
    if (!is_new) class_of[s] = class_of[first->second] = first->second;
  }
  return class_of;
}

/// The steps that may write an output over an input that other steps read as well: the donation is possible
/// for the last reader only.
std::vector<bool> last_readers_wanted(const Plan& plan) {
  std::vector<std::uint32_t> readers(static_cast<std::size_t>(plan.input_count), 0);
  for (const Step& step : plan.steps) {
    for (const Operand& operand : step.operands) {
      if (operand.buffer >= 0 && operand.buffer < plan.input_count)
        ++readers[static_cast<std::size_t>(operand.buffer)];
    }
  }
  std::vector<bool> wanted(plan.steps.size(), false);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    for (std::size_t out = step.first_output(); out < step.operands.size() && !wanted[s]; ++out) {
      const std::int32_t to = step.operands[out].buffer;
      if (to < plan.input_count || to >= plan.input_count + plan.output_count) continue;
      for (std::size_t in = 0; in < step.first_output() && !wanted[s]; ++in) {
        const std::int32_t from = step.operands[in].buffer;
        wanted[s] = from >= 0 && from < plan.input_count && readers[static_cast<std::size_t>(from)] > 1 &&
                    may_write_over(plan, step, out, in);
      }
    }
  }
  return wanted;
}

/// The steps as they stand; but what reads inputs alone and can share a dispatch first, if there is memory
/// for its results (`most` bytes) and no donation is lost: so one dispatch converts all adapters of a model.
/// Tells how many those are.
std::pair<Order, std::size_t> sources_first(const Plan& plan, const StepGraph& graph,
                                            const std::vector<std::uint32_t>& class_of, std::int64_t most) {
  const std::vector<bool> last = last_readers_wanted(plan);
  Order order(graph.size());
  std::iota(order.begin(), order.end(), 0U);
  Order changed = order;
  const auto rest = std::stable_partition(changed.begin(), changed.end(), [&](std::uint32_t s) {
    return graph.predecessors[s] == 0 && class_of[s] != kAlone && !last[s];
  });
  const auto count = static_cast<std::size_t>(rest - changed.begin());
  if (count < 2 || peak_of(graph, changed) > most) return {order, 0};
  return {changed, count};
}

/// Goes through the steps in an order. One that has others of its class waits; one without others runs at
/// once, after those waiting that it needs and those of their classes.
class Joiner {
 public:
  Joiner(const StepGraph& graph, std::vector<std::uint32_t> class_of)
      : graph_(graph),
        class_of_(std::move(class_of)),
        depth_(graph.size(), 0),
        is_needed_(graph.size(), false) {
    find_predecessors();
  }

  /// The steps in their new order; those that are the first of a dispatch are marked in `begins`. The first
  /// `sources` of them wait for none but each other.
  Order run(const Order& given, std::size_t sources, WaitingBytes bytes, std::vector<bool>& begins) {
    bytes_ = &bytes;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const std::uint32_t s = given[i];
      if (i == sources) {
        for (std::size_t source = 0; source < sources; ++source) need(given[source]);
        run_needed();
      }
      while (const std::optional<std::uint32_t> waiting = bytes.to_run_before(s)) {
        need(*waiting);
        run_needed();
      }
      if (class_of_[s] == kAlone) {
        for (std::uint32_t before : predecessors_[s]) need(before);
        run_needed();
        emit(s, true);
      } else {
        wait(s);
      }
      bytes.pass(s);
    }
    for (std::uint32_t s : given) need(s);
    run_needed();
    begins = std::move(begins_);
    return std::move(order_);
  }

 private:
  /// Steps of a class of equal depth, so that none depends on another.
  struct Batch {
    std::uint32_t class_of;
    std::uint32_t depth;
    friend bool operator==(const Batch&, const Batch&) = default;
  };
  struct HashBatch {
    std::size_t operator()(const Batch& b) const {
      return std::hash<std::uint64_t>{}(std::uint64_t{b.class_of} << 32 | b.depth);
    }
  };

  void find_predecessors() {
    Order end(graph_.size(), 0);
    std::partial_sum(graph_.predecessors.begin(), graph_.predecessors.end(), end.begin());
    Order before(graph_.successors.all().size());
    Order left = graph_.predecessors;
    for (std::uint32_t s = 0; s < graph_.size(); ++s) {
      for (std::uint32_t next : graph_.successors[s]) before[end[next] - left[next]--] = s;
    }
    std::size_t at = 0;
    for (std::size_t s = 0; s < graph_.size(); ++s) {
      for (; at < end[s]; ++at) predecessors_.push(before[at]);
      predecessors_.end_row();
    }
  }

  void wait(std::uint32_t s) {
    std::uint32_t depth = 1;
    for (std::uint32_t before : predecessors_[s]) depth = std::max(depth, depth_[before] + 1);
    depth_[s] = depth;
    waiting_[{class_of_[s], depth}].push_back(s);
  }

  /// The step is to run now, if it waits, with its batch.
  void need(std::uint32_t s) {
    if (depth_[s] == 0) return;
    const auto batch = waiting_.find({class_of_[s], depth_[s]});
    if (batch == waiting_.end()) return;  // is needed already
    needed_.insert(needed_.end(), batch->second.begin(), batch->second.end());
    for (std::uint32_t other : batch->second) is_needed_[other] = true;
    waiting_.erase(batch);
  }

  /// Runs the steps that are needed, and those that they need.
  void run_needed() {
    for (std::size_t i = 0; i < needed_.size(); ++i) {
      for (std::uint32_t before : predecessors_[needed_[i]]) need(before);
    }
    if (needed_.empty()) return;
    deepen();
    std::sort(needed_.begin(), needed_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tuple(depth_[a], class_of_[a], a) < std::tuple(depth_[b], class_of_[b], b);
    });
    std::size_t joined = 0;
    for (std::size_t i = 0; i < needed_.size(); ++i) {
      const std::uint32_t s = needed_[i];
      const bool begins = i == 0 || class_of_[s] != class_of_[needed_[i - 1]] || depth_[s] != batch_depth_ ||
                          joined == kMaxJoinedSteps;
      joined = begins ? 1 : joined + 1;
      batch_depth_ = depth_[s];
      emit(s, begins);
    }
    needed_.clear();
  }

  /// A step may be as deep as those that need it leave: it goes to the deepest of its class's batches that it
  /// can be in. Never are there more batches than before.
  void deepen() {
    std::sort(needed_.begin(), needed_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(depth_[a], a) > std::pair(depth_[b], b);
    });
    deepest_.clear();
    for (std::uint32_t s : needed_) {
      std::uint32_t limit = ~std::uint32_t{0};  // what is to run now and needs it is deeper
      for (std::uint32_t next : graph_.successors[s]) {
        if (depth_[next] > 0 && is_needed_[next]) limit = std::min(limit, depth_[next]);
      }
      Order& depths = deepest_[class_of_[s]];  // of the class's batches so far, falling
      const auto deepest =
          std::ranges::find_if(std::ranges::lower_bound(depths, limit, std::greater<>{}), depths.end(),
                               [&](std::uint32_t depth) { return depth < limit; });
      if (deepest != depths.end() && *deepest >= depth_[s]) depth_[s] = *deepest;
      if (depths.empty() || depths.back() > depth_[s]) depths.push_back(depth_[s]);
    }
  }

  void emit(std::uint32_t s, bool begins) {
    depth_[s] = 0;
    order_.push_back(s);
    begins_.push_back(begins);
    bytes_->run(s);
  }

  const StepGraph& graph_;
  std::vector<std::uint32_t> class_of_;
  Rows<std::uint32_t> predecessors_;
  Order depth_;  // of each step that waits, the longest chain of waiting ones that ends at it; 0: of others
  std::unordered_map<Batch, Order, HashBatch> waiting_;
  std::unordered_map<std::uint32_t, Order> deepest_;
  std::vector<bool> is_needed_;  // steps that are to run now, or have run
  Order needed_;                 // the former
  std::uint32_t batch_depth_ = 0;
  WaitingBytes* bytes_ = nullptr;
  Order order_;
  std::vector<bool> begins_;
};

}  // namespace

void join_steps(Plan& plan) {
  std::vector<std::uint32_t> class_of = classes_of(plan);
  if (std::ranges::all_of(class_of, [](std::uint32_t c) { return c == kAlone; })) return;
  const StepGraph graph(plan);
  Order given(graph.size());
  std::iota(given.begin(), given.end(), 0U);
  const std::int64_t most = peak_of(graph, given) + kMaxBytesHeldBack;
  std::size_t sources = 0;
  std::tie(given, sources) = sources_first(plan, graph, class_of, most);
  std::vector<bool> begins;
  const Order order =
      Joiner(graph, std::move(class_of)).run(given, sources, WaitingBytes(graph, given, most), begins);
  std::vector<Step> steps;
  steps.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    steps.push_back(std::move(plan.steps[order[i]]));
    steps.back().joined = !begins[i];
  }
  plan.steps = std::move(steps);
}

}  // namespace caldera
