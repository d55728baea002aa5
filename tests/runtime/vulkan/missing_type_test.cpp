// A device that lacks a type: programs that use it are refused, and nothing else suffers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/open/physical_device.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

const Device kGpu = Device::vulkan(0);

/// The device opened as if its driver had no 16-bit storage. Every device here has every type.
class MissingType : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(kGpu);
    had_ = capabilities().storage_16bit;
    capabilities().storage_16bit = false;
    reopen_device(kGpu);
    ASSERT_FALSE(backend(kGpu).supports(DType::f16));
  }
  void TearDown() override {
    if (!is_available(kGpu)) return;
    capabilities().storage_16bit = had_;
    reopen_device(kGpu);
  }
  static LazyTensor halves() {
    return LazyTensor::from_vector(std::vector<Half>(3, to_half(1.5F)), {3}, kGpu);
  }
  static LazyTensor leaf(const Floats& values) {
    return LazyTensor::from_vector(values, {static_cast<std::int64_t>(values.size())}, kGpu);
  }

 private:
  /// What the driver was found to have: the list is const to everyone but this test.
  static vulkan::Capabilities& capabilities() {
    return const_cast<vulkan::PhysicalDevice&>(vulkan::physical_devices()[0]).capabilities;
  }

  ScopedSettings scope_{GetParam()};
  bool had_ = false;
};
INSTANTIATE_TEST_SUITE_P(Fusion, MissingType, ::testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "fused" : "plain"; });

TEST_P(MissingType, IsRefusedByNameAndNothingIsLost) {
  const LazyTensor x = halves();
  const LazyTensor bad = x + x;
  const LazyTensor good = leaf({1, 2}) + 1.0;
  const std::uint64_t submits = backend(kGpu).counters().submits;
  try {
    eval({good, bad});
    ADD_FAILURE() << "accepted";
  } catch (const DTypeError& error) {
    for (const char* part : {"float16", "vulkan:0", "(3,)", "astype()"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
  EXPECT_FALSE(bad.is_evaluated());
  EXPECT_FALSE(good.is_evaluated()) << "a failed evaluation schedules nothing";
  EXPECT_THROW(bad.eval(), DTypeError);
  EXPECT_THROW(sum(exp(bad)).item(), DTypeError);
  EXPECT_EQ(backend(kGpu).counters().submits, submits);
  EXPECT_EQ(good.to_vector<float>(), (Floats{2, 3}));
  EXPECT_EQ(to_float(x.to_vector<Half>()[2]), 1.5F) << "it can still be copied";
}

TEST_P(MissingType, IsInTheFutureOfAnAsynchronousEvaluation) {
  const LazyTensor x = halves();
  const EvalFuture future = (x + x).eval_async();
  EXPECT_TRUE(future.is_ready());
  EXPECT_THROW(future.get(), DTypeError);
  EXPECT_THROW(future.get(), DTypeError) << "as often as asked";
  EXPECT_EQ((leaf({1}) + 1.0).item(), 2.0F);
}

}  // namespace
}  // namespace caldera::testing
