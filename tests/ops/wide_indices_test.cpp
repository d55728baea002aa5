// Indices and class targets of 64 bits and uint32: those beyond int32 lie outside as any others do, and do
// not wrap around to an element.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

constexpr std::int64_t kTurn = std::int64_t{1} << 32;  // what wrapping to 32 bits would take away
constexpr std::int64_t kLeast64 = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost64 = std::numeric_limits<std::int64_t>::max();

class WideIndices : public OpTest {
 protected:
  LazyTensor of(const std::vector<float>& x) const {
    return LazyTensor::from_vector(x, Shape{static_cast<std::int64_t>(x.size())}, device());
  }
  LazyTensor wide(const std::vector<std::int64_t>& x) const {
    return LazyTensor::from_vector(x, Shape{static_cast<std::int64_t>(x.size())}, device());
  }
  LazyTensor tens() const { return of({10, 20, 30, 40}); }

  static void expect_equal(const LazyTensor& x, const std::vector<float>& wanted) {
    const auto values = x.to_vector<float>();
    ASSERT_EQ(values.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (std::isnan(wanted[i]))
        EXPECT_TRUE(std::isnan(values[i])) << i;
      else
        EXPECT_EQ(values[i], wanted[i]) << i;
    }
  }

  const float nan_ = std::numeric_limits<float>::quiet_NaN();
};
INSTANTIATE_TEST_SUITE_P(Devices, WideIndices, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(WideIndices, ReadNothingOutside) {
  expect_equal(take(tens(), wide({kTurn, 1, 1 - kTurn, kTurn + 1, kMost64, kLeast64})),
               {nan_, 20, nan_, nan_, nan_, nan_});
  expect_equal(take_along_axis(tens(), wide({kTurn + 2, 3, -kTurn}), 0), {nan_, 40, nan_});
  // -4 ... 3 are inside here.
  expect_equal(index(tens(), {wide({-4, kTurn, -kTurn, 4 - kTurn, -1, -5})}),
               {10, nan_, nan_, nan_, 40, nan_});
  expect_equal(at(tens(), wide({kTurn + 3, 3})).get(), {nan_, 40});
  expect_equal(take(tens(), kTurn), {nan_});
  expect_equal(index(tens(), {LazyTensor(-kTurn)}), {nan_});
  EXPECT_EQ(take(astype(tens(), DType::i32), wide({kTurn, 2})).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, 30}));
}

TEST_P(WideIndices, Uint32CountsFromTheStart) {
  const LazyTensor indices = LazyTensor::from_vector(
      std::vector<std::uint32_t>{4294967295U, 2, 4294967292U, 2147483648U}, Shape{4}, device());
  expect_equal(index(tens(), {indices}), {nan_, 30, nan_, nan_});
  expect_equal(take(tens(), indices), {nan_, 30, nan_, nan_});
  expect_equal(scatter_add(tens(), indices, of({1, 2, 3, 4})), {10, 20, 32, 40});
}

TEST_P(WideIndices, WriteNothingOutside) {
  const LazyTensor indices = wide({kTurn, 1, 2 - kTurn, kMost64}), updates = of({1, 2, 3, 4});
  expect_equal(scatter(tens(), indices, updates), {10, 2, 30, 40});
  expect_equal(scatter_add(tens(), indices, updates), {10, 22, 30, 40});
  expect_equal(scatter_max(tens(), indices, updates * 100.0), {10, 200, 30, 40});
  expect_equal(scatter_min(tens(), indices, updates), {10, 2, 30, 40});
  expect_equal(put_along_axis(tens(), indices, updates, 0), {10, 2, 30, 40});
  expect_equal(index_put(tens(), {indices}, updates), {10, 2, 30, 40});
  expect_equal(at(tens(), indices).add(updates), {10, 22, 30, 40});
}

TEST_P(WideIndices, EmbedNothingOutside) {
  const LazyTensor rows = embedding(reshape(tens(), Shape{4, 1}), wide({kTurn + 1, 1}));
  expect_equal(reshape(rows, Shape{2}), {nan_, 20});
}

TEST_P(WideIndices, AreNoClasses) {
  const LazyTensor rows = log_softmax(reshape(of({1, 2, 3, 4, 5, 7}), Shape{2, 3}));
  EXPECT_TRUE(std::isnan(nll_loss(rows, wide({kTurn, 0})).item()));
  EXPECT_TRUE(std::isnan(mean_cross_entropy(rows, wide({0, 1 - kTurn})).item()));
  EXPECT_TRUE(std::isnan(multi_margin_loss(rows, wide({kTurn + 2, 0})).item()));
  const float one = nll_loss(slice(rows, 0, 1, 2), wide({2})).item();
  // Ignored are those that equal the index in all bits.
  EXPECT_EQ(nll_loss(rows, wide({kTurn, 2}), {.ignore_index = kTurn}).item(), one);
  EXPECT_EQ(nll_loss(rows, wide({-100, 2})).item(), one);
  EXPECT_TRUE(std::isnan(nll_loss(rows, wide({-100 - kTurn, 2})).item()));
  const LazyTensor bytes = LazyTensor::from_vector(std::vector<std::uint8_t>{156, 2}, Shape{2}, device());
  EXPECT_TRUE(std::isnan(nll_loss(rows, bytes).item())) << "156 is -100 in a byte";
}

}  // namespace
}  // namespace caldera::testing
