// DispatchPlan: a dispatch of a plan as a plan of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera::check {

struct DispatchPlan {
  /// The steps of the dispatch. What they write is an output, what they only read an input; there is no
  /// arena.
  std::shared_ptr<const Plan> plan;
  std::vector<std::size_t> buffers;  ///< of the whole plan: where each buffer of `plan` comes from
  std::size_t first = 0;             ///< the number of the dispatch's first step in the whole plan

  std::size_t end() const { return first + plan->steps.size(); }
};

/// Cuts the dispatch that begins with step `first` out of the plan: the step, those joined to it, and those
/// that a device may run at its end. `first` is not itself joined.
DispatchPlan cut_dispatch(const Plan& whole, std::size_t first);

}  // namespace caldera::check
