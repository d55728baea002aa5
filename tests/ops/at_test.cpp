// at: parts of tensors that are overwritten, and what is left of their gradients.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class AtSlices : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, AtSlices, ::testing::ValuesIn(op_settings()), op_setting_name);

/// Values overwritten after others have read them: each reader sees what was there at the time.
TEST_P(AtSlices, OverwritesKeepEarlierReadersRight) {
  for (const DType type : supported({DType::f32, DType::f64})) {
    const LazyTensor a = iota(Shape{6}, 0, type, device()) + 1;
    LazyTensor b = a;
    b = at(b, {{2, 4}}).set(at(b, {{0, 2}}).get() * at(b, {{4, 6}}).get());
    const LazyTensor c = square(b);
    const LazyTensor d = at(b, {{0, 1}}).set(at(c, {{3, 4}}).get());
    const LazyTensor loss = sum(d * c);
    const LazyTensor slopes = grad(loss, a);
    EXPECT_EQ(loss.item<double>(), 2346) << name(type);
    EXPECT_EQ(download(slopes), (std::vector<double>{663, 2748, 0, 0, 150, 1020})) << name(type);
  }
}

TEST_P(AtSlices, DoNotChangeTheTensor) {
  const LazyTensor x = LazyTensor::from_vector(Floats{1, 2, 3}, {3}, device()).eval();
  EXPECT_EQ(at(x, {{-1, {}}}).set(7.0).to_vector<float>(), (Floats{1, 2, 7}));
  EXPECT_EQ(
      at(x, {{{}, {}, -2}}).set(LazyTensor::from_vector(Floats{8, 9}, {2}, device())).to_vector<float>(),
      (Floats{9, 2, 8}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 2, 3}));
}

using Integers = std::vector<std::int32_t>;

TEST_P(AtSlices, IndexTensorsBroadcastAndCountFromTheEnd) {
  const LazyTensor x =
      LazyTensor::from_vector(Floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {3, 4}, device());
  const auto integers = [&](const Integers& i, const Shape& shape) {
    return LazyTensor::from_vector(i, shape, device());
  };
  const LazyTensor rows = integers({0, -1}, {2, 1}), columns = integers({1, -1, 1}, {3});
  EXPECT_EQ(at(x, rows, columns).get().to_vector<float>(), (Floats{1, 3, 1, 9, 11, 9}));
  EXPECT_EQ(at(x, integers({-2}, {1})).get().to_vector<float>(), (Floats{4, 5, 6, 7}));
  const LazyTensor values = LazyTensor::from_vector(Floats{20, 30, 40}, {3}, device());
  EXPECT_EQ(at(x, rows, columns).set(values).to_vector<float>(),
            (Floats{0, 40, 2, 30, 4, 5, 6, 7, 8, 40, 10, 30}));
  EXPECT_EQ(at(x, rows, columns).add(values).to_vector<float>(),
            (Floats{0, 61, 2, 33, 4, 5, 6, 7, 8, 69, 10, 41}));
  EXPECT_EQ(at(x, integers({1}, {1})).maximum(5.5).to_vector<float>(),
            (Floats{0, 1, 2, 3, 5.5, 5.5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(at(x, integers({1}, {1})).minimum(5.5).to_vector<float>(),
            (Floats{0, 1, 2, 3, 4, 5, 5.5, 5.5, 8, 9, 10, 11}));
  // Of two values in one place the first is overwritten.
  const LazyTensor loss = sum(square(at(x, rows, columns).set(values)));
  EXPECT_EQ(grad(loss, values).to_vector<float>(), (Floats{0, 120, 160}));
  EXPECT_EQ(grad(loss, x).to_vector<float>(), (Floats{0, 0, 4, 0, 8, 10, 12, 14, 16, 0, 20, 0}));
  EXPECT_THROW(at(x, rows).multiply(2), ValueError);
  EXPECT_THROW(at(x, values), DTypeError);
  EXPECT_THROW(at(x, rows, rows, rows).get(), ShapeError);
}

TEST_P(AtSlices, StepsOfAnyLength) {
  constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();
  const LazyTensor x = LazyTensor::from_vector(Floats{1, 2, 3}, {3}, device());
  EXPECT_EQ(at(x, {{{}, {}, kLongest}}).get().to_vector<float>(), (Floats{1}));
  EXPECT_EQ(at(x, {{{}, {}, -kLongest - 1}}).get().to_vector<float>(), (Floats{3}));
  EXPECT_EQ(at(x, {{1, {}, kLongest}}).set(7).to_vector<float>(), (Floats{1, 7, 3}));
  EXPECT_EQ(at(x, {{{}, {}, -kLongest - 1}}).add(4).to_vector<float>(), (Floats{1, 2, 7}));
}

TEST_P(AtSlices, Masks) {
  const LazyTensor x = LazyTensor::from_vector(Floats{1, -2, 3, -4, 5, -6}, {3, 2}, device());
  EXPECT_EQ(at(x, x < 0).set(0).to_vector<float>(), (Floats{1, 0, 3, 0, 5, 0}));
  EXPECT_EQ(at(x, x < 0).add(10).to_vector<float>(), (Floats{1, 8, 3, 6, 5, 4}));
  EXPECT_EQ(at(x, x < 0).multiply(x).to_vector<float>(), (Floats{1, 4, 3, 16, 5, 36}));
  EXPECT_EQ(at(x, x < 0).maximum(-3).to_vector<float>(), (Floats{1, -2, 3, -3, 5, -3}));
  EXPECT_EQ(at(x, x > 0).minimum(2).to_vector<float>(), (Floats{1, -2, 2, -4, 2, -6}));
  // A mask of rows.
  const LazyTensor rows = LazyTensor::from_vector(Integers{1, 0, 1}, {3}, device()) == 1;
  EXPECT_EQ(at(x, rows).set(7).to_vector<float>(), (Floats{7, 7, 3, -4, 7, 7}));
  // What the mask leaves out does not reach the gradient, be it infinite.
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const LazyTensor steep = LazyTensor::from_vector(Floats{1, 1, kInfinity, 1, 1, 1}, {3, 2}, device());
  EXPECT_EQ(grad(sum(at(x, x < 0).multiply(steep)), x).to_vector<float>()[2], 1);
  EXPECT_THROW(at(x, x < 0).get(), ValueError);
  EXPECT_THROW(at(x, LazyTensor::ones({2}, DType::boolean, device())), ShapeError);
}

}  // namespace
}  // namespace caldera::testing
