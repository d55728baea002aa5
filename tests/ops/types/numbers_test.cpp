// C++ numbers beside tensors of integers: those that the type does not hold are compared as they are, limit
// what is clipped, and are refused elsewhere.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class Numbers : public OpTest {
 protected:
  template <class T>
  LazyTensor of(const std::vector<T>& x) const {
    return LazyTensor::from_vector(x, Shape{static_cast<std::int64_t>(x.size())}, device());
  }
  LazyTensor bytes() const { return of(std::vector<std::uint8_t>{0, 44, 255}); }
  LazyTensor ints() const {
    return of(std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(), -1, 0,
                                        std::numeric_limits<std::int32_t>::max()});
  }
  static std::vector<double> held(const LazyTensor& x) {
    return to(x, Device::cpu()).astype(DType::f64).to_vector<double>();
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Numbers, ::testing::ValuesIn(op_settings()), op_setting_name);

using Values = std::vector<double>;

TEST_P(Numbers, BeyondATypeAreComparedAsTheyAre) {
  EXPECT_EQ(held(bytes() == -1), (Values{0, 0, 0}));
  EXPECT_EQ(held(bytes() == 300), (Values{0, 0, 0}));
  EXPECT_EQ(held(bytes() != 300), (Values{1, 1, 1}));
  EXPECT_EQ(held(bytes() > -1), (Values{1, 1, 1}));
  EXPECT_EQ(held(bytes() <= 300), (Values{1, 1, 1}));
  EXPECT_EQ(held(256 > bytes()), (Values{1, 1, 1}));
  EXPECT_EQ(held(bytes() >= 256), (Values{0, 0, 0}));
  EXPECT_EQ(held(ints() < (1LL << 32)), (Values{1, 1, 1, 1}));
  EXPECT_EQ(held(ints() == (1LL << 32) - 1), (Values{0, 0, 0, 0}));
  EXPECT_EQ(held(ints() < -(1LL << 40)), (Values{0, 0, 0, 0}));
  const LazyTensor longs = of(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(), 5});
  EXPECT_EQ(held(longs == std::numeric_limits<std::int64_t>::max()), (Values{1, 0}));
  const LazyTensor words = of(std::vector<std::uint32_t>{4294967295U, 5});
  EXPECT_EQ(held(words > -1), (Values{1, 1}));
  EXPECT_EQ(held(words == -1), (Values{0, 0}));
  EXPECT_EQ(held(searchsorted(bytes(), 300)), (Values{3}));
  EXPECT_EQ(held(searchsorted(bytes(), -1)), (Values{0}));
}

TEST_P(Numbers, BeyondATypeLimitNothingInClip) {
  EXPECT_EQ(held(clip(bytes(), -1, 300)), (Values{0, 44, 255}));
  EXPECT_EQ(held(clip(bytes(), 20, 300)), (Values{20, 44, 255}));
  EXPECT_EQ(held(clip(ints(), -(1LL << 40), 7)), (Values{-2147483648.0, -1, 0, 7}));
  // Nothing of the type is between such bounds: the nearest that does.
  EXPECT_EQ(held(clip(bytes(), 300, std::nullopt)), (Values{255, 255, 255}));
  EXPECT_EQ(held(clip(bytes(), std::nullopt, -7)), (Values{0, 0, 0}));
}

TEST_P(Numbers, BeyondATypeAreRefusedElsewhere) {
  const LazyTensor mask = bytes() > 0;
  struct Row {
    const char* op;
    std::function<void()> call;
  };
  const Row kRows[] = {
      {"add", [&] { bytes() + 300; }},
      {"subtract", [&] { 300 - bytes(); }},
      {"multiply", [&] { ints() * (1LL << 31); }},
      {"maximum", [&] { maximum(bytes(), -1); }},
      {"where", [&] { where(mask, bytes(), 256); }},
      {"bitwise_and", [&] { bitwise_and(ints(), 0xFFFFFFFFU); }},
      {"fmod", [&] { fmod(bytes(), -3); }},
      {"clip", [&] { clip(300, bytes(), bytes()); }},
      {"masked_fill", [&] { masked_fill(bytes(), mask, 300); }},
      {"full", [&] { LazyTensor::full({2}, 300, DType::i8, device()); }},
      {"full", [&] { full_like(bytes(), -1); }},
      {"pad", [&] { pad(bytes(), {1}, {0}, 300); }},
      {"at",
       [&] {
         at(bytes(), {{0, 1}}).set(300);
       }},
      {"at", [&] { at(bytes(), mask).add(-1); }},
      {"index_put", [&] { index_put(bytes(), {LazyTensor(1)}, 1e10); }},
      {"put_along_axis", [&] { put_along_axis(bytes(), bytes(), -1, 0); }},
  };
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.op);
    const std::string message = message_of<ValueError>(row.call);
    EXPECT_EQ(message.find(std::string(row.op) + ":"), 0u) << message;
    EXPECT_NE(message.find("int"), std::string::npos) << message;
  }
  // At the ends of the type they are not.
  EXPECT_EQ(held(bytes() + 255), (Values{255, 43, 254}));
  EXPECT_EQ(held(LazyTensor::full({1}, -128, DType::i8, device())), (Values{-128}));
  EXPECT_EQ(held(at(bytes(), {{0, 1}}).set(255.0)), (Values{255, 44, 255}));
}

}  // namespace
}  // namespace caldera::testing
