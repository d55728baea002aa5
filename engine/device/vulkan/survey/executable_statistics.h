// Reads what the driver says of a pipeline that it made (VK_KHR_pipeline_executable_properties).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/device/vulkan/open/device.h"
#include "engine/survey/code_facts.h"
#include "engine/survey/statistics.h"

namespace caldera::vulkan {

struct ExecutableFacts {
  std::vector<NamedStatistic> statistics;
  std::optional<CodeFacts> code;
  std::int64_t subgroup_size = 0;
};

/// Every statistic of the pipeline as the driver names it, and what its listing says; nothing where the
/// device keeps none (LogicalDevice::keeps_statistics). Any thread. Throws DeviceError.
ExecutableFacts read_executable(LogicalDevice& device, VkPipeline pipeline);

}  // namespace caldera::vulkan
