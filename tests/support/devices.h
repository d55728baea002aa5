// The devices that one body of tests runs on.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/device/backend.h"

namespace caldera::testing {

/// The CPU, and the first Vulkan device where this build and this machine have one.
std::vector<Device> available_devices();

/// Every device that tests are written for, there or not: the parameter of device tests.
std::vector<Device> tested_devices();

bool is_available(Device device);

/// Opens the device. Throws DeviceError when it is not there.
std::unique_ptr<Backend> make_backend(Device device);

/// The device opened once for the whole test program.
Backend& shared_backend(Device device);

/// Names a parametrised test after its device.
inline std::string device_test_name(const ::testing::TestParamInfo<Device>& info) {
  return info.param.kind == DeviceKind::vulkan ? "vulkan" : "cpu";
}

}  // namespace caldera::testing

/// Skips the test, naming the device, where it is absent. For the body of a test, because it returns.
#define CALDERA_REQUIRE_DEVICE(device)           \
  if (!::caldera::testing::is_available(device)) \
  GTEST_SKIP() << "no device " << (device).to_string() << " here"
