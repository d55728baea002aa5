#include "engine/tensor/device.h"

#include <fmt/core.h>

#include <charconv>

#include "engine/base/error.h"

namespace caldera {

Device Device::parse(std::string_view text) {
  if (text == "cpu") return cpu();
  if (text == "null") return null();
  if (text == "vulkan") return vulkan(0);
  constexpr std::string_view kPrefix = "vulkan:";
  if (text.starts_with(kPrefix)) {
    const std::string_view digits = text.substr(kPrefix.size());
    std::uint8_t index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc() && end == digits.data() + digits.size()) return vulkan(index);
  }
  throw ValueError(fmt::format("unknown device '{}': use cpu, vulkan or vulkan:N", text));
}

std::string Device::to_string() const {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::null:
      return "null";
    case DeviceKind::vulkan:
      break;
  }
  return fmt::format("vulkan:{}", index);
}

}  // namespace caldera
