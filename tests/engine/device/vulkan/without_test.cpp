// A device without optional features is used as it is: what lacks storage of 8 and 16 bits computes with such
// elements all the same, and what it lacks otherwise is refused by name.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "engine/base/error.h"
#include "engine/check/doctor/families.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/engine_setup.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

class VulkanWithout : public ::testing::Test {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(Device::vulkan(0)); }
  void TearDown() override { ::unsetenv("CALDERA_VULKAN_WITHOUT"); }

  static std::unique_ptr<Backend> device_without(const char* features) {
    EXPECT_EQ(::setenv("CALDERA_VULKAN_WITHOUT", features, 1), 0);
    return make_vulkan_backend(0);
  }

  /// The doctor's families of the name pass.
  static void expect_healthy(Backend& backend, const std::string& family) {
    doctor::Options options;
    options.filter = family;
    const doctor::Report report = doctor::examine(backend, options);
    EXPECT_GT(report.checks.size(), 20U) << family;
    for (const doctor::Check& check : report.checks)
      EXPECT_TRUE(check.good()) << check.name << ": " << check.complaints[0];
  }
};

TEST_F(VulkanWithout, SmallElementsArePartsOfWords) {
  const auto backend = device_without("8-bit-storage,16-bit-storage,int8,int16,float16");
  for (DType type : {DType::boolean, DType::u8, DType::i8, DType::i16, DType::f16, DType::bf16})
    EXPECT_TRUE(backend->supports(type)) << name(type);
  expect_healthy(*backend, "casts");
  expect_healthy(*backend, "gather and scatter");
  expect_healthy(*backend, "rows");
}

/// One of the two is missing, and nothing else.
TEST_F(VulkanWithout, BytesAloneArePartsOfWords) {
  expect_healthy(*device_without("8-bit-storage,int8"), "gather and scatter");
}

/// Neighbours of a word are stored by different invocations, and products read and write such elements.
TEST_F(VulkanWithout, ProductsOfSmallElements) {
  const auto backend = device_without("8-bit-storage,16-bit-storage,int8,int16,float16");
  for (DType type : {DType::u8, DType::f16, DType::bf16}) {
    const DType sums = type == DType::u8 ? type : DType::f32;
    for (const Shape& s : {Shape{1, 37, 5}, Shape{9, 21, 70}, Shape{130, 67, 33}}) {
      PlanCase plan(Device::vulkan(0));
      const int a = plan.input(type, s[0] * s[2]);
      const int b = plan.input(type, s[2] * s[1]);
      const int z = plan.output(sums, s[0] * s[1]);
      plan.contract(sums, {s[0], s[1], s[2]},
                    {view(a, {s[2], 0, 1}), view(b, {0, 1, s[1]}), view(z, {s[1], 1, 0})});
      const double allowed = type == DType::u8 ? 0 : 1e-5;
      SCOPED_TRACE(name(type));
      plan.check_on(*backend, {allowed, allowed});
    }
  }
}

TEST_F(VulkanWithout, WhatIsMissingIsNamed) {
  const auto backend = device_without("float64,int64");
  EXPECT_FALSE(backend->supports(DType::f64));
  EXPECT_FALSE(backend->supports(DType::i64));
  for (const std::string& feature : backend->info().features) EXPECT_NE(feature, "float64");
  try {
    device_without("float64,fast-math");
    ADD_FAILURE() << "an unknown feature was taken";
  } catch (const ValueError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("'fast-math'"), std::string::npos) << text;
    EXPECT_NE(text.find("subgroup-arithmetic"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace caldera::testing
