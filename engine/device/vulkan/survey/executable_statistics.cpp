#include "engine/device/vulkan/survey/executable_statistics.h"

namespace caldera::vulkan {
namespace {

double number_of(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return statistic.value.b32 != VK_FALSE ? 1 : 0;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return static_cast<double>(statistic.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return static_cast<double>(statistic.value.u64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
      return statistic.value.f64;
    default:
      return 0;
  }
}

}  // namespace

std::vector<NamedStatistic> read_statistics(LogicalDevice& device, VkPipeline pipeline) {
  std::vector<NamedStatistic> all;
  if (!device.keeps_statistics()) return all;
  const VolkDeviceTable& vk = device.vk();
  const VkPipelineInfoKHR info{.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline};
  std::uint32_t executables = 0;
  device.check(vk.vkGetPipelineExecutablePropertiesKHR(device.handle(), &info, &executables, nullptr),
               "asking for a kernel's statistics");
  for (std::uint32_t e = 0; e < executables; ++e) {
    const VkPipelineExecutableInfoKHR which{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline, .executableIndex = e};
    std::uint32_t count = 0;
    device.check(vk.vkGetPipelineExecutableStatisticsKHR(device.handle(), &which, &count, nullptr),
                 "asking for a kernel's statistics");
    std::vector<VkPipelineExecutableStatisticKHR> statistics(
        count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
    device.check(
        vk.vkGetPipelineExecutableStatisticsKHR(device.handle(), &which, &count, statistics.data()),
        "asking for a kernel's statistics");
    for (const VkPipelineExecutableStatisticKHR& s : statistics) all.push_back({s.name, number_of(s)});
  }
  return all;
}

}  // namespace caldera::vulkan
