#include "engine/device/vulkan/steps/encoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "engine/base/error.h"

namespace caldera::vulkan {

std::uint32_t Encoder::groups(std::int64_t work, std::int64_t per_group) const {
  const std::int64_t wanted = (work + per_group - 1) / per_group;
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(wanted, context.device->capabilities().max_groups));
}

Dispatch& Encoder::dispatch(const Step& step, PipelinePtr pipeline, std::uint32_t block, std::uint32_t groups,
                            std::int64_t iterations, std::uint32_t instances) {
  const std::uint32_t limit = context.device->capabilities().loop_limit;
  if (limit > 0 && iterations > limit)
    throw DeviceError(fmt::format(
        "{} over {} needs {} loop iterations an invocation; the driver of {} stops at {}", step.name(),
        step.dims.to_string(), iterations, context.device->physical().info.name, limit));
  recording.dispatches.push_back({std::move(pipeline), groups, instances, block, barrier_next, iterations});
  if (barrier_next) ++recording.barriers;
  barrier_next = false;
  return recording.dispatches.back();
}

void Encoder::computes(std::size_t number) {
  if (number < dispatch_of.size()) dispatch_of[number] = recording.dispatches.size() - 1;
}

}  // namespace caldera::vulkan
