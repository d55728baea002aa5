// The command buffers of one plan with one argument table: recorded once, submitted as often as wanted.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/vulkan/record/recording.h"
#include "engine/device/vulkan/record/timestamps.h"
#include "engine/device/vulkan/replay/parts.h"
#include "engine/device/vulkan/steps/context.h"

namespace caldera::vulkan {

/// Which times the device notes, in `stamps`, if there are any: number 0 before everything and one after each
/// dispatch of the plan; or one before and one after each part, so that what passes between two submits
/// counts for neither.
struct Marks {
  std::shared_ptr<const Stamps> stamps;
  bool each_dispatch = false;
};

/// Owns a command pool. Not to be destroyed before its commands are done. One thread at a time.
class Commands {
 public:
  /// `table`: the address of the argument table.
  Commands(ContextPtr context, VkDeviceAddress table);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  /// Appends a command buffer of the next part. The plan's first one starts behind everything submitted
  /// before it; parts are submitted in order. The last one makes results visible to the host. Dispatches
  /// whose flag is set in `spared`, if it has one, are left out. Throws DeviceError.
  VkCommandBuffer record(const Recording& recording, const Part& part, const Marks& marks = {},
                         const std::vector<bool>& spared = {});
  /// All that was recorded, in order.
  const std::vector<VkCommandBuffer>& buffers() const { return buffers_; }

 private:
  ContextPtr context_;
  VkDeviceAddress table_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> buffers_;
};

}  // namespace caldera::vulkan
