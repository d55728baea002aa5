#include "engine/device/vulkan/survey/executable_statistics.h"

#include <string>

namespace caldera::vulkan {
namespace {

constexpr const char* kAsking = "asking what the driver made of a kernel";

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

void read_statistics(LogicalDevice& device, const VkPipelineExecutableInfoKHR& which,
                     std::vector<NamedStatistic>& all) {
  const VolkDeviceTable& vk = device.vk();
  std::uint32_t count = 0;
  device.check(vk.vkGetPipelineExecutableStatisticsKHR(device.handle(), &which, &count, nullptr), kAsking);
  std::vector<VkPipelineExecutableStatisticKHR> statistics(
      count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
  device.check(vk.vkGetPipelineExecutableStatisticsKHR(device.handle(), &which, &count, statistics.data()),
               kAsking);
  for (const VkPipelineExecutableStatisticKHR& s : statistics) all.push_back({s.name, number_of(s)});
}

/// Of the listings that the driver has, the one that can be read.
std::optional<CodeFacts> read_listings(LogicalDevice& device, const VkPipelineExecutableInfoKHR& which) {
  const auto ask = [&](std::uint32_t& count, VkPipelineExecutableInternalRepresentationKHR* to) {
    device.check(
        device.vk().vkGetPipelineExecutableInternalRepresentationsKHR(device.handle(), &which, &count, to),
        kAsking);
  };
  std::uint32_t count = 0;
  ask(count, nullptr);
  std::vector<VkPipelineExecutableInternalRepresentationKHR> listings(
      count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR});
  ask(count, listings.data());  // how long they are
  std::vector<std::string> texts;
  for (auto& listing : listings) {
    texts.emplace_back(listing.dataSize, '\0');
    listing.pData = texts.back().data();
  }
  ask(count, listings.data());
  for (std::size_t i = 0; i < listings.size(); ++i) {
    if (listings[i].isText == VK_FALSE) continue;
    if (auto facts = read_code(listings[i].name, texts[i].c_str())) return facts;
  }
  return std::nullopt;
}

}  // namespace

ExecutableFacts read_executable(LogicalDevice& device, VkPipeline pipeline) {
  ExecutableFacts facts;
  if (!device.keeps_statistics()) return facts;
  const VolkDeviceTable& vk = device.vk();
  const VkPipelineInfoKHR info{.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline};
  std::uint32_t count = 0;
  device.check(vk.vkGetPipelineExecutablePropertiesKHR(device.handle(), &info, &count, nullptr), kAsking);
  std::vector<VkPipelineExecutablePropertiesKHR> executables(
      count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR});
  device.check(vk.vkGetPipelineExecutablePropertiesKHR(device.handle(), &info, &count, executables.data()),
               kAsking);
  // A compute pipeline is one executable; should a driver list more, they are parts of it.
  for (std::uint32_t e = 0; e < count; ++e) {
    const VkPipelineExecutableInfoKHR which{
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline, .executableIndex = e};
    facts.subgroup_size = executables[e].subgroupSize;
    read_statistics(device, which, facts.statistics);
    if (!facts.code) facts.code = read_listings(device, which);
  }
  return facts;
}

}  // namespace caldera::vulkan
