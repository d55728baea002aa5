#include "engine/compile/order/schedule.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/compile/order/shift_steps.h"
#include "engine/compile/order/step_graph.h"

namespace caldera {
namespace {

using Order = std::vector<std::uint32_t>;

/// No order needs less: what the hungriest step needs by itself.
std::int64_t least_need(const StepGraph& graph) {
  std::int64_t need = 0;
  for (std::size_t s = 0; s < graph.size(); ++s) {
    std::int64_t own = 0;
    for (std::int32_t block : graph.touches[s]) own += graph.bytes[static_cast<std::size_t>(block)];
    match_replacements(
        graph.replacements[s], [](std::int32_t, std::int32_t) { return true; },
        [&](std::int32_t output, std::int32_t) { own -= graph.bytes[static_cast<std::size_t>(output)]; });
    need = std::max(need, own);
  }
  return need;
}

/// For plans of at most 64 steps: an order of least peak, found by going on from whatever set of finished
/// steps has had the lowest peak so far. A set is a word, and what is alive depends on the set alone.
class LeastPeakSearch {
 public:
  /// Looks for an order with a peak below `bound`.
  LeastPeakSearch(const StepGraph& graph, std::int64_t bound) : graph_(graph), bound_(bound) {
    touched_by_.assign(graph.bytes.size(), 0);
    before_.assign(graph.size(), 0);
    for (std::size_t s = 0; s < graph.size(); ++s) {
      for (std::int32_t block : graph.touches[s]) touched_by_[static_cast<std::size_t>(block)] |= bit(s);
      for (std::uint32_t next : graph.successors[s]) before_[next] |= bit(s);
    }
  }

  /// Empty if there is none, or it takes too long to find.
  Order run() {
    const Set all = graph_.size() == 64 ? ~Set{0} : bit(graph_.size()) - 1;
    push({0, 0, 0, 0, 0});
    while (!open_.empty() && tried_ < kBudget) {
      const auto [peak, open_steps, index] = open_.top();
      open_.pop();
      const State state = states_[index];
      if (state.done == all) return path(index);
      if (peak > best_[state.done]) continue;  // reached better since
      expand(state, index);
    }
    return {};
  }

 private:
  using Set = std::uint64_t;
  struct State {
    Set done;
    std::int64_t live;
    std::int64_t peak;
    std::uint32_t parent;
    std::uint32_t step;  // that led here
  };
  struct Cost {
    std::int64_t during;
    std::int64_t after;
  };
  /// Steps tried after a set. Most plans need far fewer; with more, small plans would cost more than large
  /// ones.
  static constexpr int kBudget = 2000;

  static Set bit(std::size_t s) { return Set{1} << s; }

  Cost cost(const State& state, std::size_t s) const {
    const Set after = state.done | bit(s);
    const auto is_new = [&](std::int32_t block) {
      return (touched_by_[static_cast<std::size_t>(block)] & state.done) == 0;
    };
    const auto dies = [&](std::int32_t block) {
      return (touched_by_[static_cast<std::size_t>(block)] & ~after) == 0;
    };
    Cost cost{state.live, state.live};
    for (std::int32_t block : graph_.touches[s]) {
      const std::int64_t size = graph_.bytes[static_cast<std::size_t>(block)];
      if (is_new(block)) {
        cost.during += size;
        cost.after += size;
      }
      if (dies(block)) cost.after -= size;
    }
    match_replacements(
        graph_.replacements[s],
        [&](std::int32_t output, std::int32_t operand) {
          return is_new(output) && dies(operand) && !is_new(operand);
        },
        [&](std::int32_t output, std::int32_t) {
          cost.during -= graph_.bytes[static_cast<std::size_t>(output)];
        });
    return cost;
  }

  void expand(const State& state, std::uint32_t index) {
    children_.clear();
    for (std::size_t s = 0; s < graph_.size(); ++s) {
      if ((state.done & bit(s)) != 0 || (before_[s] & ~state.done) != 0) continue;
      const Cost c = cost(state, s);
      ++tried_;
      const State child{state.done | bit(s), c.after, std::max(state.peak, c.during), index,
                        static_cast<std::uint32_t>(s)};
      // A step that fits below the peak as it is and keeps no more alive is best taken at once: later it
      // would free as much, and before that everything else would run beside what it frees.
      if (c.after <= state.live && c.during <= state.peak) {
        push(child);
        return;
      }
      if (child.peak < bound_) children_.push_back(child);
    }
    for (const State& child : children_) push(child);
  }

  void push(const State& state) {
    const auto [at, is_first] = best_.try_emplace(state.done, state.peak);
    if (!is_first && at->second <= state.peak) return;
    at->second = state.peak;
    open_.emplace(state.peak, static_cast<int>(graph_.size()) - std::popcount(state.done),
                  static_cast<std::uint32_t>(states_.size()));
    states_.push_back(state);
  }

  Order path(std::uint32_t index) const {
    Order order;
    for (; states_[index].done != 0; index = states_[index].parent) order.push_back(states_[index].step);
    std::reverse(order.begin(), order.end());
    return order;
  }

