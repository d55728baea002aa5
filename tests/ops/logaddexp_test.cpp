// logaddexp and logcumsumexp: accuracy where the result is next to 0, and derivatives where the formula of
// the value has kinks or infinities.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/caldera.h"
#include "engine/testing/gradcheck.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

class LogAddExp : public OpTest {
 protected:
  LazyTensor of(const std::vector<double>& x, DType type) const {
    return upload(Host(Shape{static_cast<std::int64_t>(x.size())}, x), type, device());
  }
  static std::vector<double> held(const LazyTensor& x) {
    return to(x, Device::cpu()).astype(DType::f64).to_vector<double>();
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, LogAddExp, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(LogAddExp, IsAccurateNextToZero) {
  for (const DType type : supported({DType::f32, DType::f64})) {
    const bool is_wide = type == DType::f64;
    const std::vector<double> b{-1, -5, -10, -20, -40, is_wide ? -300.0 : -80.0};
    const std::vector<double> sums = held(logaddexp(of(std::vector<double>(b.size(), 0), type), of(b, type)));
    for (std::size_t i = 0; i < b.size(); ++i) {
      const double wanted = std::log1p(std::exp(b[i]));
      EXPECT_NEAR(sums[i] / wanted, 1, is_wide ? 1e-13 : 1e-5) << b[i] << " in " << name(type);
      const double scanned = held(logcumsumexp(of({b[i], 0}, type)))[1];
      EXPECT_NEAR(scanned / wanted, 1, is_wide ? 1e-13 : 1e-5) << b[i] << " in " << name(type);
    }
  }
}

TEST_P(LogAddExp, OfInfinities) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const LazyTensor a = of({kInfinite, -kInfinite, kInfinite, -kInfinite, 1, nan}, DType::f32);
  const LazyTensor b = of({kInfinite, -kInfinite, -kInfinite, 2, kInfinite, 1}, DType::f32);
  EXPECT_TRUE(
      agrees(logaddexp(a, b), Host(Shape{6}, {kInfinite, -kInfinite, kInfinite, 2, kInfinite, nan}), {}));
  const LazyTensor x = slice(a, 0, 0, 5), y = slice(b, 0, 0, 5);
  EXPECT_TRUE(agrees(grad(sum(logaddexp(x, y)), x), Host(Shape{5}, {0.5, 0.5, 1, 0, 0}), {}));
  EXPECT_TRUE(agrees(grad(sum(logaddexp(x, y)), y), Host(Shape{5}, {0.5, 0.5, 0, 1, 1}), {}));
  // Nothing is left of exp(-infinity): the sums are those of the elements behind.
  const LazyTensor row = of({-kInfinite, -kInfinite, 3, -kInfinite}, DType::f32);
  EXPECT_TRUE(agrees(logcumsumexp(row), Host(Shape{4}, {-kInfinite, -kInfinite, 3, 3}), {}));
  EXPECT_TRUE(agrees(grad(sum(slice(logcumsumexp(row), 0, 2, 4)), row), Host(Shape{4}, {0, 0, 2, 0}), {}));
  EXPECT_EQ(held(grad(sum(slice(logcumsumexp(row), 0, 0, 1)), row)), (std::vector<double>{1, 0, 0, 0}));
}

TEST_P(LogAddExp, OfEqualOperandsIsSmooth) {
  const LazyTensor a = of({0, 2, -3}, DType::f32), b = of({0, 2, -3}, DType::f32);
  const LazyTensor slope = grad(sum(logaddexp(a, b)), a);
  const LazyTensor by_a = grad(sum(slope), a), by_b = grad(sum(slope), b);
  EXPECT_TRUE(agrees(slope, Host(Shape{3}, {0.5, 0.5, 0.5}), {}));
  EXPECT_TRUE(agrees(by_a, Host(Shape{3}, {0.25, 0.25, 0.25}), {1e-6}));
  EXPECT_TRUE(agrees(by_b, Host(Shape{3}, {-0.25, -0.25, -0.25}), {1e-6}));
  if (!supports(DType::f64)) return;
  const std::vector<LazyTensor> operands{of({0, 2, -3, 1}, DType::f64), of({0, 2, 5, -9}, DType::f64)};
  const VectorFunction call = [](std::span<const LazyTensor> x) {
    return std::vector<LazyTensor>{logaddexp(x[0], x[1]), logcumsumexp(x[0])};
  };
  const GradcheckResult first = gradcheck(call, operands, {.forward = true});
  EXPECT_TRUE(first) << first.message;
  const GradcheckResult second = gradgradcheck(call, operands, {.forward = true});
  EXPECT_TRUE(second) << second.message;
}

}  // namespace
}  // namespace caldera::testing
