#include "engine/graph/default_device.h"

#include <fmt/core.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>

#include "engine/base/error.h"

namespace caldera {
namespace {

std::mutex default_device_mutex;
std::optional<Device> chosen_default;

Device device_of_environment() {
  const char* text = std::getenv("CALDERA_DEVICE");
  const bool named = text != nullptr && *text != '\0' && std::string_view(text) != "auto";
  try {
    return named ? Device::parse(text) : Device::cpu();
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("CALDERA_DEVICE: {}", error.what()));
  }
}

}  // namespace

Device default_device() {
  const std::scoped_lock lock(default_device_mutex);
  if (!chosen_default) chosen_default = device_of_environment();
  return *chosen_default;
}

void set_default_device(Device device) {
  const std::scoped_lock lock(default_device_mutex);
  chosen_default = device;
}

}  // namespace caldera
