// Constants and margins of 64-bit integers, which no double holds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/messages.h"
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
  EXPECT_TRUE(LazyTensor::full({}, 0.5, DType::boolean).item<bool>());
  EXPECT_FALSE(LazyTensor::full({}, -0.0, DType::boolean).item<bool>());
  EXPECT_TRUE(LazyTensor::full({}, 1e30, DType::boolean).item<bool>());
}

TEST_P(FillValues, AreRefusedByTypesThatDoNotHoldThem) {
  const auto refusal = [](FillValue value, DType dtype) {
    return message_of<ValueError>([&] { full({2}, value, dtype); });
  };
  EXPECT_MENTIONS(refusal(1e30, DType::i64),
                  "full: 1e+30 is no int64, which is from -9223372036854775808 to");
  EXPECT_MENTIONS(refusal(0x1p63, DType::i64), "is no int64");
  EXPECT_MENTIONS(refusal(-1e19, DType::i64), "full: -1e+19 is no int64");
  EXPECT_MENTIONS(refusal(std::nan(""), DType::i32), "full: nan is no int32");
  EXPECT_MENTIONS(refusal(std::numeric_limits<float>::infinity(), DType::u8), "full: inf is no uint8");
  EXPECT_MENTIONS(refusal(2147483648.0, DType::i32), "full: 2147483648 is no int32");
  EXPECT_MENTIONS(refusal(-129, DType::i8), "full: -129 is no int8, which is from -128 to 127");
  const LazyTensor x = LazyTensor::from_vector(std::vector<std::int32_t>{7, 8}, Shape{2});
  EXPECT_MENTIONS(message_of<ValueError>([&] { pad(x, {1}, {0}, 1e10); }), "pad: 10000000000 is no int32");
  EXPECT_THROW(full_like(x, std::nan("")), ValueError);
  EXPECT_THROW(masked_select(x, x > 7, 2, 1e10), ValueError);
}

TEST_P(FillValues, HoldWhatLiesNextToTheirLimits) {
  EXPECT_EQ(full({}, 2147483647.9, DType::i32).item<std::int32_t>(), 2147483647);
  EXPECT_EQ(full({}, -2147483648.9, DType::i32).item<std::int32_t>(), -2147483648LL);
  EXPECT_EQ(full({}, -0.9, DType::u8).item<int>(), 0);
  EXPECT_EQ(full({}, 4294967295U, DType::u32).item<std::int64_t>(), 4294967295);
  EXPECT_FALSE(FillValue(-1).fits(DType::u8));
  EXPECT_TRUE(FillValue(-0x1p63).fits(DType::i64));
  EXPECT_FALSE(FillValue(0x1p63).fits(DType::i64));
}

TEST_P(FillValues, AreNoUnsignedIntegersAboveInt64) {
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();  // -1 where it is converted
  const LazyTensor x = LazyTensor::from_vector(std::vector<float>{7, 8}, Shape{2});
  EXPECT_MENTIONS(message_of<ValueError>([&] { full({2}, huge); }), "18446744073709551615 is no int64");
  EXPECT_MENTIONS(message_of<ValueError>([&] { pad(x, {1}, {0}, huge); }), "18446744073709551615");
  EXPECT_MENTIONS(message_of<ValueError>([&] { x + huge; }), "18446744073709551615");
  EXPECT_EQ(to_int64(huge / 2), std::numeric_limits<std::int64_t>::max());
}

TEST_P(FillValues, NeedATypeThatExists) {
  EXPECT_MENTIONS(message_of<DTypeError>([] { zeros({2}, static_cast<DType>(99)); }), "zeros: DType(99)");
  const LazyTensor x = LazyTensor::from_vector(std::vector<float>{7, 8}, Shape{2});
  EXPECT_MENTIONS(message_of<DTypeError>([&] { x.to(static_cast<DType>(77)); }), "astype: DType(77)");
}

}  // namespace
}  // namespace caldera::testing
