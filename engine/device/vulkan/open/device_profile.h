// Tells what is worth knowing of a device beyond what its driver lets a program do (capabilities.h): whose it
// is, how wide it is, and what suits it. Two tables: what is assumed of a type of device, and rows for makers
// and generations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/device/vulkan/open/capabilities.h"
#include "engine/device/vulkan/open/device_facts.h"
#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

enum class Vendor : std::uint8_t { unknown, amd, apple, arm, intel, nvidia, qualcomm, software };

struct DeviceProfile {
  Vendor vendor = Vendor::unknown;
  /// The generation, where kernels or limits depend on it: "rdna3", "xe2" and the like, or empty.
  std::string_view architecture;
  /// Streaming multiprocessors, compute units, Xe cores, processor cores: what a workgroup runs on.
  std::uint32_t compute_units = 1;
  /// The size that kernels which may choose get: one of the sizes that the device has.
  std::uint32_t subgroup_size = 1;
  /// Whether matrix units are worth what they are asked for, where the driver lists them.
  bool matrix_units = true;
  /// Computes on the family that draws as well, although there is one that only computes.
  bool graphics_queue = false;
  /// Copies get a queue of their own where there is such.
  bool copy_queue = true;
  /// The host's memory is the device's: tensors may be in any heap.
  bool unified_memory = false;
  /// A few cores of a processor do what a GPU's thousands of lanes do: workgroups are few and long.
  bool few_cores = false;
  /// Kernels are measured when they are first needed (CALDERA_TUNE).
  bool measured = true;
  /// Rates that the slowest kernels reach on the slowest devices of this type, until something was measured:
  /// bytes and flops a second, and seconds for a turn of a loop.
  double bandwidth = 0, flops = 0, turn = 0;
  /// The longest that a submit may take, in seconds: what the strictest watchdog allows, with a margin.
  double submit = 0;
};

/// Holds what is assumed of a type of device.
struct TypeProfile {
  VkPhysicalDeviceType type;
  DeviceProfile profile;
};
std::span<const TypeProfile> type_profiles();

/// Says what differs for a maker or a generation: which devices, what, and why.
struct ProfileRow {
  const char* name;
  const char* reason;
  bool (*applies)(const DeviceFacts&);
  void (*change)(DeviceProfile&);
};
std::span<const ProfileRow> profile_rows();

/// The profile of a device. A pure function of what the driver says.
DeviceProfile profile_of(const DeviceFacts& facts);

/// Changes what a device can do to what its profile takes of it: the subgroup size, matrix units.
void apply_profile(const DeviceProfile& profile, Capabilities& capabilities);

/// "amd rdna3, 96 compute units, subgroups of 64": for `caldera devices`.
std::string describe(const DeviceProfile& profile);

}  // namespace caldera::vulkan
