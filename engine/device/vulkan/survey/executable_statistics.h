// What the driver says of a pipeline that it made (VK_KHR_pipeline_executable_properties).
#pragma once

#include <vector>

#include "engine/device/survey/statistics.h"
#include "engine/device/vulkan/open/device.h"

namespace caldera::vulkan {

/// Every statistic of the pipeline, as the driver names it; nothing where the device keeps none
/// (LogicalDevice::keeps_statistics). Any thread. Throws DeviceError.
std::vector<NamedStatistic> read_statistics(LogicalDevice& device, VkPipeline pipeline);

}  // namespace caldera::vulkan
