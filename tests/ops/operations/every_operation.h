// The entries of the table of operations as parameters of tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/catalogue/table/operation.h"
#include "tests/support/devices.h"

namespace caldera::testing {

inline std::vector<std::string> operation_names() {
  std::vector<std::string> out;
  for (const catalogue::Operation* operation : catalogue::operations()) out.emplace_back(operation->name);
  return out;
}

/// A test of one operation: Table/Test.What/softmax.
class OperationTest : public ::testing::TestWithParam<std::string> {
 protected:
  const catalogue::Operation& operation() const { return *catalogue::find_operation(GetParam()); }
  std::vector<catalogue::Sample> samples() const { return operation().samples(operation()); }
};

/// A test of one operation on one device: Table/Test.What/softmax_vulkan. Skipped where the device is absent.
class OperationDeviceTest : public ::testing::TestWithParam<std::tuple<std::string, Device>> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(device());
    set_default_device(device());
  }
  void TearDown() override { set_default_device(saved_); }

  const catalogue::Operation& operation() const {
    return *catalogue::find_operation(std::get<0>(GetParam()));
  }
  std::vector<catalogue::Sample> samples() const { return operation().samples(operation()); }
  Device device() const { return std::get<1>(GetParam()); }

 private:
  Device saved_ = default_device();
};

#define CALDERA_FOR_EVERY_OPERATION(fixture)                                       \
  INSTANTIATE_TEST_SUITE_P(Table, fixture, ::testing::ValuesIn(operation_names()), \
                           [](const auto& row) { return row.param; })
#define CALDERA_FOR_EVERY_OPERATION_AND_DEVICE(fixture)                                                  \
  INSTANTIATE_TEST_SUITE_P(                                                                              \
      Table, fixture,                                                                                    \
      ::testing::Combine(::testing::ValuesIn(operation_names()), ::testing::ValuesIn(tested_devices())), \
      [](const auto& row) {                                                                              \
        return std::get<0>(row.param) +                                                                  \
               (std::get<1>(row.param).kind == DeviceKind::vulkan ? "_vulkan" : "_cpu");                 \
      })

}  // namespace caldera::testing
