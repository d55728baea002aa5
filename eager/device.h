// Device of the eager API: a device that is known to exist.
#pragma once

#include <cstdint>
#include <string>

#include "engine/tensor/device.h"

namespace caldera::v1 {

enum class DeviceType : std::uint8_t { Cpu, Vulkan };

struct DeviceInfo {
  DeviceType type = DeviceType::Cpu;
  int index = 0;
  std::string name;
  bool vulkan_available = false;
};

/// Names where a tensor lives. Unlike caldera::Device, which only names a device, one made by `vulkan` has
/// been opened.
class Device {
 public:
  /// The CPU.
  Device() = default;
  static Device cpu() { return {}; }
  /// Throws DeviceError when there is no such device (Unavailable) or it cannot be opened
  /// (InitializationFailed).
  static Device vulkan(int index = 0);
  /// The Vulkan device, or the CPU when there is none. The first fall-back of a process is said once on
  /// standard error, with the reason.
  static Device with_fallback(int index = 0);
  /// A device of the engine, opened. The null device is refused: eager calls need values.
  static Device from(caldera::Device device);

  bool is_vulkan() const { return device_.kind == DeviceKind::vulkan; }
  bool is_cpu() const { return device_.kind == DeviceKind::cpu; }
  /// Whether any Vulkan device can be used. Asked of the system once a process.
  static bool is_vulkan_available();
  DeviceInfo info() const;

  /// The engine's name for it. Implicit, so that a Device fits wherever the engine wants one.
  operator caldera::Device() const { return device_; }  // NOLINT(google-explicit-constructor)
  std::string to_string() const { return device_.to_string(); }
  friend bool operator==(const Device&, const Device&) = default;

 private:
  caldera::Device device_ = caldera::Device::cpu();
};

}  // namespace caldera::v1
