// Operations at their edges: tensors without axes, empty ones, poles, and values that no power holds. What is
// expected are exact values, or those that NumPy and PyTorch give where both agree.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

class Edges : public OpTest {
 protected:
  LazyTensor of(const std::vector<double>& values, DType type = DType::f32) const {
    return upload(Host(Shape{static_cast<std::int64_t>(values.size())}, values), type, device());
  }
  LazyTensor number(double value) const { return upload(Host(Shape{}, {value}), DType::f32, device()); }
  static double one(const LazyTensor& x) {
    EXPECT_EQ(x.numel(), 1) << x.shape().to_string();
    return download(x).at(0);
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Edges, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(Edges, NormsWhosePowersVanishOrOverflow) {
  const double root_half = 1 / std::numbers::sqrt2;
  const auto norm = [&](const std::vector<double>& x, double ord) {
    return one(vector_norm(of(x), {}, ord));
  };
  EXPECT_NEAR(norm({1e25, 1e25}, -2), 1e25 * root_half, 1e19);
  EXPECT_NEAR(norm({1e-25, 1e-25}, -2), 1e-25 * root_half, 1e-31);
  EXPECT_NEAR(norm({1e25, 1e25}, 3), 1e25 * std::cbrt(2), 1e19);
  EXPECT_NEAR(norm({1e-25, 1e-25}, 3), 1e-25 * std::cbrt(2), 1e-31);
  EXPECT_EQ(norm({kUnbounded, kUnbounded}, -1), kUnbounded);
  EXPECT_EQ(norm({kUnbounded, -kUnbounded}, -2.5), kUnbounded);
  EXPECT_NEAR(norm({kUnbounded, 3}, -1), 3, 1e-6);
  EXPECT_EQ(norm({kUnbounded, 3}, 3), kUnbounded);
  EXPECT_EQ(norm({0, 3}, -2), 0);
  EXPECT_EQ(norm({0, 0}, 3), 0);
  EXPECT_EQ(norm({0, kUnbounded}, -1), 0);
  EXPECT_TRUE(std::isnan(norm({kUndefined, 1}, -2)));
  EXPECT_EQ(norm({}, 3), 0);
  EXPECT_EQ(norm({}, -3), kUnbounded);
  // The gradient is that of the norm, whatever the powers were divided by: (|x| / norm)^(ord - 1).
  const LazyTensor x = of({2e25, 1e25});
  for (const double ord : {-2.0, 3.0}) {
    const LazyTensor n = vector_norm(x, {}, ord);
    const double value = one(n);
    const std::vector<double> slope = download(grad(n, x));
    EXPECT_NEAR(slope[0], std::pow(2e25 / value, ord - 1), 1e-5);
    EXPECT_NEAR(slope[1], std::pow(1e25 / value, ord - 1), 1e-5);
  }
  const LazyTensor rows = reshape(of({1e25, 1e25, 1e-25, 1e-25}), Shape{2, 2});
  EXPECT_EQ(vector_norm(rows, {1}, -2).shape(), Shape{2});
  EXPECT_EQ(vector_norm(rows, {1}, -2, true).shape(), (Shape{2, 1}));
  EXPECT_EQ(vector_norm(rows, {0, 1}, 3).shape(), Shape{});
}

TEST_P(Edges, SlopesOfDigammaAtPolesAndBesideThem) {
  const LazyTensor poles = of({0, -0.0, -1, -2, -30});
  for (const double slope : download(grad(sum(digamma(poles)), poles))) EXPECT_EQ(slope, kUnbounded);
  // The sum of 1 / (x + k)^2, its tail by the formula of Euler and Maclaurin.
  const std::vector<double> x{0.5, 1, 3.75, 12, 200, -0.5, -2.25, -7.9};
  for (const DType type : {DType::f32, DType::f64}) {
    if (type == DType::f64 && !supports(DType::f64)) continue;
    const LazyTensor t = of(x, type);
    const std::vector<double> slopes = download(grad(sum(digamma(t)), t));
    for (std::size_t i = 0; i < x.size(); ++i) {
      double want = 0;
      const double far = x[i] + 4000;
      for (int k = 3999; k >= 0; --k) want += 1 / ((x[i] + k) * (x[i] + k));
      want += 1 / far + 1 / (2 * far * far) + 1 / (6 * far * far * far);
      EXPECT_NEAR(slopes[i], want, want * (type == DType::f64 ? 1e-12 : 4e-5)) << x[i];
    }
  }
}

TEST_P(Edges, TensorsWithoutAxesHaveOneForReductions) {
  const LazyTensor x = number(3);
  using Reduction = std::function<LazyTensor(const LazyTensor&, int)>;
  const std::vector<std::pair<Reduction, double>> reductions{
      {[](const LazyTensor& t, int a) { return sum(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return mean(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return prod(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return max(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return min(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return amax(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return amin(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return any(t, a); }, 1},
      {[](const LazyTensor& t, int a) { return all(t, a); }, 1},
      {[](const LazyTensor& t, int a) { return count_nonzero(t, a); }, 1},
      {[](const LazyTensor& t, int a) { return var(t, a, 0); }, 0},
      {[](const LazyTensor& t, int a) { return std(t, a, 0); }, 0},
      {[](const LazyTensor& t, int a) { return logsumexp(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return vector_norm(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return vector_norm(t, a, 3); }, 3},
      {[](const LazyTensor& t, int a) { return argmax(t, a); }, 0},
      {[](const LazyTensor& t, int a) { return median(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return topk(t, 1, a).values; }, 3},
      {[](const LazyTensor& t, int a) { return topk(t, 1, a).indices; }, 0},
      {[](const LazyTensor& t, int a) { return flip(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return squeeze(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return softmax(t, a); }, 1},
      {[](const LazyTensor& t, int a) { return cumsum(t, a); }, 3},
      {[](const LazyTensor& t, int a) { return sort(t, a); }, 3},
  };
  for (std::size_t i = 0; i < reductions.size(); ++i) {
    for (const int axis : {0, -1}) {
      const LazyTensor y = reductions[i].first(x, axis);
      EXPECT_EQ(y.shape(), Shape{}) << i;
      EXPECT_NEAR(one(y), reductions[i].second, 1e-6) << i;
    }
    for (const int axis : {1, -2}) EXPECT_THROW(reductions[i].first(x, axis), ShapeError) << i;
  }
  EXPECT_THROW(sum(x, {0, -1}), ShapeError);
  EXPECT_NEAR(one(grad(max(x, 0) * sum(x, -1), x)), 6, 1e-6);
}

TEST_P(Edges, NegativeMarginsTakeElementsAway) {
  const LazyTensor x = of({1, 2, 3, 4});
  const auto values = [](const LazyTensor& t) { return download(t); };
  using Values = std::vector<double>;
  EXPECT_EQ(values(pad(x, {-1}, {-2})), (Values{2}));
  EXPECT_EQ(values(pad(x, {-1}, {2}, 9)), (Values{2, 3, 4, 9, 9}));
  EXPECT_EQ(values(pad(x, {1}, {-1}, 9, {1})), (Values{9, 1, 9, 2, 9, 3, 9}));
  EXPECT_EQ(values(pad(x, {-4}, {0})), (Values{}));
  EXPECT_EQ(values(pad(x, {-1}, {2}, PadMode::reflect)), (Values{2, 3, 4, 3, 2}));
  EXPECT_EQ(values(pad(x, {2}, {-3}, PadMode::replicate)), (Values{1, 1, 1}));
  EXPECT_EQ(values(pad(x, {-1}, {1}, PadMode::circular)), (Values{2, 3, 4, 1}));
  EXPECT_EQ(values(grad(sum(square(pad(x, {-1}, {2}))), x)), (Values{0, 4, 6, 8}));
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t margin : {std::int64_t{-5}, kFar}) {
    EXPECT_THROW(pad(x, {margin}, {0}), ShapeError);
    EXPECT_THROW(pad(x, {0}, {margin}), ShapeError);
    EXPECT_THROW(pad_reflect(x, {margin}, {0}), ShapeError);
    EXPECT_THROW(pad_circular(x, {0}, {margin}), ShapeError);
  }
  EXPECT_THROW(pad(x, {-2}, {-3}), ShapeError);
  EXPECT_THROW(pad(x, {0}, {0}, 0, {-1}), ShapeError);
}

TEST_P(Edges, EmptyMatricesAndTheAxesOfDots) {
  const auto empty = [&](std::int64_t m, std::int64_t n) {
    return LazyTensor::zeros(Shape{m, n}, DType::f32, device());
  };
  EXPECT_EQ(one(matrix_norm(empty(5, 0), kUnbounded)), 0);
  EXPECT_EQ(one(matrix_norm(empty(5, 0), -kUnbounded)), 0);
  EXPECT_EQ(one(matrix_norm(empty(0, 5), 1.0)), 0);
  EXPECT_EQ(one(matrix_norm(empty(0, 5), "fro")), 0);
  EXPECT_THROW(matrix_norm(empty(5, 0), 1.0), ShapeError);
  EXPECT_THROW(matrix_norm(empty(0, 5), kUnbounded), ShapeError);
  EXPECT_THROW(matrix_norm(empty(0, 5), 2.0), ShapeError);
  const LazyTensor a = reshape(of({1, 2, 3, 4, 5, 6, 7, 8}), Shape{2, 2, 2}),
                   b = reshape(of({1, 10}), Shape{2, 1});
  // sum over "..." and k of a[...,i,k] b[...,j].
  EXPECT_EQ(download(einsum("...ik,...j->ij", {a, b})), (std::vector<double>{113, 157}));
  EXPECT_EQ(download(einsum("...i->i", {a})), (std::vector<double>{16, 20}));
  EXPECT_EQ(one(einsum("...->", {a})), 36);
  EXPECT_EQ(download(diff(of({1, 2, 3}), 0, -1, of({9}))), (std::vector<double>{1, 2, 3}));
}

TEST_P(Edges, TwelveAxes) {
  const Shape shape{2, 1, 2, 3, 1, 2, 1, 2, 1, 2, 1, 2};
  const LazyTensor flat = arange(shape.numel(), DType::f32);
  const LazyTensor x = reshape(flat, shape);
  const auto n = static_cast<double>(shape.numel());
  EXPECT_EQ(one(sum(x)), n * (n - 1) / 2);
  // With the axes in reverse, no two of them can be joined.
  std::vector<int> reversed;
  for (int axis = shape.rank(); axis-- > 0;) reversed.push_back(axis);
  const LazyTensor y = permute_dims(x, reversed);
  const std::vector<double> moved = download(y * 2 + y);
  std::size_t at = 0;
  std::vector<std::int64_t> index(12, 0);
  const Dims strides = shape.strides();
  for (const double value : moved) {
    double want = 0;
    for (int d = 0; d < 12; ++d)
      want += static_cast<double>(index[static_cast<std::size_t>(d)] * strides[11 - d]);
    ASSERT_EQ(value, 3 * want) << at;
    ++at;
    for (int d = 11; d >= 0; --d) {
      auto& i = index[static_cast<std::size_t>(d)];
      if (++i < y.shape(d)) break;
      i = 0;
    }
  }
  const std::vector<double> sums = download(sum(y, {0, 3, 6, 8, 11}, true));
  const std::vector<double> same = download(sum(x, {11, 8, 5, 3, 0}, true));
  ASSERT_EQ(sums.size(), same.size());
  double total = 0;
  for (const double value : sums) total += value;
  EXPECT_EQ(total, n * (n - 1) / 2);
  EXPECT_EQ(download(grad(sum(square(y)), x)), download(x * 2));
  // Products of batches that are in the order of nothing: against those of one batch.
  const LazyTensor a = swapaxes(swapaxes(x, 0, 5), 3, 9), b = transpose(a + 1);
  const LazyTensor products = matmul(a, b);
  EXPECT_EQ(products.shape().rank(), 12);
  EXPECT_EQ(download(products), download(sum(a * (a + 1), -1)));
  EXPECT_THROW(expand_dims(x, 0), ShapeError);
  // What has an axis more within.
  EXPECT_EQ(one(sum(astype(isin(x, of({3, 5, 1e6})), DType::f32))), 2);
  EXPECT_EQ(download(channel_shuffle(swapaxes(x, 1, 2), 2)), download(swapaxes(x, 1, 2)));
  const LazyTensor ones_like_x = reshape(ones(Shape{1, 2, 2}, DType::f32, device()), Shape{1, 2, 2});
  EXPECT_EQ(download(bilinear(x, x, ones_like_x)), download(square(sum(x, -1, true))));
}

}  // namespace
}  // namespace caldera::testing
