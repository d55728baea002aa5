// A layer over the Vulkan entry points that makes chosen calls fail, as a driver might.
//
// Every call of the entry points in the table is counted. One call, or every call from one on, can be made to
// fail: it does not reach the driver, and what it would have made stays null. A device that was lost once
// stays lost: whatever may report it does, while destroying goes on as it must.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/device/vulkan/open/vk.h"

namespace caldera::testing {

/// An entry point that can fail: its name, and the result that the tests make it fail with once.
struct FaultSite {
  const char* entry;
  VkResult result;
  bool reports_loss;  // may return VK_ERROR_DEVICE_LOST
};
std::span<const FaultSite> fault_sites();

/// One layer a process: devices that are opened while it is installed go through it. Thread-safe, but for
/// `install`, which is called before the first device is opened.
class VulkanFaults {
 public:
  /// Idempotent.
  static void install();

  /// Forgets the counts, and what was to fail.
  static void reset();
  /// The n-th call of `entry` since the last reset (1: the next) fails with `result`, and only that one
  /// unless the device is lost by it. Throws std::invalid_argument for an entry that is not in the table.
  static void fail(const std::string& entry, std::uint64_t n, VkResult result);
  /// Every second call of `entry` fails, beginning with the next.
  static void fail_alternately(const std::string& entry, VkResult result);
  /// How many calls were made to fail since the last reset.
  static std::uint64_t struck();
  /// Calls of `entry` since the last reset, those that failed included.
  static std::uint64_t calls(const std::string& entry);
  /// Devices that are open now.
  static std::size_t open_devices();
};

}  // namespace caldera::testing
