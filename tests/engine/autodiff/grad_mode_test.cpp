// Modes of differentiation: all give the same, and what one lacks another gives.
#include "engine/autodiff/jacobian/grad_mode.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/caldera.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class GradModeTest : public OpTest {
 protected:
  LazyTensor x() const {
    const DType type = supports(DType::f64) ? DType::f64 : DType::f32;
    return upload(Host(Shape{2, 3}, {0.3, -0.7, 1.1, 0.4, 0.9, -0.2}), type, device());
  }
  double tolerance() const { return supports(DType::f64) ? 1e-8 : 2e-3; }
};
INSTANTIATE_TEST_SUITE_P(Devices, GradModeTest, ::testing::ValuesIn(op_settings()), op_setting_name);

constexpr GradMode kModes[] = {GradMode::automatic, GradMode::reverse, GradMode::forward, GradMode::numeric};

LazyTensor energy(const LazyTensor& x) { return sum(sin(x) * exp(x)) + mean(x * x * x); }

TEST_P(GradModeTest, GradientsAreTheSame) {
  // (sin x exp x)' = exp x (sin x + cos x); (mean x^3)' = 3 x^2 / 6
  Host expected = Host(Shape{2, 3}, download(x()));
  for (double& v : expected.values) v = std::exp(v) * (std::sin(v) + std::cos(v)) + v * v / 2;
  for (const GradMode mode : kModes) {
    EXPECT_TRUE(
        agrees(grad(energy, x(), {.mode = mode, .strict = true}), expected, {tolerance(), tolerance()}))
        << static_cast<int>(mode);
  }
}

TEST_P(GradModeTest, JacobiansAndHessiansAreTheSame) {
  const UnaryFunction rows = [](const LazyTensor& at) { return sum(at * at * at, 1); };
  const UnaryFunction total = [](const LazyTensor& at) { return sum(at * at * at); };
  const std::vector<double> values = download(x());
  Host jacobi = Host(Shape{2, 2, 3}, std::vector<double>(12)),
       hesse = Host(Shape{2, 3, 2, 3}, std::vector<double>(36));
  for (std::size_t i = 0; i < 6; ++i) {
    jacobi.values[i / 3 * 6 + i] = 3 * values[i] * values[i];
    hesse.values[i * 7] = 6 * values[i];
  }
  for (const GradMode mode : kModes) {
    EXPECT_TRUE(
        agrees(jacobian(rows, x(), {.mode = mode, .strict = true}), jacobi, {tolerance(), tolerance()}))
        << static_cast<int>(mode);
    EXPECT_TRUE(
        agrees(hessian(total, x(), {.mode = mode, .strict = true}), hesse, {tolerance(), tolerance()}))
        << static_cast<int>(mode);
  }
}

TEST_P(GradModeTest, CallsTheFunctionOnceForAllArguments) {
  const LazyTensor scale = sum(x()) * 0 + 2;
  const std::vector<LazyTensor> at{x(), LazyTensor::from_vector<std::int32_t>({1, 2}, {2}, device()), scale};
  for (const GradMode mode : kModes) {
    int calls = 0;
    const TensorFunction f = [&](std::span<const LazyTensor> a) {
      ++calls;
      return a[2] * a[2] * sum(a[0] * a[0]) + sum(a[1]);
    };
    const std::vector<LazyTensor> grads = grad(f, at, {.mode = mode, .strict = true});
    // Differences: two calls an element, and one for the shape of the result.
    EXPECT_EQ(calls, mode == GradMode::numeric ? 2 * 7 + 1 : 1) << static_cast<int>(mode);
    Host of_x(Shape{2, 3}, download(x()));
    double of_scale = 0;
    for (double& v : of_x.values) {
      of_scale += 4 * v * v;
      v *= 8;
    }
    EXPECT_TRUE(agrees(grads[0], of_x, {tolerance(), 20 * tolerance()})) << static_cast<int>(mode);
    EXPECT_FALSE(grads[1].defined());
    EXPECT_TRUE(agrees(grads[2], Host(Shape{}, {of_scale}), {tolerance(), 20 * tolerance()}))
        << static_cast<int>(mode);
  }
}

TEST_P(GradModeTest, OfALoopThatEndsWhenItHasConverged) {
  const UnaryFunction doubled = [](const LazyTensor& at) {
    return while_loop([](const LazyTensor& y) { return sum(y) < 100; },
                      [](const LazyTensor& y) { return 2 * y; }, at);
  };
  const LazyTensor at = abs(x());  // 3.6 in all: five turns
  const UnaryFunction total = [&](const LazyTensor& of) { return sum(doubled(of)); };
  for (const GradMode mode : kModes) {
    EXPECT_TRUE(agrees(grad(total, at, {.mode = mode}), Host(Shape{2, 3}, std::vector<double>(6, 32)),
                       {10 * tolerance(), 0}))
        << static_cast<int>(mode);
  }
}

TEST_P(GradModeTest, FallsBackAndNamesTheOperation) {
  // A gradient of its own, and no tangent rule.
  static int rules = 0;  // a name that no run before has warned of
  const std::string name = "cube" + std::to_string(++rules) + "_";
  CustomVjp rule{.name = name};
  rule.forward = [](std::span<const LazyTensor> a) { return std::vector{a[0] * a[0] * a[0]}; };
  rule.backward = [](std::span<const LazyTensor> a, std::span<const LazyTensor>,
                     std::span<const LazyTensor> g) { return std::vector{3 * a[0] * a[0] * g[0]}; };
  const VectorFunction cube = custom_vjp(std::move(rule));
  const UnaryFunction total = [&](const LazyTensor& at) { return sum(cube({&at, 1})[0]); };
  Host expected = Host(Shape{2, 3}, download(x()));
  for (double& v : expected.values) v = 3 * v * v;
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(agrees(grad(total, x(), {.mode = GradMode::forward}), expected, {tolerance(), tolerance()}));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_MENTIONS(said, name);
  EXPECT_EQ(said.find(name), said.rfind(name)) << "said twice: " << said;
  EXPECT_MENTIONS(
      message_of<GradientError>([&] { (void)grad(total, x(), {.mode = GradMode::forward, .strict = true}); }),
      "cube");
}

TEST_P(GradModeTest, RefusesWhatHasNoGradient) {
  EXPECT_THROW((void)grad([](const LazyTensor& at) { return at; }, x(), {.mode = GradMode::forward}),
               GradientError);
  EXPECT_THROW((void)grad(energy, astype(x(), DType::i32), caldera::GradOptions{}), GradientError);
  EXPECT_THROW((void)grad(energy, x(), {.mode = GradMode::numeric, .step = -1}), ValueError);
}

}  // namespace
}  // namespace caldera::testing
