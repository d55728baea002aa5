// Focal, hinge and contrastive losses against their formulas in double, and gradcheck.
#include "ops/loss/focal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/caldera.h"

namespace caldera {
namespace {

LazyTensor row_of(const std::vector<double>& values, const Shape& shape) {
  return LazyTensor::from_vector<double>(values, shape, Device::cpu());
}

TEST(FocalLosses, AreTheirFormulas) {
  const std::vector<double> x{-2, 0.5, 3, -0.1}, t{0, 1, 1, 0};
  for (const double gamma : {0.0, 2.0, 1.5}) {
    double want = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const double p = 1 / (1 + std::exp(-x[i])), q = t[i] > 0 ? p : 1 - p;
      want -= (t[i] > 0 ? 0.25 : 0.75) * std::pow(1 - q, gamma) * std::log(q) / 4;
    }
    EXPECT_NEAR(focal_loss(row_of(x, {4}), row_of(t, {4}), {.gamma = gamma}).item<double>(), want, 1e-14);
  }
  // Where the sigmoid is 1 to all digits.
  EXPECT_NEAR(focal_loss(row_of({800}, {1}), row_of({0}, {1})).item<double>(), 0.75 * 800, 1e-9);

  const LazyTensor signs = LazyTensor::from_vector<int>({-1, 1, 1, -1}, {4}, Device::cpu());
  EXPECT_NEAR(hinge_loss(row_of(x, {4}), signs).item<double>(), (0 + 0.5 + 0 + 0.9) / 4, 1e-15);

  const LazyTensor a = row_of({0, 0, 1, 1}, {2, 2}), b = row_of({3, 4, 1, 1.5}, {2, 2});
  const double same = contrastive_loss(a, b, row_of({1, 1}, {2})).item<double>();
  EXPECT_NEAR(same, (0.5 * 25 + 0.5 * 0.25) / 2, 1e-14);
  EXPECT_NEAR(contrastive_loss(a, b, row_of({0, 0}, {2})).item<double>(), (0 + 0.5 * 0.25) / 2, 1e-14);
}

TEST(FocalLosses, GradientsAreThoseOfDifferences) {
  using testing::gradcheck;
  const std::vector<LazyTensor> at{row_of({-2, 0.5, 3, -0.1}, {2, 2}), row_of({0.3, 1, -0.7, 0.4}, {2, 2})};
  const LazyTensor labels = row_of({0, 1, 1, 0}, {2, 2}), pairs = row_of({1, 0}, {2});
  const auto check = [&](const TensorFunction& f) {
    const auto result = gradcheck(f, at);
    EXPECT_TRUE(result.passed) << result.message;
  };
  check([&](auto a) { return focal_loss(a[0] + 0.0 * a[1], labels, {.gamma = 1.5}); });
  check([&](auto a) { return hinge_loss(a[0] * a[1], labels * 2.0 - 1.0); });
  check([&](auto a) { return contrastive_loss(a[0], a[1], pairs, 4); });
  EXPECT_THROW(focal_loss(at[0], at[1], {.gamma = -1}), ValueError);
}

}  // namespace
}  // namespace caldera
