#include "engine/compile/order/finish_steps.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/compile/program/limits.h"

namespace caldera {
namespace {

std::size_t end_of_dispatch(const Plan& plan, std::size_t first) {
  std::size_t end = first + 1;
  while (end < plan.steps.size() && plan.steps[end].joined) ++end;
  return end;
}

/// Whether a single workgroup does it about as fast as a dispatch begins and ends.
bool is_small(std::span<const Step> dispatch) {
  std::int64_t points = 0;
  for (const Step& step : dispatch) {
    if (!step.is<RegionStep>()) return false;
    points += step.dims.numel();
  }
  return points > 0 && points <= kMostFinishingPoints;
}

}  // namespace

void finish_steps(Plan& plan) {
  for (std::size_t first = 0, next = 0; first < plan.steps.size(); first = next) {
    next = end_of_dispatch(plan, first);
    if (next == plan.steps.size()) return;
    if (!plan.steps[first].is<ContractStep>() || (first > 0 && !plan.steps[first].barrier_before)) continue;
    const std::size_t end = end_of_dispatch(plan, next);
    const bool waits =
        plan.steps[next].barrier_before && (end == plan.steps.size() || plan.steps[end].barrier_before);
    if (waits && is_small(std::span(plan.steps).subspan(next, end - next))) plan.steps[next].finishes = true;
  }
}

}  // namespace caldera
