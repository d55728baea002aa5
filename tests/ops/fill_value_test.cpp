// Constants and margins of 64-bit integers, which no double holds.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Longs = std::vector<std::int64_t>;

class FillValues : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, FillValues, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(FillValues, HoldEveryInteger) {
  if (!supports(DType::i64)) GTEST_SKIP() << "no int64 on this device";
  using Limits = std::numeric_limits<std::int64_t>;
  for (const std::int64_t value :
       {(std::int64_t{1} << 53) + 1, -(std::int64_t{1} << 53) - 1, Limits::max(), Limits::min()}) {
    EXPECT_EQ(LazyTensor::full({2}, value, DType::i64).to_vector<std::int64_t>(), (Longs{value, value}));
    const LazyTensor x = LazyTensor::from_vector(Longs{7, 8}, Shape{2});
    EXPECT_EQ(full_like(x, value).to_vector<std::int64_t>(), (Longs{value, value}));
    EXPECT_EQ(pad(x, {1}, {0}, value).to_vector<std::int64_t>(), (Longs{value, 7, 8}));
    EXPECT_EQ(pad(x, {1}, {0}, PadMode::constant, value).to_vector<std::int64_t>(), (Longs{value, 7, 8}));
    EXPECT_EQ(pad(x, {0}, {0}, value, {1}).to_vector<std::int64_t>(), (Longs{7, value, 8}));
    EXPECT_EQ(masked_select(x, x > 7, 2, value).to_vector<std::int64_t>(), (Longs{8, value}));
  }
}

TEST_P(FillValues, AreLiteralsOfAnyKind) {
  EXPECT_EQ(LazyTensor::full({1}, 3).to_vector<float>(), std::vector<float>{3});
  EXPECT_EQ(LazyTensor::full({1}, 2.5F).to_vector<float>(), std::vector<float>{2.5F});
  EXPECT_EQ(LazyTensor::full({1}, 2.5, DType::i32).to_vector<std::int32_t>(), std::vector<std::int32_t>{2});
  EXPECT_EQ(LazyTensor::full({1}, -2.5, DType::i32).to_vector<std::int32_t>(), std::vector<std::int32_t>{-2});
  EXPECT_TRUE(LazyTensor::full({}, true, DType::boolean).item<bool>());
  EXPECT_EQ(LazyTensor::full({1}, std::uint8_t{255}, DType::u8).to_vector<std::uint8_t>(),
            std::vector<std::uint8_t>{255});
}

}  // namespace
}  // namespace caldera::testing
