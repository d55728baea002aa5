#include "tests/support/devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/cpu/cpu_backend.h"
#include "engine/device/null/null_backend.h"

#ifndef CALDERA_HAS_VULKAN
#define CALDERA_HAS_VULKAN 0
#endif
#if CALDERA_HAS_VULKAN
#include "engine/device/vulkan/vulkan_backend.h"
#endif

namespace caldera::testing {

#if CALDERA_HAS_VULKAN
namespace {

/// Every test program that can use Vulkan runs under the validation layers, where they are installed, and
/// fails if they had anything to say.
class SilentValidation : public ::testing::Environment {
 public:
  void TearDown() override { EXPECT_EQ(vulkan_validation_messages(), 0U); }
};

[[maybe_unused]] const bool kRegistered = [] {
#ifdef CALDERA_TEST_VALIDATION
  setenv("CALDERA_VALIDATION", "1", 0);
#endif
  ::testing::AddGlobalTestEnvironment(new SilentValidation);
  return true;
}();

}  // namespace
#endif

std::vector<Device> available_devices() {
  static const std::vector<Device> devices = [] {
    std::vector<Device> found{Device::cpu()};
#if CALDERA_HAS_VULKAN
    if (!list_vulkan_devices().empty()) found.push_back(Device::vulkan(0));
#endif
    return found;
  }();
  return devices;
}

std::vector<Device> tested_devices() { return {Device::cpu(), Device::vulkan(0)}; }

bool is_available(Device device) {
  const auto devices = available_devices();
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

std::unique_ptr<Backend> make_backend(Device device) {
  switch (device.kind) {
    case DeviceKind::cpu:
      return make_cpu_backend();
    case DeviceKind::null:
      return make_null_backend();
    case DeviceKind::vulkan:
      break;
  }
#if CALDERA_HAS_VULKAN
  return make_vulkan_backend(device.index);
#else
  throw DeviceError("this build has no Vulkan");
#endif
}

Backend& shared_backend(Device device) {
  static std::map<std::string, std::unique_ptr<Backend>> open;
  auto& backend = open[device.to_string()];
  if (backend == nullptr) backend = make_backend(device);
  return *backend;
}

}  // namespace caldera::testing
