// Levels: orders of a plan's dispatches with as few barriers as their dependencies allow.
//
// A dispatch's level is the number of dispatches on the longest chain of dependencies that ends at it.
// Dispatches of one level run side by side, so a plan needs no more barriers than its depth (the highest
// level) less one, and no order of it can do with fewer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/compile/order/memory_plan.h"
#include "engine/compile/order/step_graph.h"
#include "engine/plan/plan.h"

namespace caldera {

/// A plan's dispatches and the levels at which each can run. Refers to `graph`.
class Levels {
 public:
  Levels(const Plan& plan, const StepGraph& graph);

  std::int64_t depth() const { return depth_; }

  /// Orders of least depth: the steps by level, those of one level in the order that they have. Which of them
  /// needs least memory depends on the plan.
  std::array<Timeline, 3> orders() const {
    return {timeline(near_the_order()), timeline(earliest_), timeline(by_effect())};
  }

 private:
  using Level = std::int64_t;

  /// Calls edge(from, to) for every dependency of another dispatch on that of `step`.
  template <class Edge>
  void each_edge(std::uint32_t step, Edge edge) const {
    for (std::uint32_t next : graph_.successors[step]) {
      if (dispatch_of_[step] != dispatch_of_[next]) edge(dispatch_of_[step], dispatch_of_[next]);
    }
  }
  void find_earliest();
  void find_latest();
  /// Stays as near to the plan's order as the depth allows: a dispatch runs as soon as one that follows it
  /// there has to.
  std::vector<Level> near_the_order() const;
  /// Runs what frees memory as early as can be, and what takes some as late as can be.
  std::vector<Level> by_effect() const;
  Timeline timeline(const std::vector<Level>& level_of) const;

  const StepGraph& graph_;
  std::vector<std::uint32_t> dispatch_of_;  // of each step
  std::size_t count_ = 0;
  std::vector<Level> earliest_;
  std::vector<Level> latest_;
  Level depth_ = 0;
};

}  // namespace caldera
