// x[i], x[{...}] and x[indices], against the elements that C++ finds at those indices.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>

#include "engine/autodiff/autodiff.h"
#include "ops/ops.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class Subscript : public OpTest {
 protected:
  /// x[i][j][k] = 100 i + 10 j + k, shape (2, 3, 4).
  LazyTensor x() const {
    std::vector<float> values;
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) {
        for (int k = 0; k < 4; ++k) values.push_back(static_cast<float>(100 * i + 10 * j + k));
      }
    }
    return LazyTensor::from_vector(values, Shape{2, 3, 4});
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Subscript, ::testing::ValuesIn(op_settings()), op_setting_name);

using Floats = std::vector<float>;

TEST_P(Subscript, AnIndexDropsTheFirstAxis) {
  EXPECT_EQ(x()[1].shape(), (Shape{3, 4}));
  EXPECT_EQ(x()[1][2].to_vector<float>(), (Floats{120, 121, 122, 123}));
  EXPECT_EQ(x()[-1][-3][-1].item<float>(), 103);
  const std::size_t unsigned_index = 1;
  EXPECT_EQ(x()[unsigned_index][0][0].item<float>(), 100);
  EXPECT_MENTIONS(message_of<ValueError>([&] { x()[2]; }),
                  "[]: index 2 is out of bounds for axis 0 with size 2");
  EXPECT_MENTIONS(message_of<ValueError>([&] { x()[-3]; }), "-3");
  EXPECT_MENTIONS(message_of<ShapeError>([&] { LazyTensor(1.0)[0]; }), "the 0 axes of ()");
}

TEST_P(Subscript, BracesHoldOneEntryForEachAxis) {
  EXPECT_EQ((x()[{1, 2, 3}].item<float>()), 123);
  EXPECT_EQ((x()[{1, 2}].to_vector<float>()), (Floats{120, 121, 122, 123}));
  EXPECT_EQ((x()[{0, {1, 3}, -1}].to_vector<float>()), (Floats{13, 23}));
  EXPECT_EQ((x()[{{}, 0, 0}].to_vector<float>()), (Floats{0, 100}));
  EXPECT_EQ((x()[{Slice{.start = 1}}].shape()), (Shape{1, 3, 4}));
  EXPECT_EQ((x()[{0, 0, Slice{.step = 2}}].to_vector<float>()), (Floats{0, 2}));
  EXPECT_EQ((x()[{0, 0, Slice{.step = -1}}].to_vector<float>()), (Floats{3, 2, 1, 0}));
  EXPECT_EQ((x()[{1, {0, 10, 2}, Slice{-2, std::nullopt}}].to_vector<float>()), (Floats{102, 103, 122, 123}));
  EXPECT_EQ((x()[{0, Slice{2, 1}}].shape()), (Shape{0, 4}));
}

TEST_P(Subscript, AnEllipsisStandsForTheOtherAxes) {
  EXPECT_EQ((x()[{kEllipsis, 1}].to_vector<float>()), (Floats{1, 11, 21, 101, 111, 121}));
  EXPECT_EQ((x()[{1, kEllipsis, 1}].to_vector<float>()), (Floats{101, 111, 121}));
  EXPECT_EQ((x()[{1, 2, kEllipsis, 1}].item<float>()), 121);
  EXPECT_EQ((x()[{kEllipsis}].shape()), (Shape{2, 3, 4}));
}

TEST_P(Subscript, ANewAxisHasOneElement) {
  EXPECT_EQ((x()[{kNewAxis, 1}].shape()), (Shape{1, 3, 4}));
  EXPECT_EQ((x()[{1, kNewAxis, Slice{}, kNewAxis}].shape()), (Shape{1, 3, 1, 4}));
  EXPECT_EQ((x()[{kEllipsis, kNewAxis}].shape()), (Shape{2, 3, 4, 1}));
  EXPECT_EQ((x()[{kNewAxis, kEllipsis, 1, 2}].to_vector<float>()), (Floats{12, 112}));
}

TEST_P(Subscript, RefusesWhatIsNoSubscript) {
  EXPECT_MENTIONS(message_of<ShapeError>([&] {
                    x()[{0, 0, 0, 0}];
                  }),
                  "4 indices for the 3 axes of (2, 3, 4)");
  EXPECT_MENTIONS(message_of<ValueError>([&] {
                    x()[{0, 3}];
                  }),
                  "[]: index 3 is out of bounds for axis 1 with size 3");
  EXPECT_MENTIONS(message_of<ValueError>([&] { x()[{Slice{.step = 0}}]; }),
                  "[]: slice step cannot be zero, along axis 0");
  EXPECT_MENTIONS(message_of<ValueError>([&] { x()[{kEllipsis, 0, kEllipsis}]; }), "ellipsis");
}

TEST_P(Subscript, RefusesWhatNoIndexHolds) {
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();  // -1 where it is converted
  EXPECT_MENTIONS(message_of<ValueError>([&] { x()[huge]; }), "18446744073709551615");
  EXPECT_MENTIONS(message_of<ValueError>([&] { x()[{0, huge}]; }), "18446744073709551615");
  EXPECT_THROW(x()[std::uint64_t{1} << 63], ValueError);
}

template <class T>
constexpr bool is_index = requires(const LazyTensor& x, T i) {
  x[i];
};
static_assert(is_index<int> && is_index<std::int8_t> && is_index<std::uint8_t> && is_index<std::size_t>);
static_assert(!is_index<bool> && !is_index<float> && !is_index<double>);
static_assert(std::is_convertible_v<std::uint32_t, caldera::Index>);
static_assert(!std::is_convertible_v<bool, caldera::Index>);

TEST_P(Subscript, IndicesReplaceTheFirstAxis) {
  const LazyTensor indices = LazyTensor::from_vector(std::vector<std::int32_t>{1, -2, 1, 0}, Shape{2, 2});
  const LazyTensor picked = x()[indices];
  EXPECT_EQ(picked.shape(), (Shape{2, 2, 3, 4}));
  EXPECT_EQ((picked[{kEllipsis, 2, 3}].to_vector<float>()), (Floats{123, 23, 123, 23}));
  const LazyTensor mask = x()[0] > 5;
  EXPECT_MENTIONS(message_of<ValueError>([&] { x()[0][mask]; }), "masked_select");
  EXPECT_THROW(x()[LazyTensor::from_vector(Floats{0.5F}, Shape{1})], DTypeError);
}

TEST_P(Subscript, GradientsGoWhereTheElementsCameFrom) {
  const LazyTensor y = x();
  const LazyTensor loss = (y[{1, {0, 2}, -1}] * 3 + y[0][0][0]).sum();
  const LazyTensor g = grad(loss, y);
  std::vector<float> expected(24, 0);
  expected[0] = 2;   // it is added to two elements
  expected[15] = 3;  // [1][0][3]
  expected[19] = 3;  // [1][1][3]
  EXPECT_EQ(g.to_vector<float>(), expected);
}

}  // namespace
}  // namespace caldera::testing
