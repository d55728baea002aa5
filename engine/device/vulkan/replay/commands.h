// The command buffers of one plan with one argument table: recorded once, submitted as often as wanted.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/device/vulkan/record/recording.h"
#include "engine/device/vulkan/record/timestamps.h"
#include "engine/device/vulkan/steps/context.h"

namespace caldera::vulkan {

/// Owns a command pool. Not to be destroyed before its commands are done. One thread at a time.
class Commands {
 public:
  /// `table`: the address of the argument table.
  Commands(ContextPtr context, VkDeviceAddress table);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  /// Appends a command buffer of the dispatches [first, last). The one with the plan's first dispatch starts
  /// behind everything submitted before it; parts are submitted in order. The one with the plan's last
  /// dispatch makes results visible to the host. With `stamps`, a time is taken before the first dispatch and
  /// after each. Dispatches whose flag is set in `spared`, if it has one, are left out. Throws DeviceError.
  VkCommandBuffer record(const Recording& recording, std::size_t first, std::size_t last,
                         const Stamps* stamps = nullptr, const std::vector<bool>& spared = {});
  /// All that was recorded, in order.
  const std::vector<VkCommandBuffer>& buffers() const { return buffers_; }

 private:
  ContextPtr context_;
  VkDeviceAddress table_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> buffers_;
};

}  // namespace caldera::vulkan
