// Reductions over more points than one workgroup may loop over: they go in stages. Whole numbers, so that
// sums are exact.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/runtime/runtime.h"
#include "ops/ops.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class LongReduction : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

constexpr std::int64_t kLong = 20'000'003;  // a prime: no extent divides it, so a remainder is left over

TEST_P(LongReduction, CountsEveryElementOnce) {
  const LazyTensor ones = LazyTensor::ones({kLong}, DType::i32, GetParam());
  EXPECT_EQ(sum(ones).item<std::int32_t>(), kLong);
}

TEST_P(LongReduction, SeesEveryCoordinate) {
  const LazyTensor coordinates = iota({kLong}, 0, DType::i32, GetParam());
  EXPECT_EQ(max(coordinates).item<std::int32_t>(), kLong - 1);
  EXPECT_EQ(min(coordinates).item<std::int32_t>(), 0);
  // Every 1000th coordinate, ends included: 20001 hits spread over all parts.
  const LazyTensor hits = astype(remainder(coordinates, 1000) == 0, DType::i32);
  EXPECT_EQ(sum(hits).item<std::int32_t>(), (kLong - 1) / 1000 + 1);
}

TEST_P(LongReduction, KeepsRowsApart) {
  // 3 rows of 5 million, read through a slice: the two reduced dimensions cannot be walked as one.
  std::vector<std::int32_t> values(std::size_t{3} * 2500 * 2001);
  std::iota(values.begin(), values.end(), 0);
  const LazyTensor x = slice(LazyTensor::from_vector(values, {3, 2500, 2001}, GetParam()), 2, 0, 2000);
  const auto tops = max(x, {1, 2}).to_vector<std::int32_t>();
  const auto counts = sum(astype(x >= 0, DType::i32), {1, 2}).to_vector<std::int32_t>();
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(tops[row], static_cast<std::int32_t>((row + 1) * 2500 * 2001 - 2)) << row;
    EXPECT_EQ(counts[row], 2500 * 2000) << row;
  }
}

TEST_P(LongReduction, PlansAreProven) {
  const ScopedSettings scope;
  settings().verify = true;
  const LazyTensor x = LazyTensor::ones({kLong}, DType::f32, GetParam());
  EXPECT_NEAR(mean(x * 0.1F).item<double>(), 0.1, 1e-6);  // 20 million roundings of 0.1, added in parts
}

INSTANTIATE_TEST_SUITE_P(Devices, LongReduction, ::testing::ValuesIn(tested_devices()), [](const auto& row) {
  return row.param.kind == DeviceKind::cpu ? "cpu" : "vulkan";
});

}  // namespace
}  // namespace caldera::testing
