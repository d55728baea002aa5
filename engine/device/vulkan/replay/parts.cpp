#include "engine/device/vulkan/replay/parts.h"

#include <cstdint>

#include "engine/plan/cost.h"

namespace caldera::vulkan {
namespace {

/// What the first part may hold. Recording takes about a microsecond a dispatch and a submit some ten, so by
/// the time that such a part is done the next is there.
constexpr std::size_t kFirstDispatches = 16;
constexpr std::int64_t kFirstBytes = std::int64_t{16} << 20;
constexpr std::int64_t kFirstFlops = std::int64_t{1} << 30;
/// Parts stop growing at the first times this.
constexpr std::int64_t kMostGrowth = 64;

struct Work {
  std::int64_t bytes = 0;
  std::int64_t flops = 0;
};

}  // namespace

std::vector<std::size_t> first_run_parts(const Plan& plan, const Recording& recording) {
  const std::size_t count = recording.dispatches.size();
  if (count <= kFirstDispatches) return {count};
  std::vector<Work> work(count);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const DispatchRange& range = recording.steps[s];
    if (range.count == 0) continue;
    const StepCost cost = cost_of(plan, plan.steps[s]);
    work[range.first].bytes += cost.bytes();
    work[range.first].flops += cost.flops;
  }
  std::vector<std::size_t> ends;
  std::size_t held = 0;
  Work sum;
  std::int64_t growth = 1;
  for (std::size_t i = 0; i < count; ++i) {
    ++held;
    sum.bytes += work[i].bytes;
    sum.flops += work[i].flops;
    const bool is_full = held >= kFirstDispatches * static_cast<std::size_t>(growth) ||
                         sum.bytes >= kFirstBytes * growth || sum.flops >= kFirstFlops * growth;
    if (!is_full && i + 1 < count) continue;
    ends.push_back(i + 1);
    held = 0;
    sum = {};
    if (growth < kMostGrowth) growth *= 2;
  }
  return ends;
}

}  // namespace caldera::vulkan
