// A device that lacks a type: programs that use it are refused, and nothing else suffers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

const Device kGpu = Device::vulkan(0);

/// The device opened as if its driver had no f64. Every device here has every type.
class MissingType : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(kGpu);
    ASSERT_EQ(::setenv("CALDERA_VULKAN_WITHOUT", "float64", 1), 0);
    reopen_device(kGpu);
    ASSERT_FALSE(backend(kGpu).supports(DType::f64));
  }
  void TearDown() override {
    if (!is_available(kGpu)) return;
    ::unsetenv("CALDERA_VULKAN_WITHOUT");
    reopen_device(kGpu);
  }
  static LazyTensor doubles() { return LazyTensor::from_vector(std::vector<double>(3, 1.5), {3}, kGpu); }
  static LazyTensor leaf(const Floats& values) {
    return LazyTensor::from_vector(values, {static_cast<std::int64_t>(values.size())}, kGpu);
  }

 private:
  ScopedSettings scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Fusion, MissingType, ::testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "fused" : "plain"; });

TEST_P(MissingType, IsRefusedByNameAndNothingIsLost) {
  const LazyTensor x = doubles();
  const LazyTensor bad = x + x;
  const LazyTensor good = leaf({1, 2}) + 1.0;
  const std::uint64_t submits = backend(kGpu).counters().submits;
  try {
    eval({good, bad});
    ADD_FAILURE() << "accepted";
  } catch (const DTypeError& error) {
    for (const char* part : {"float64", "vulkan:0", "(3,)", "astype()"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
  EXPECT_FALSE(bad.is_evaluated());
  EXPECT_FALSE(good.is_evaluated()) << "a failed evaluation schedules nothing";
  EXPECT_THROW(bad.eval(), DTypeError);
  EXPECT_THROW(sum(exp(bad)).item(), DTypeError);
  EXPECT_EQ(backend(kGpu).counters().submits, submits);
  EXPECT_EQ(good.to_vector<float>(), (Floats{2, 3}));
  EXPECT_EQ(x.to_vector<double>()[2], 1.5) << "it can still be copied";
}

TEST_P(MissingType, IsInTheFutureOfAnAsynchronousEvaluation) {
  const LazyTensor x = doubles();
  const EvalFuture future = (x + x).eval_async();
  EXPECT_TRUE(future.is_ready());
  EXPECT_THROW(future.get(), DTypeError);
  EXPECT_THROW(future.get(), DTypeError) << "as often as asked";
  EXPECT_EQ((leaf({1}) + 1.0).item(), 2.0F);
}

}  // namespace
}  // namespace caldera::testing