  // Lowest peak first, then most steps done, then the earliest found.
  using Open = std::tuple<std::int64_t, int, std::uint32_t>;

  const StepGraph& graph_;
  std::int64_t bound_;
  std::vector<Set> touched_by_;
  std::vector<Set> before_;
  std::vector<State> states_;
  std::vector<State> children_;
  int tried_ = 0;
  std::unordered_map<Set, std::int64_t> best_;
  std::priority_queue<Open, std::vector<Open>, std::greater<>> open_;
};

/// Which of the steps that change live memory by the same amount goes first.
enum class Tie : std::uint8_t { earliest, newest };

/// Always takes the ready step that leaves least alive. `edges` and `degree` may be those of the reversed
/// graph: memory lives from its first step to its last, in either direction.
Order greedy(const StepGraph& graph, const Rows<std::uint32_t>& edges, std::vector<std::uint32_t> degree,
             Tie tie) {
  // The one step that has still to touch a block is known from the sum of those that have.
  std::vector<std::uint64_t> untouched(graph.bytes.size(), 0);
  for (std::uint32_t s = 0; s < graph.size(); ++s) {
    for (std::int32_t block : graph.touches[s]) untouched[static_cast<std::size_t>(block)] += s;
  }
  struct Candidate {
    std::int64_t change;
    std::int64_t rank;
    std::uint32_t step;
    bool operator<(const Candidate& other) const {  // the queue gives the greatest
      return std::tie(change, rank) > std::tie(other.change, other.rank);
    }
  };
  constexpr std::int64_t kDone = std::numeric_limits<std::int64_t>::max();
  LiveBytes live(graph);
  std::priority_queue<Candidate> ready;
  std::vector<std::int64_t> latest(graph.size(), 0);  // the change that a ready step was last queued with
  std::int64_t clock = 0;
  const auto enqueue = [&](std::uint32_t s) {
    latest[s] = live.change(s);
    ready.push({latest[s], tie == Tie::earliest ? static_cast<std::int64_t>(s) : -++clock, s});
  };
  for (std::uint32_t s = 0; s < graph.size(); ++s) {
    if (degree[s] == 0) enqueue(s);
  }
  Order order;
  order.reserve(graph.size());
  while (!ready.empty()) {
    const Candidate next = ready.top();
    ready.pop();
    if (latest[next.step] != next.change) continue;  // queued again since, or done
    latest[next.step] = kDone;
    for (std::int32_t block : graph.touches[next.step])
      untouched[static_cast<std::size_t>(block)] -= next.step;
    order.push_back(next.step);
    live.run(next.step, [&](std::int32_t block) {
      const auto last = static_cast<std::uint32_t>(untouched[static_cast<std::size_t>(block)]);
      if (degree[last] == 0 && latest[last] != kDone) enqueue(last);
    });
    for (std::uint32_t s : edges[next.step]) {
      if (--degree[s] == 0) enqueue(s);
    }
  }
  return order;
}

void reorder(Plan& plan, const Order& order) {
  std::vector<Step> steps;
  steps.reserve(plan.steps.size());
  for (std::uint32_t s : order) steps.push_back(std::move(plan.steps[s]));
  plan.steps = std::move(steps);
}

}  // namespace

void schedule(Plan& plan) {
  if (plan.steps.size() < 3) return;
  const StepGraph graph(plan);
  Order best(graph.size());
  std::iota(best.begin(), best.end(), 0U);
  std::int64_t peak = peak_of(graph, best);
  const std::int64_t least = least_need(graph);
  if (peak == least) return;

  bool changed = false;
  const auto take_if_lower = [&](Order order) {
    const std::int64_t its_peak = order.size() == graph.size() ? peak_of(graph, order) : peak;
    if (its_peak >= peak) return;
    peak = its_peak;
    best = std::move(order);
    changed = true;
  };
  const auto consider = [&](Order order) {
    if (order.size() == graph.size()) take_if_lower(shift_steps(graph, order));
    take_if_lower(std::move(order));
  };
  consider(greedy(graph, graph.successors, graph.predecessors, Tie::earliest));
  if (peak > least) consider(greedy(graph, graph.successors, graph.predecessors, Tie::newest));
  if (peak > least) {
    const Rows<std::uint32_t> edges = reversed_edges(graph);
    std::vector<std::uint32_t> degree(graph.size());
    for (std::size_t s = 0; s < graph.size(); ++s)
      degree[s] = static_cast<std::uint32_t>(graph.successors[s].size());
    for (Tie tie : {Tie::earliest, Tie::newest}) {
      Order order = greedy(graph, edges, degree, tie);
      std::reverse(order.begin(), order.end());
      consider(std::move(order));
    }
  }
  if (peak > least && graph.size() <= 64) consider(LeastPeakSearch(graph, peak).run());
  if (changed) reorder(plan, best);
}

std::int64_t peak_of_live_bytes(const Plan& plan) {
  const StepGraph graph(plan);
  Order order(graph.size());
  std::iota(order.begin(), order.end(), 0U);
  return peak_of(graph, order);
}

}  // namespace caldera
