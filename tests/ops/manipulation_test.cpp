// Manipulations where the table of operations does not reach: modes and spellings, many axes, exact ends, and
// what they cost.
#include "ops/shape/manipulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

LazyTensor counted(const Shape& shape) { return reshape(arange(shape.numel(), DType::f32), shape); }

TEST(Manipulation, PadModesAreTheNamedFunctions) {
  const LazyTensor x = counted({3});
  EXPECT_EQ(pad(x, {2}, {1}, PadMode::reflect).to_vector<float>(), (Floats{2, 1, 0, 1, 2, 1}));
  EXPECT_EQ(pad(x, {2}, {1}, PadMode::replicate).to_vector<float>(), (Floats{0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(pad(x, {2}, {1}, PadMode::circular).to_vector<float>(), (Floats{1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(pad(x, {2}, {1}, PadMode::constant, 9).to_vector<float>(), (Floats{9, 9, 0, 1, 2, 9}));
}

TEST(Manipulation, TilesAllAxesThatATensorCanHave) {
  const Shape shape{2, 1, 2, 1, 2, 1, 2, 1};
  const LazyTensor x = counted(shape);
  const LazyTensor y = tile(x, {2, 2, 2, 2, 2, 2, 2, 2});
  ASSERT_EQ(y.shape(), (Shape{4, 2, 4, 2, 4, 2, 4, 2}));
  const std::vector<float> values = y.to_vector<float>();
  const Dims strides = y.shape().strides(), from = shape.strides();
  for (std::int64_t i = 0; i < y.numel(); ++i) {
    std::int64_t at = 0;
    for (int axis = 0; axis < shape.rank(); ++axis)
      at += i / strides[axis] % y.shape(axis) % shape[axis] * from[axis];
    ASSERT_EQ(values[static_cast<std::size_t>(i)], static_cast<float>(at)) << i;
  }
}

TEST(Manipulation, PartsJoinToTheWhole) {
  const LazyTensor x = counted({5, 4});
  const std::vector<float> whole = x.to_vector<float>();
  EXPECT_EQ(stack(unstack(x, 1), 1).to_vector<float>(), whole);
  EXPECT_EQ(concatenate(split(x, 2)).to_vector<float>(), whole);
  EXPECT_EQ(concatenate(chunk(x, 3)).to_vector<float>(), whole);
  EXPECT_EQ(roll(roll(x, {3, -1}, {0, 1}), {-3, 1}, {0, 1}).to_vector<float>(), whole);
  EXPECT_EQ(flip(flip(x)).to_vector<float>(), whole);
}

TEST(Ranges, OfIntegersAndOfReals) {
  EXPECT_EQ(arange(2, 5).to_vector<std::int32_t>(), (std::vector<std::int32_t>{2, 3, 4}));
  EXPECT_EQ(arange(5, 0, -2).to_vector<std::int32_t>(), (std::vector<std::int32_t>{5, 3, 1}));
  EXPECT_EQ(arange(0, 1, 0.5).to_vector<float>(), (Floats{0, 0.5}));
  EXPECT_EQ(arange(0, 4, 2, DType::f64).to_vector<double>(), (std::vector<double>{0, 2}));
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(arange(-kFar, kFar, kFar, DType::i64).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{-kFar, 0}));
}

TEST(Ranges, LinspaceHitsBothEnds) {
  for (const std::int64_t num : {2, 3, 7, 33, 1025}) {
    for (const auto& [start, stop] : {std::pair{0.1, 0.7}, {-1.0 / 3, 1e-9}, {1e30, -1e30}}) {
      const auto narrow = linspace(start, stop, num).to_vector<float>();
      EXPECT_EQ(narrow.front(), static_cast<float>(start));
      EXPECT_EQ(narrow.back(), static_cast<float>(stop));
      const auto wide = linspace(start, stop, num, DType::f64).to_vector<double>();
      EXPECT_EQ(wide.front(), start);
      EXPECT_EQ(wide.back(), stop);
    }
  }
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(linspace(-most, most, 3, DType::f64).to_vector<double>(), (std::vector<double>{-most, 0, most}));
}

TEST(Interpolate, IsAViewWhereAFactorIsOneOverAWholeNumber) {
  const LazyTensor x = counted({1, 1, 4, 6}).eval();
  const LazyTensor y = interpolate(x, {.size = {2, 3}});
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 2, 4, 12, 14, 16}));
  // Infinite neighbours do not matter where they weigh nothing.
  const LazyTensor z = LazyTensor::from_vector(Floats{INFINITY, 2, INFINITY}, {1, 1, 3});
  EXPECT_EQ(interpolate(z, {.size = {1}, .mode = Interpolation::linear}).item(), 2.0F);
}

}  // namespace
}  // namespace caldera::testing
