#include "engine/compile/order/levels.h"

#include <algorithm>
#include <numeric>

namespace caldera {

Levels::Levels(const Plan& plan, const StepGraph& graph) : graph_(graph), dispatch_of_(plan.steps.size()) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (s == 0 || !plan.steps[s].joined) ++count_;
    dispatch_of_[s] = static_cast<std::uint32_t>(count_ - 1);
  }
  find_earliest();
  find_latest();
}

Timeline Levels::timeline(const std::vector<Level>& level_of) const {
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

// Dependencies lead from earlier dispatches to later ones, so one pass over the steps is enough either way.

void Levels::find_earliest() {
  earliest_.assign(count_, 0);
  for (std::uint32_t s = 0; s < graph_.size(); ++s) {
    each_edge(s, [&](std::uint32_t from, std::uint32_t to) {
      earliest_[to] = std::max(earliest_[to], earliest_[from] + 1);
    });
  }
  for (Level level : earliest_) depth_ = std::max(depth_, level + 1);
}

void Levels::find_latest() {
  latest_.assign(count_, depth_ - 1);
  for (std::uint32_t s = static_cast<std::uint32_t>(graph_.size()); s-- > 0;) {
    each_edge(s, [&](std::uint32_t from, std::uint32_t to) {
      latest_[from] = std::min(latest_[from], latest_[to] - 1);
    });
  }
}

std::vector<Levels::Level> Levels::near_the_order() const {
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

std::vector<Levels::Level> Levels::by_effect() const {
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

}  // namespace caldera
