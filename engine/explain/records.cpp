#include "engine/explain/records.h"

#include <fmt/core.h>

#include <algorithm>

namespace caldera {

double seconds_of(const StepTime& time) {
  return std::max(std::chrono::duration<double>(time.end - time.begin).count(), 1e-9);
}

std::string KernelRun::name(const Plan& plan) const {
  const std::string own = plan.steps[first].name();
  return count == 1 ? own : fmt::format("{} (and {} more)", own, count - 1);
}

std::vector<KernelRun> kernel_runs(const Plan& plan, std::span<const StepTime> times) {
  std::vector<KernelRun> kernels;
  kernels.reserve(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    const StepCost cost = cost_of(plan, plan.steps[i]);
    // A device that runs steps of one dispatch one by one gives each its own time.
    const Step& step = plan.steps[i];
    const bool same_dispatch = (step.joined || step.finishes) && !kernels.empty() &&
                               times[i].begin == kernels.back().time.begin &&
                               times[i].end == kernels.back().time.end;
    if (same_dispatch) {
      ++kernels.back().count;
      kernels.back().cost += cost;
    } else {
      kernels.push_back({.first = i, .count = 1, .time = times[i], .cost = cost});
    }
  }
  return kernels;
}

}  // namespace caldera
