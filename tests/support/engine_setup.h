// The setups that one body of engine tests runs in: device, and fusion on or off.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/runtime/settings.h"
#include "tests/support/devices.h"

namespace caldera::testing {

struct EngineSetup {
  Device device;
  bool fusion = true;
};

inline std::vector<EngineSetup> engine_setups() {
  std::vector<EngineSetup> setups;
  for (Device device : tested_devices()) {
    setups.push_back({device, true});
    setups.push_back({device, false});
  }
  return setups;
}

inline std::string engine_setup_name(const ::testing::TestParamInfo<EngineSetup>& info) {
  const std::string device = info.param.device.kind == DeviceKind::vulkan ? "vulkan" : "cpu";
  return device + (info.param.fusion ? "_fused" : "_plain");
}

/// Proves every plan while it lives; restores the settings when it goes.
class ScopedSettings {
 public:
  explicit ScopedSettings(bool fusion = true) : saved_(settings()) {
    settings().fusion = fusion;
    settings().verify = true;
  }
  ~ScopedSettings() { settings() = saved_; }
  ScopedSettings(const ScopedSettings&) = delete;
  ScopedSettings& operator=(const ScopedSettings&) = delete;

 private:
  Settings saved_;
};

/// A test that runs in every setup.
class EngineTest : public ::testing::TestWithParam<EngineSetup> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(device()); }
  static Device device() { return GetParam().device; }

 private:
  ScopedSettings scope_{GetParam().fusion};
};

}  // namespace caldera::testing
