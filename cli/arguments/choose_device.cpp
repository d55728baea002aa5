#include "cli/arguments/choose_device.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/arguments/usage_error.h"
#include "engine/runtime/runtime.h"

namespace caldera::cli {
namespace {

// A software Vulkan device proves that a program is right; it is never what someone who leaves the choice
// wants.
Device best_device() {
  for (const DeviceInfo& info : list_devices())
    if (info.device.kind == DeviceKind::vulkan && info.type != "software") return info.device;
  return Device::cpu();
}

Device parse_device(const std::string& text, const char* source) {
  if (text == "auto") return best_device();
  // The null device computes nothing: as an answer to `--device null`, results would be noise.
  if (text != "null") {
    try {
      return Device::parse(text);
    } catch (const ValueError&) {
      // Reported below, with what named it.
    }
  }
  throw UsageError(fmt::format("{}: '{}' is no device; use cpu, vulkan, vulkan:N or auto", source, text));
}

}  // namespace

Device choose_device(const std::string& flag) {
  if (!flag.empty()) {
    const Device device = parse_device(flag, "--device");
    unsetenv("CALDERA_DEVICE");
    return device;
  }
  const char* environment = std::getenv("CALDERA_DEVICE");
  if (environment != nullptr && *environment != '\0') return parse_device(environment, "CALDERA_DEVICE");
  return best_device();
}

}  // namespace caldera::cli
