// AdamW against a plain double loop, clipping and schedules against closed forms.
#include <numbers>

#include "ops/ops.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"
#include "training/optim/adamw.h"
#include "training/optim/clip.h"
#include "training/optim/schedule.h"
#include "training/optim/weight_average.h"

namespace caldera::testing {
namespace {

/// torch.optim.AdamW, single-tensor form.
struct AdamWReference {
  AdamWOptions options;
  Doubles theta;
  Doubles m = Doubles(theta.size(), 0);
  Doubles v = Doubles(theta.size(), 0);
  int t = 0;

  void step(const Doubles& grad, double lr) {
    ++t;
    const double c1 = 1 - std::pow(options.beta1, t);
    const double c2 = 1 - std::pow(options.beta2, t);
    for (std::size_t i = 0; i < theta.size(); ++i) {
      theta[i] -= theta[i] * lr * options.weight_decay;
      m[i] += (grad[i] - m[i]) * (1 - options.beta1);
      v[i] = v[i] * options.beta2 + grad[i] * grad[i] * (1 - options.beta2);
      theta[i] -= lr / c1 * m[i] / (std::sqrt(v[i]) / std::sqrt(c2) + options.eps);
    }
  }
};

class OptimTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

TEST_P(OptimTest, AdamWFollowsThePlainLoopForTwentySteps) {
  const std::vector<DType> dtypes =
      GetParam() == Device::cpu() ? std::vector{DType::f32, DType::f64} : std::vector{DType::f32};
  for (const DType dtype : dtypes) {
    const AdamWOptions options{.weight_decay = 0.1};
    AdamWReference first{options, random_doubles(7 * 3, 1)};
    AdamWReference second{options, random_doubles(33, 2)};
    LazyTensor a = make_tensor(first.theta, Shape{7, 3}, dtype, GetParam());
    LazyTensor b = make_tensor(second.theta, Shape{33}, dtype, GetParam());
    AdamW optimizer({{"a", &a, true}, {"b", &b, true}}, options);
    const double tolerance = dtype == DType::f64 ? 1e-12 : 1e-5;
    for (std::uint64_t step = 0; step < 20; ++step) {
      const Doubles ga = random_doubles(21, 100 + step, -0.01, 0.01);
      const Doubles gb = random_doubles(33, 200 + step, -5, 5);
      const double lr = 0.01 * (1 + 0.1 * static_cast<double>(step));
      first.step(ga, lr);
      second.step(gb, lr);
      const std::vector<LazyTensor> grads{make_tensor(ga, Shape{7, 3}, dtype, GetParam()),
                                          make_tensor(gb, Shape{33}, dtype, GetParam())};
      optimizer.update(grads, lr);
      eval(optimizer.outputs());
      expect_close(a, first.theta, tolerance);
      expect_close(b, second.theta, tolerance);
    }
    EXPECT_EQ(optimizer.step_count(), 20);
    expect_close(optimizer.state().tensors.at("b.exp_avg"), second.m, tolerance);
    expect_close(optimizer.state().tensors.at("b.exp_avg_sq"), second.v, tolerance);
  }
}

TEST_P(OptimTest, AdamWDescendsAQuadratic) {
  LazyTensor x = make_tensor({3, -2}, Shape{2}, DType::f32, GetParam());
  AdamW optimizer({{"x", &x, true}}, {.weight_decay = 0});
  for (int i = 0; i < 200; ++i) {
    const LazyTensor loss = sum(square(x - 1.0));
    optimizer.update(grad(loss, optimizer.parameters()), 0.1);
    eval(loss, optimizer);
  }
  expect_close(x, {1, 1}, 1e-2);
}

TEST_P(OptimTest, ClippingScalesByTheGlobalNorm) {
  const Doubles a = random_doubles(12, 1, -3, 3);
  const Doubles b = random_doubles(5, 2, -3, 3);
  double squares = 0;
  for (const Doubles& g : {a, b})
    for (const double v : g) squares += v * v;
  const double norm = std::sqrt(squares);
  for (const double limit : {1.0, 1000.0}) {
    std::vector<LazyTensor> grads{make_tensor(a, Shape{3, 4}, DType::f32, GetParam()),
                                  make_tensor(b, Shape{5}, DType::f32, GetParam())};
    EXPECT_NEAR(clip_grad_norm(grads, limit).item<double>(), norm, 1e-5 * norm);
    const double factor = std::min(1.0, limit / (norm + 1e-6));
    Doubles expected = b;
    for (double& v : expected) v *= factor;
    expect_close(grads[1], expected, 1e-6);
    EXPECT_EQ(grads[0].shape(), (Shape{3, 4}));
  }
  std::vector<LazyTensor> zero{make_tensor({0, 0}, Shape{2}, DType::f32, GetParam())};
  EXPECT_EQ(clip_grad_norm(zero, 1.0).item<double>(), 0);
  expect_close(zero[0], {0, 0}, 1e-9);
  std::vector<LazyTensor> none;
  EXPECT_THROW(clip_grad_norm(none, 1.0), ValueError);
  EXPECT_THROW(clip_grad_norm(zero, 0.0), ValueError);
}

TEST_P(OptimTest, ClippingByValueBoundsEachElement) {
  const Doubles values{-3, -0.5, 0, 0.25, 0.5, 7};
  std::vector<LazyTensor> grads{make_tensor(values, Shape{2, 3}, DType::f32, GetParam())};
  clip_grad_value(grads, 0.5);
  EXPECT_EQ(to_doubles(grads[0]), (Doubles{-0.5, -0.5, 0, 0.25, 0.5, 0.5}));
  EXPECT_THROW(clip_grad_value(grads, 0), ValueError);
}

TEST_P(OptimTest, WeightAverageFollowsItsClosedForm) {
  LazyTensor x = make_tensor({1, -2}, Shape{2}, DType::f32, GetParam());
  WeightAverage average({{"x", &x, true}}, 0.75);
  double expected = 1;
  for (int step = 1; step <= 5; ++step) {
    x = make_tensor({1.0 + step, -2}, Shape{2}, DType::f32, GetParam());
    average.update();
    eval(average.outputs());
    expected = 0.75 * expected + 0.25 * (1.0 + step);
    expect_close(average.outputs()[0], {expected, -2}, 1e-6);
  }
  average.exchange();
  expect_close(x, {expected, -2}, 1e-6);
  average.exchange();
  expect_close(x, {6, -2}, 1e-6);
  WeightAverage another({{"x", &x, true}}, 0.75);
  another.restore(average.state());
  expect_close(another.outputs()[0], {expected, -2}, 1e-6);
  EXPECT_THROW(another.restore({}), ValueError);
  EXPECT_THROW(WeightAverage({}, 1.0), ValueError);
}

INSTANTIATE_TEST_SUITE_P(Devices, OptimTest, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(OptimArgumentsTest, AreChecked) {
  LazyTensor x = make_tensor({1, 2}, Shape{2}, DType::f32, Device::cpu());
  const std::vector<Parameter> parameters{{"x", &x, true}};
  EXPECT_THROW(AdamW({}, {}), ValueError);
  EXPECT_THROW(AdamW(parameters, {.beta1 = 1}), ValueError);
  AdamW optimizer(parameters);
  EXPECT_THROW(optimizer.update({}, 0.1), ShapeError);
  const std::vector<LazyTensor> wrong{make_tensor({1}, Shape{1}, DType::f32, Device::cpu())};
  EXPECT_THROW(optimizer.update(wrong, 0.1), ShapeError);
  EXPECT_EQ(optimizer.step_count(), 0);
}

TEST(OptimArgumentsTest, ARestoredRunContinuesExactly) {
  const auto run = [](AdamW& optimizer, int from, int to) {
    for (int i = from; i < to; ++i) {
      const std::vector<LazyTensor> grads{
          make_tensor(random_doubles(4, to_size(i)), Shape{4}, DType::f32, Device::cpu())};
      optimizer.update(grads, 0.01);
      eval(optimizer.outputs());
    }
  };
  LazyTensor x = make_tensor(random_doubles(4, 99), Shape{4}, DType::f32, Device::cpu());
  LazyTensor y = x;
  AdamW whole({{"x", &x, true}});
  AdamW half({{"y", &y, true}});
  run(whole, 0, 6);
  run(half, 0, 3);
  AdamW rest({{"y", &y, true}});
  rest.restore(half.state());
  run(rest, 3, 6);
  EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>());
}

TEST(ScheduleTest, FollowsClosedForms) {
  const Schedule constant{ScheduleKind::constant, 0.5, 4, 20};
  EXPECT_DOUBLE_EQ(constant.learning_rate(0), 0);
  EXPECT_DOUBLE_EQ(constant.learning_rate(1), 0.125);
  EXPECT_DOUBLE_EQ(constant.learning_rate(4), 0.5);
  EXPECT_DOUBLE_EQ(constant.learning_rate(1000), 0.5);
  const Schedule linear{ScheduleKind::linear, 0.5, 4, 20};
  EXPECT_DOUBLE_EQ(linear.learning_rate(2), 0.25);
  EXPECT_DOUBLE_EQ(linear.learning_rate(4), 0.5);
  EXPECT_DOUBLE_EQ(linear.learning_rate(12), 0.25);
  EXPECT_DOUBLE_EQ(linear.learning_rate(20), 0);
  EXPECT_DOUBLE_EQ(linear.learning_rate(25), 0);
  const Schedule cosine{ScheduleKind::cosine, 0.5, 4, 20};
  EXPECT_DOUBLE_EQ(cosine.learning_rate(4), 0.5);
  EXPECT_NEAR(cosine.learning_rate(12), 0.25, 1e-15);
  EXPECT_NEAR(cosine.learning_rate(8), 0.25 * (1 + std::cos(std::numbers::pi / 4)), 1e-15);
  EXPECT_NEAR(cosine.learning_rate(20), 0, 1e-15);
  EXPECT_NEAR(cosine.learning_rate(30), 0, 1e-15);
  const Schedule cold{ScheduleKind::linear, 0.5, 0, 10};
  EXPECT_DOUBLE_EQ(cold.learning_rate(0), 0.5);
}

// The formulas of transformers/optimization.py: get_polynomial_decay_schedule_with_warmup,
// get_cosine_with_hard_restarts_schedule_with_warmup, get_wsd_schedule,
// get_cosine_with_min_lr_schedule_with_warmup.
TEST(ScheduleTest, FollowsHuggingFacesFormulas) {
  constexpr double kPi = std::numbers::pi;
  const Schedule polynomial{ScheduleKind::polynomial, 0.5, 4, 20, {.power = 2, .end = 0.1}};
  const Schedule restarts{ScheduleKind::cosine_with_restarts, 0.5, 4, 20, {.cycles = 3}};
  const Schedule wsd{ScheduleKind::wsd, 0.5, 4, 20, {.decay = 0.3}};
  const Schedule floored{ScheduleKind::cosine, 0.5, 4, 20, {.end = 0.2}};
  for (int step = 0; step < 26; ++step) {
    const double progress = (step - 4) / 16.0;
    const auto rate = [&](double at) { return step < 4 ? 0.5 * step / 4 : 0.5 * at; };
    const double remaining = std::max(0.0, 1 - progress);
    EXPECT_NEAR(polynomial.learning_rate(step), rate((1 - 0.1) * remaining * remaining + 0.1), 1e-15) << step;
    const double cycle = std::fmod(3 * progress, 1.0);
    EXPECT_NEAR(restarts.learning_rate(step), rate(progress >= 1 ? 0 : 0.5 * (1 + std::cos(kPi * cycle))),
                1e-15)
        << step;
    const double decayed = step >= 20 ? 0 : 0.5 * (1 + std::cos(kPi * (step - 14) / 6));
    EXPECT_NEAR(wsd.learning_rate(step), rate(step <= 14 ? 1 : decayed), 1e-15) << step;
    const double cosine = progress >= 1 ? 0 : 0.5 * (1 + std::cos(kPi * progress));
    EXPECT_NEAR(floored.learning_rate(step), rate(cosine * (1 - 0.2) + 0.2), 1e-15) << step;
  }
}

TEST(ScheduleTest, Names) {
  for (const char* text : {"constant", "linear", "cosine"}) EXPECT_EQ(name(parse_schedule(text)), text);
  for (const std::string& text : schedule_names()) EXPECT_EQ(name(parse_schedule(text)), text);
  EXPECT_THROW(parse_schedule("sine"), ValueError);
  EXPECT_THROW((Schedule{ScheduleKind::polynomial, 1, 0, 5, {.power = 0}}.validate()), ValueError);
  EXPECT_THROW((Schedule{ScheduleKind::wsd, 1, 0, 5, {.decay = 1.5}}.validate()), ValueError);
  EXPECT_THROW((Schedule{ScheduleKind::cosine, 1, 0, 5, {.end = -0.1}}.validate()), ValueError);
  EXPECT_THROW((Schedule{ScheduleKind::cosine_with_restarts, 1, 0, 5, {.cycles = 0}}.validate()), ValueError);
  EXPECT_THROW((Schedule{ScheduleKind::linear, 1, -1, 5}.validate()), ValueError);
}

}  // namespace
}  // namespace caldera::testing
