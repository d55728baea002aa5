// Device: names where a tensor lives. A value type; opening the device is the runtime's business.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace caldera {

enum class DeviceKind : std::uint8_t { cpu, vulkan, null };

/// A device by kind and index: "cpu", "vulkan:0", "null". The null device plans and counts but computes
/// nothing.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  std::uint8_t index = 0;

  static constexpr Device cpu() { return {DeviceKind::cpu, 0}; }
  static constexpr Device vulkan(int index = 0) {
    return {DeviceKind::vulkan, static_cast<std::uint8_t>(index)};
  }
  static constexpr Device null() { return {DeviceKind::null, 0}; }

  /// Parses "cpu", "vulkan", "vulkan:N" or "null". Throws ValueError otherwise.
  static Device parse(std::string_view text);
  std::string to_string() const;

  friend constexpr bool operator==(Device, Device) = default;
};

}  // namespace caldera
