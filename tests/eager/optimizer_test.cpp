// AdamW against a loop in double; schedules against their closed forms.
#include <numbers>

#include "tests/eager/oracle.h"
#include "tests/support/devices.h"

namespace caldera::v1 {
namespace {

using oracle::doubles;
using oracle::expect_close;
using oracle::random_tensor;

/// AdamW on plain numbers.
struct PlainAdamW {
  AdamWConfig config;
  std::vector<double> m, v;
  int t = 0;
  void step(std::vector<double>& param, const std::vector<double>& grad) {
    m.resize(param.size());
    v.resize(param.size());
    ++t;
    for (std::size_t i = 0; i < param.size(); ++i) {
      m[i] = config.beta1 * m[i] + (1 - config.beta1) * grad[i];
      v[i] = config.beta2 * v[i] + (1 - config.beta2) * grad[i] * grad[i];
      const double m_hat = m[i] / (1 - std::pow(config.beta1, t));
      const double v_hat = v[i] / (1 - std::pow(config.beta2, t));
      param[i] -= config.learning_rate * config.weight_decay * param[i];
      param[i] -= config.learning_rate * m_hat / (std::sqrt(v_hat) + config.eps);
    }
  }
};

class EagerAdamW : public ::testing::TestWithParam<caldera::Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  Device device() const { return Device::from(GetParam()); }
};

TEST_P(EagerAdamW, FollowsTheFormula) {
  const AdamWConfig config{
      .learning_rate = 0.05, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
  AdamW optimizer(config);
  PlainAdamW plain{config, {}, {}};
  Tensor param = random_tensor({7, 5}, 1, device());
  std::vector<double> expected = doubles(param);
  optimizer.add_parameter("w", param);
  for (std::uint32_t step = 0; step < 20; ++step) {
    const Tensor grad = random_tensor({7, 5}, 100 + step, device());
    if (step == 10) {
      optimizer.set_lr(0.01);
      plain.config.learning_rate = 0.01;
    }
    param = optimizer.step("w", param, grad);
    plain.step(expected, doubles(grad));
    expect_close(param, expected, 1e-5);
    EXPECT_EQ(optimizer.step_count(), step + 1);
  }
}

TEST_P(EagerAdamW, OneStepOfManyParametersIsOneStep) {
  // The first step of Adam moves every element by learning_rate, whatever the gradient; with bias correction
  // counted a parameter instead of a step, only the first parameter would move that far.
  AdamW optimizer({.learning_rate = 0.1, .weight_decay = 0});
  std::vector<Var> variables;
  std::vector<Tensor> grads;
  for (std::uint32_t i = 0; i < 5; ++i) {
    variables.emplace_back(Tensor::zeros({3}, DType::f32, device()));
    grads.push_back(random_tensor({3}, i, device()));
  }
  optimizer.step(variables, grads);
  EXPECT_EQ(optimizer.step_count(), 1);
  for (std::size_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      EXPECT_NEAR(variables[i].tensor().at({j}), grads[i].at({j}) > 0 ? -0.1 : 0.1, 1e-6);
  for (std::size_t i = 0; i < 5; ++i) optimizer.step_var(variables[i], grads[i]);
  EXPECT_EQ(optimizer.step_count(), 2);
}

TEST_P(EagerAdamW, StepsVariablesAsItStepsNames) {
  AdamW by_name, by_variable;
  Tensor param = random_tensor({4}, 1, device());
  const Var variable(param);
  by_name.add_parameter("p", param);
  for (std::uint32_t step = 0; step < 3; ++step) {
    const Tensor grad = random_tensor({4}, 10 + step, device());
    param = by_name.step("p", param, grad);
    by_variable.step_var(variable, grad);
    EXPECT_EQ(param.to_vector(), variable.tensor().to_vector());
  }
  EXPECT_EQ(by_variable.step_count(), 3);
}

TEST_P(EagerAdamW, ResetsToTheBeginning) {
  AdamW optimizer({.learning_rate = 0.1});
  const Tensor start = random_tensor({4}, 1, device());
  const Tensor grad = random_tensor({4}, 2, device());
  optimizer.add_parameter("p", start);
  const std::vector<float> first = optimizer.step("p", start, grad).to_vector();
  EXPECT_NE(optimizer.step("p", start, grad * -3).to_vector(), first);
  optimizer.reset_state();
  EXPECT_EQ(optimizer.step_count(), 0);
  EXPECT_EQ(optimizer.step("p", start, grad).to_vector(), first);
}

TEST_P(EagerAdamW, RefusesAndStaysWhole) {
  AdamW optimizer;
  const Tensor param = random_tensor({4}, 1, device());
  EXPECT_THROW(optimizer.step("p", param, param), TrainingError);
  optimizer.add_parameter("p", param);
  EXPECT_THROW(optimizer.add_parameter("p", param), TrainingError);
  EXPECT_THROW(optimizer.step("p", param, random_tensor({5}, 1, device())), ShapeError);
  EXPECT_THROW(optimizer.add_parameter("i", Tensor({1, 2}, {2}, device())), TrainingError);
  const std::vector<Var> variables{Var(param), Var(param)};
  const std::vector<Tensor> short_of_one{param};
  EXPECT_THROW(optimizer.step(variables, short_of_one), TrainingError);
  const std::vector<Var> twice{variables[0], variables[0]};
  const std::vector<Tensor> grads{param, param};
  EXPECT_THROW(optimizer.step(twice, grads), TrainingError);
  EXPECT_EQ(variables[0].tensor().to_vector(), param.to_vector());
  EXPECT_EQ(optimizer.step_count(), 0);
}

TEST(EagerAdamWConfig, HasTheDocumentedDefaultsAndRefusesOthers) {
  const AdamWConfig config;
  EXPECT_EQ(config.learning_rate, 1e-4);
  EXPECT_EQ(config.beta1, 0.9);
  EXPECT_EQ(config.beta2, 0.999);
  EXPECT_EQ(config.eps, 1e-8);
  EXPECT_EQ(config.weight_decay, 0.01);
  for (const AdamWConfig& bad :
       {AdamWConfig{.learning_rate = -1}, AdamWConfig{.learning_rate = std::nan("")}, AdamWConfig{.beta1 = 1},
        AdamWConfig{.beta1 = -0.1}, AdamWConfig{.beta2 = 1.5}, AdamWConfig{.eps = 0},
        AdamWConfig{.weight_decay = -1}}) {
    try {
      AdamW optimizer(bad);
      ADD_FAILURE() << "accepted";
    } catch (const TrainingError& error) {
      EXPECT_EQ(error.kind(), TrainingError::Kind::InvalidConfig);
    }
  }
  AdamW optimizer;
  EXPECT_THROW(optimizer.set_lr(-1), TrainingError);
  EXPECT_EQ(optimizer.learning_rate(), 1e-4);
  optimizer.set_lr(0.5);
  EXPECT_EQ(optimizer.learning_rate(), 0.5);
}

TEST(EagerScheduler, FollowsItsClosedForm) {
  const auto cosine = [](double progress) { return (1 + std::cos(std::numbers::pi * progress)) / 2; };
  for (const std::int64_t step : {0, 1, 50, 99, 100, 101, 550, 999, 1000, 5000}) {
    const auto s = static_cast<double>(step);
    EXPECT_DOUBLE_EQ(LRScheduler::constant(0.3).get_lr(step), 0.3);
    EXPECT_DOUBLE_EQ(LRScheduler::linear(100, 0.3).get_lr(step), 0.3 * std::min(1.0, s / 100));
    EXPECT_DOUBLE_EQ(LRScheduler::cosine(1000, 0.3, 0.1).get_lr(step),
                     0.1 + 0.2 * cosine(std::min(1.0, s / 1000)));
    EXPECT_DOUBLE_EQ(LRScheduler::warmup_cosine(100, 1000, 0.3, 0.1).get_lr(step),
                     step < 100 ? 0.3 * s / 100 : 0.1 + 0.2 * cosine(std::min(1.0, (s - 100) / 900)));
  }
  EXPECT_EQ(LRScheduler::linear(100, 0.3).get_lr(-5), 0);
  EXPECT_EQ(LRScheduler::warmup_cosine(1, 2, 1, 0).kind(), LRScheduler::Kind::WarmupCosine);
}

TEST(EagerScheduler, RefusesWhatMakesNoSense) {
  EXPECT_THROW(LRScheduler::constant(-1), TrainingError);
  EXPECT_THROW(LRScheduler::constant(std::nan("")), TrainingError);
  EXPECT_THROW(LRScheduler::linear(0, 1), TrainingError);
  EXPECT_THROW(LRScheduler::cosine(0, 1, 0), TrainingError);
  EXPECT_THROW(LRScheduler::cosine(10, 0.1, 0.2), TrainingError);
  EXPECT_THROW(LRScheduler::warmup_cosine(10, 10, 1, 0), TrainingError);
  EXPECT_THROW(LRScheduler::warmup_cosine(10, 20, 1, -0.5), TrainingError);
}

INSTANTIATE_TEST_SUITE_P(Devices, EagerAdamW, ::testing::ValuesIn(caldera::testing::tested_devices()),
                         caldera::testing::device_test_name);

}  // namespace
}  // namespace caldera::v1
