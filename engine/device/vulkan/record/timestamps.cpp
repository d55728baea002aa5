#include "engine/device/vulkan/record/timestamps.h"

#include <cmath>

namespace caldera::vulkan {

bool has_timestamps(const PhysicalDevice& physical) {
  return physical.timestamp_bits > 0 && physical.timestamp_period > 0;
}

std::chrono::nanoseconds elapsed(const PhysicalDevice& physical, std::uint64_t from, std::uint64_t to) {
  const std::uint32_t bits = physical.timestamp_bits;
  const std::uint64_t mask = bits < 64 ? (std::uint64_t{1} << bits) - 1 : ~std::uint64_t{0};
  const auto ticks = static_cast<double>((to - from) & mask);
  return std::chrono::nanoseconds(std::llround(ticks * physical.timestamp_period));
}

Stamps::Stamps(DevicePtr device, std::uint32_t count) : device_(std::move(device)), count_(count) {
  const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                   .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                   .queryCount = count};
  device_->check(device_->vk().vkCreateQueryPool(device_->handle(), &info, nullptr, &pool_),
                 "creating timestamps");
}

Stamps::~Stamps() { device_->vk().vkDestroyQueryPool(device_->handle(), pool_, nullptr); }

void Stamps::reset(VkCommandBuffer commands) const {
  device_->vk().vkCmdResetQueryPool(commands, pool_, 0, count_);
}

void Stamps::take(VkCommandBuffer commands, std::uint32_t index) const {
  device_->vk().vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, pool_, index);
}

VkResult Stamps::read(std::vector<std::uint64_t>& ticks, VkQueryResultFlags flags) const {
  ticks.resize(count_);
  const VkResult result =
      device_->vk().vkGetQueryPoolResults(device_->handle(), pool_, 0, count_, ticks.size() * sizeof ticks[0],
                                          ticks.data(), sizeof ticks[0], VK_QUERY_RESULT_64_BIT | flags);
  device_->check(result, "reading timestamps");
  return result;
}

std::vector<std::uint64_t> Stamps::read() const {
  std::vector<std::uint64_t> ticks;
  read(ticks, VK_QUERY_RESULT_WAIT_BIT);
  return ticks;
}

std::optional<std::vector<std::uint64_t>> Stamps::read_if_ready() const {
  std::vector<std::uint64_t> ticks;
  if (read(ticks, 0) == VK_NOT_READY) return std::nullopt;
  return ticks;
}

}  // namespace caldera::vulkan
