// Derivatives of the distances of pairs, which are computed without a tensor of their differences, beside
// sums in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/caldera.h"
#include "engine/plan/plan.h"
#include "engine/runtime/evaluate.h"

namespace caldera::testing {
namespace {

/// The gradients in both of the sum of weights times distances, by the formula.
struct DistanceSlopes {
  std::vector<double> a, b;
};
DistanceSlopes distance_slopes(const std::vector<double>& a, const std::vector<double>& b,
                               const std::vector<double>& weights, std::size_t width, int p) {
  DistanceSlopes out{std::vector<double>(a.size()), std::vector<double>(b.size())};
  const std::size_t rows = a.size() / width, columns = b.size() / width;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      double square = 0;
      for (std::size_t k = 0; k < width; ++k) square += std::pow(a[i * width + k] - b[j * width + k], 2);
      for (std::size_t k = 0; k < width; ++k) {
        const double off = a[i * width + k] - b[j * width + k];
        const double sign = off > 0 ? 1 : off < 0 ? -1 : 0;
        const double slope = p == 1 ? sign : square > 0 ? off / std::sqrt(square) : 0;
        out.a[i * width + k] += weights[i * columns + j] * slope;
        out.b[j * width + k] -= weights[i * columns + j] * slope;
      }
    }
  }
  return out;
}

std::vector<double> distance_numbers(std::size_t count, double shift) {
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(std::sin(1.7 * static_cast<double>(i) + shift) + shift);
  return out;
}

TEST(Distances, GradientsAreThoseOfTheFormulaEqualVectorsIncluded) {
  const std::int64_t width = 7, rows = 33, columns = 9;
  const std::vector<double> a = distance_numbers(33 * 7, 0.3), weights = distance_numbers(33 * 9, 0.9);
  std::vector<double> b = distance_numbers(9 * 7, 0.5);
  for (std::size_t k = 0; k < 7; ++k) b[3 * 7 + k] = a[5 * 7 + k];  // a pair at distance 0
  const LazyTensor x = LazyTensor::from_vector(a, {rows, width}),
                   y = LazyTensor::from_vector(b, {columns, width});
  for (const int p : {1, 2}) {
    SCOPED_TRACE(p);
    const DistanceSlopes expected = distance_slopes(a, b, weights, 7, p);
    const auto found = grad(sum(cdist(x, y, p) * LazyTensor::from_vector(weights, {rows, columns})), {x, y});
    const std::vector<double> of_a = found[0].to_vector<double>(), of_b = found[1].to_vector<double>();
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(of_a[i], expected.a[i], 1e-12) << i;
    for (std::size_t i = 0; i < b.size(); ++i) ASSERT_NEAR(of_b[i], expected.b[i], 1e-12) << i;
  }
}

TEST(Distances, GradientNeedsNoTensorOfDifferences) {
  // 2,000 x 2,000 x 64 differences would be 1 GB.
  const LazyTensor x = random_normal({2000, 64}, 1), y = random_normal({2000, 64}, 2);
  const auto plan = plan_for({grad(sum(cdist(x, y)), x)});
  EXPECT_LT(plan->arena_bytes, std::int64_t{2000} * 2000 * 4 * 8);
}

TEST(Distances, MapsOneOfBothOperands) {
  const LazyTensor x = random_normal({3, 5, 4}, 1, DType::f64), y = random_normal({6, 4}, 2, DType::f64);
  for (const int p : {1, 2}) {
    const auto distances = [&](const LazyTensor& a, const LazyTensor& b) { return cdist(a, b, p); };
    const TensorFunction mapped =
        vmap([&](std::span<const LazyTensor> v) { return distances(v[0], v[1]); }, {0, std::nullopt});
    const LazyTensor together = mapped(std::vector<LazyTensor>{x, y});
    LazyTensor one_by_one;
    for (const int i : {0, 1, 2}) {
      const LazyTensor part = sum(square(distances(x[i], y)));
      one_by_one = one_by_one.defined() ? one_by_one + part : part;
    }
    const auto found = grad(sum(square(together)), {x, y}), expected = grad(one_by_one, {x, y});
    for (const std::size_t i : {0U, 1U}) {
      const std::vector<double> f = found[i].to_vector<double>(), e = expected[i].to_vector<double>();
      ASSERT_EQ(f.size(), e.size());
      for (std::size_t k = 0; k < f.size(); ++k) ASSERT_NEAR(f[k], e[k], 1e-10);
    }
  }
}

TEST(Distances, GradientsOfVectorsFarFromTheOriginAreAsPrecise) {
  // In f32, of vectors near each other at 1,000 and at 100,000; short ones also in groups far apart.
  const std::int64_t rows = 40, columns = 30;
  const std::vector<double> weights = distance_numbers(40 * 30, 0.9);
  struct Far {
    std::size_t width;
    double offset, apart;
  };
  for (const Far& far : {Far{3, 0, 0}, {3, 1e3, 0}, {3, 1e5, 0}, {3, 0, 1e4}, {24, 0, 0}, {24, 1e4, 0}}) {
    SCOPED_TRACE(far.offset + far.apart);
    const auto points = [&](std::size_t count, double shift) {
      std::vector<double> out = distance_numbers(count * far.width, shift);
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<float>(out[i] + far.offset + (i / far.width % 2 == 0 ? far.apart : 0));
      return out;
    };
    const std::vector<double> a = points(40, 0.3), b = points(30, 0.5);
    const auto width = static_cast<std::int64_t>(far.width);
    const auto narrow = [](const std::vector<double>& values, const Shape& shape) {
      return astype(LazyTensor::from_vector(values, shape), DType::f32);
    };
    const LazyTensor x = narrow(a, {rows, width}), y = narrow(b, {columns, width}),
                     w = narrow(weights, {rows, columns});
    for (const int p : {1, 2}) {
      const DistanceSlopes expected = distance_slopes(a, b, weights, far.width, p);
      const auto found = grad(sum(cdist(x, y, p) * w), {x, y});
      const std::vector<float> of_a = found[0].to_vector<float>(), of_b = found[1].to_vector<float>();
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(of_a[i], expected.a[i], 5e-5) << p << " " << i;
      for (std::size_t i = 0; i < b.size(); ++i) ASSERT_NEAR(of_b[i], expected.b[i], 5e-5) << p << " " << i;
    }
  }
}

TEST(Distances, OfTwelveAxes) {
  const Shape shape{2, 1, 1, 1, 1, 1, 3, 1, 1, 1, 4, 2};
  const LazyTensor x = random_normal(shape, 1, DType::f64);
  for (const double p : {1.0, 2.0, 3.0}) {
    const LazyTensor found = cdist(x, x * 2, p);
    EXPECT_EQ(found.shape(), (Shape{2, 1, 1, 1, 1, 1, 3, 1, 1, 1, 4, 4}));
    const LazyTensor flat = reshape(x, {6, 4, 2});
    EXPECT_EQ(found.to_vector<double>(), cdist(flat, flat * 2, p).to_vector<double>());
  }
}

}  // namespace
}  // namespace caldera::testing
