// Times that the device notes while it runs commands.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/device/vulkan/open/device.h"

namespace caldera::vulkan {

/// Whether the device's queue can take times.
bool has_timestamps(const PhysicalDevice& physical);

/// Time between two readings of the device's clock, of which `to` is the later. The clock may wrap once.
std::chrono::nanoseconds elapsed(const PhysicalDevice& physical, std::uint64_t from, std::uint64_t to);

/// A number of stamps, each taken once a replay. One thread at a time.
class Stamps {
 public:
  /// Throws DeviceError.
  Stamps(DevicePtr device, std::uint32_t count);
  ~Stamps();
  Stamps(const Stamps&) = delete;
  Stamps& operator=(const Stamps&) = delete;

  /// Recorded ahead of any `take`.
  void reset(VkCommandBuffer commands) const;
  /// Records that stamp number `index` is taken when every dispatch recorded before it is done. What comes
  /// after does not wait for that.
  void take(VkCommandBuffer commands, std::uint32_t index) const;

  /// The device's clock at each stamp, in ticks, once the commands are done. Throws DeviceError.
  std::vector<std::uint64_t> read() const;
  /// Reads them without a wait; nothing where the driver does not have them yet. Throws DeviceError.
  std::optional<std::vector<std::uint64_t>> read_if_ready() const;

 private:
  VkResult read(std::vector<std::uint64_t>& ticks, VkQueryResultFlags flags) const;

  DevicePtr device_;
  std::uint32_t count_;
  VkQueryPool pool_ = VK_NULL_HANDLE;
};

}  // namespace caldera::vulkan
