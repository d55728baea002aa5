#include "engine/compile/order/levels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/compile/order/hazards.h"
#include "engine/compile/order/memory_plan.h"
#include "engine/compile/order/step_graph.h"

namespace caldera {
namespace {

using Level = std::int64_t;

/// A plan's dispatches and the levels at which each can run.
class Levels {
 public:
  Levels(const Plan& plan, const StepGraph& graph) : graph_(graph), dispatch_of_(plan.steps.size()) {
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      if (s == 0 || !plan.steps[s].joined) ++count_;
      dispatch_of_[s] = static_cast<std::uint32_t>(count_ - 1);
    }
    find_earliest();
    find_latest();
  }

  Level depth() const { return depth_; }

  /// Orders of least depth. Which of them needs least memory depends on the plan.
  std::array<std::vector<Level>, 3> candidates() const { return {near_the_order(), earliest_, by_effect()}; }

  /// The steps by level, those of one level in the order that they have.
  Timeline timeline(const std::vector<Level>& level_of) const {
    Timeline timeline;
    timeline.order.resize(dispatch_of_.size());
    std::iota(timeline.order.begin(), timeline.order.end(), 0U);
    const auto level = [&](std::uint32_t step) { return level_of[dispatch_of_[step]]; };
    std::stable_sort(timeline.order.begin(), timeline.order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return level(a) < level(b); });
    timeline.times.reserve(timeline.order.size());
    for (std::uint32_t step : timeline.order) timeline.times.push_back(level(step));
    return timeline;
  }

 private:
  /// Calls edge(from, to) for every dependency between two dispatches, by the later one's predecessors or the
  /// earlier one's successors alike: in order of the step that it comes from.
  template <class Edge>
  void each_edge(std::uint32_t step, Edge edge) const {
    for (std::uint32_t next : graph_.successors[step]) {
      if (dispatch_of_[step] != dispatch_of_[next]) edge(dispatch_of_[step], dispatch_of_[next]);
    }
  }

  // Dependencies lead from earlier dispatches to later ones, so one pass over the steps is enough either way.
  void find_earliest() {
    earliest_.assign(count_, 0);
    for (std::uint32_t s = 0; s < graph_.size(); ++s) {
      each_edge(s, [&](std::uint32_t from, std::uint32_t to) {
        earliest_[to] = std::max(earliest_[to], earliest_[from] + 1);
      });
    }
    for (Level level : earliest_) depth_ = std::max(depth_, level + 1);
  }
  void find_latest() {
    latest_.assign(count_, depth_ - 1);
    for (std::uint32_t s = static_cast<std::uint32_t>(graph_.size()); s-- > 0;) {
      each_edge(s, [&](std::uint32_t from, std::uint32_t to) {
        latest_[from] = std::min(latest_[from], latest_[to] - 1);
      });
    }
  }

  /// As near to the order that the plan has as the depth allows: a dispatch runs as soon as one that follows
  /// it there has to.
  std::vector<Level> near_the_order() const {
    constexpr std::int64_t kNone = -1;
    std::vector<std::int64_t> reach(static_cast<std::size_t>(depth_),
                                    kNone);  // the last that must run by a level
    for (std::size_t d = 0; d < count_; ++d)
      reach[static_cast<std::size_t>(latest_[d])] = static_cast<std::int64_t>(d);
    std::partial_sum(reach.begin(), reach.end(), reach.begin(),
                     [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
    std::vector<Level> level(count_);
    for (std::size_t d = 0; d < count_; ++d) {
      level[d] = std::lower_bound(reach.begin(), reach.end(), static_cast<std::int64_t>(d)) - reach.begin();
    }
    for (std::uint32_t s = 0; s < graph_.size(); ++s) {
      each_edge(
          s, [&](std::uint32_t from, std::uint32_t to) { level[to] = std::max(level[to], level[from] + 1); });
    }
    return level;
  }

  /// What frees memory as early as can be, what takes some as late as can be.
  std::vector<Level> by_effect() const {
    std::vector<std::int64_t> effect(count_, 0);
    LiveBytes live(graph_);
    for (std::uint32_t s = 0; s < graph_.size(); ++s) {
      effect[dispatch_of_[s]] += live.change(s);
      live.run(s, [](std::int32_t) {});
    }
    std::vector<Level> level(count_, depth_ - 1);  // the latest that those after it leave
    for (std::uint32_t s = static_cast<std::uint32_t>(graph_.size()); s-- > 0;) {
      const std::uint32_t from = dispatch_of_[s];
      each_edge(s,
                [&](std::uint32_t, std::uint32_t to) { level[from] = std::min(level[from], level[to] - 1); });
      const bool is_first = s == 0 || dispatch_of_[s - 1] != from;
      if (is_first && effect[from] <= 0) level[from] = earliest_[from];
    }
    return level;
  }

  const StepGraph& graph_;
  std::vector<std::uint32_t> dispatch_of_;  // of each step
  std::size_t count_ = 0;
  std::vector<Level> earliest_;
  std::vector<Level> latest_;
  Level depth_ = 0;
};

void reorder(Plan& plan, const std::vector<std::uint32_t>& order) {
  std::vector<Step> steps;
  steps.reserve(plan.steps.size());
  for (std::uint32_t s : order) steps.push_back(std::move(plan.steps[s]));
  plan.steps = std::move(steps);
}

std::int64_t most_bytes(std::int64_t arena_bytes) {
  const auto share = static_cast<std::int64_t>(static_cast<double>(arena_bytes) * kMostForFewerBarriers);
  return arena_bytes + std::max(share, kAlwaysForFewerBarriers);
}

}  // namespace

void plan_levels(Plan& plan) {
  if (plan.barrier_count() == 0) return;
  const StepGraph graph(plan);
  const Levels levels(plan, graph);
  if (plan.barrier_count() < levels.depth()) return;

  Timeline best;
  Places best_places;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const std::vector<Level>& level_of : levels.candidates()) {
    Timeline timeline = levels.timeline(level_of);
    Places places = find_places(graph, timeline);
    const std::int64_t peak = peak_of(places.places);
    if (peak >= least) continue;
    least = peak;
    best = std::move(timeline);
    best_places = std::move(places);
  }
  const std::int64_t most = most_bytes(plan.arena_bytes);
  if (least > most) return;
  const ArenaLayout layout = lay_out(best_places.places);
  if (layout.bytes > most) return;
  apply(plan, graph, best_places, layout);
  reorder(plan, best.order);
  plan_barriers(plan);
}

}  // namespace caldera
