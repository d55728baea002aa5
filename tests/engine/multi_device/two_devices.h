// Two logical Vulkan devices, though the machine may have one: every physical device is listed twice. The
// list is made on first use, which is after static initialisation.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {

inline const bool kDevicesAreRepeated = ::setenv("CALDERA_VULKAN_REPEAT", "2", 1) == 0;

/// A test on the CPU and two Vulkan devices. Skipped where there is no Vulkan.
class TwoDevices : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    ASSERT_GE(list_devices().size(), 3U) << "CALDERA_VULKAN_REPEAT=2 lists every device twice";
  }

  static constexpr Device cpu() { return Device::cpu(); }
  static constexpr Device first() { return Device::vulkan(0); }
  static constexpr Device second() { return Device::vulkan(1); }
  static std::vector<Device> all() { return {cpu(), first(), second()}; }

 private:
  ScopedSettings scope_{GetParam()};  // fusion on or off
};

inline std::string fusion_name(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "fused" : "plain";
}

}  // namespace caldera::testing
