// Bitwise operations against C++'s own, over every width: extreme values, counts that are negative or too
// large.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class Bitwise : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, Bitwise, ::testing::ValuesIn(op_settings()), op_setting_name);

template <class T>
T shifted_left(T x, T count) {
  const int bits = std::numeric_limits<std::make_unsigned_t<T>>::digits;
  if (count < 0 || static_cast<std::uint64_t>(count) >= static_cast<std::uint64_t>(bits)) return 0;
  return static_cast<T>(static_cast<std::uint64_t>(x) << count);
}

template <class T>
T shifted_right(T x, T count) {
  const int bits = std::numeric_limits<std::make_unsigned_t<T>>::digits;
  if (count < 0 || static_cast<std::uint64_t>(count) >= static_cast<std::uint64_t>(bits))
    return x < 0 ? -1 : 0;
  return static_cast<T>(x >> count);
}

/// Every pair of awkward values of the type.
template <class T>
void check(Device device) {
  using Limits = std::numeric_limits<T>;
  const std::vector<T> values{0,
                              1,
                              2,
                              5,
                              7,
                              8,
                              15,
                              31,
                              32,
                              33,
                              63,
                              64,
                              100,
                              Limits::max(),
                              Limits::min(),
                              static_cast<T>(-1),
                              static_cast<T>(-77),
                              static_cast<T>(Limits::max() - 9)};
  const auto n = static_cast<std::int64_t>(values.size());
  const LazyTensor a = LazyTensor::from_vector(values, Shape{n, 1}, device);
  const LazyTensor b = LazyTensor::from_vector(values, Shape{n}, device);
  const std::vector<LazyTensor> results{bitwise_and(a, b),         bitwise_or(a, b),
                                        bitwise_xor(a, b),         bitwise_left_shift(a, b),
                                        bitwise_right_shift(a, b), bitwise_invert(b)};
  eval(results);
  std::vector<std::vector<T>> want(5);
  for (const T x : values) {
    for (const T y : values) {
      want[0].push_back(x & y);
      want[1].push_back(x | y);
      want[2].push_back(x ^ y);
      want[3].push_back(shifted_left<T>(x, y));
      want[4].push_back(shifted_right<T>(x, y));
    }
  }
  for (std::size_t k = 0; k < want.size(); ++k) EXPECT_EQ(results[k].to_vector<T>(), want[k]) << k;
  std::vector<T> inverted;
  for (const T x : values) inverted.push_back(static_cast<T>(~x));
  EXPECT_EQ(results[5].to_vector<T>(), inverted);
}

TEST_P(Bitwise, IsExactOnUint8) { check<std::uint8_t>(device()); }
TEST_P(Bitwise, IsExactOnInt32) { check<std::int32_t>(device()); }
TEST_P(Bitwise, IsExactOnInt64) {
  if (!supports(DType::i64)) GTEST_SKIP() << "no 64-bit integers here";
  check<std::int64_t>(device());
}

TEST_P(Bitwise, OfBoolIsLogical) {
  const LazyTensor a = upload(Host(Shape{4}, {0, 0, 1, 1}), DType::boolean, device());
  const LazyTensor b = upload(Host(Shape{4}, {0, 1, 0, 1}), DType::boolean, device());
  EXPECT_EQ(download(bitwise_and(a, b)), (std::vector<double>{0, 0, 0, 1}));
  EXPECT_EQ(download(bitwise_or(a, b)), (std::vector<double>{0, 1, 1, 1}));
  EXPECT_EQ(download(bitwise_xor(a, b)), (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(download(bitwise_invert(a)), (std::vector<double>{1, 1, 0, 0}));
}

TEST_P(Bitwise, PromotesAndTakesNumbers) {
  const LazyTensor bytes = upload(Host(Shape{3}, {1, 128, 255}), DType::u8, device());
  const LazyTensor wide = bitwise_left_shift(bytes, upload(Host(Shape{}, {4}), DType::i32, device()));
  EXPECT_EQ(wide.dtype(), DType::i32);
  EXPECT_EQ(download(wide), (std::vector<double>{16, 2048, 4080}));
  const LazyTensor narrow = bitwise_left_shift(bytes, 1);
  EXPECT_EQ(narrow.dtype(), DType::u8);
  EXPECT_EQ(download(narrow), (std::vector<double>{2, 0, 254}));
  EXPECT_EQ(download(bitwise_and(bytes, 0x81)), (std::vector<double>{1, 128, 129}));
}

}  // namespace
}  // namespace caldera::testing
