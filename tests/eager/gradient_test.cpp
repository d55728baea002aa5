// Gradients through eager calls, the fused ones included, against central differences of loops in double.
#include <functional>

#include "engine/autodiff/autodiff.h"
#include "tests/eager/oracle.h"
#include "tests/support/devices.h"

namespace caldera::v1 {
namespace {

using oracle::doubles;
using oracle::expect_close;
using oracle::product;
using oracle::random_tensor;

using Values = std::vector<double>;

Values central_differences(const std::function<double(const Values&)>& function, Values at) {
  constexpr double kStep = 1e-6;
  Values slope;
  for (double& x : at) {
    const double saved = x;
    x = saved + kStep;
    const double above = function(at);
    x = saved - kStep;
    slope.push_back((above - function(at)) / (2 * kStep));
    x = saved;
  }
  return slope;
}

class EagerGradient : public ::testing::TestWithParam<caldera::Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  Device device() const { return Device::from(GetParam()); }
};

TEST_P(EagerGradient, PassesTheFusedCalls) {
  const Tensor x = random_tensor({3, 7}, 1, device());
  const Tensor weights = random_tensor({3, 5}, 2, device());
  const Var a(random_tensor({7, 2}, 3, device()));
  const Var b(random_tensor({2, 5}, 4, device()));
  const std::vector<Var> variables{a, b};
  const auto [loss, grads] = value_and_grad(
      [&] {
        return (x.rms_norm_fused(1e-6).lora_forward_fused(a.tensor(), b.tensor(), 0.5).softmax_fused() *
                weights)
            .sum();
      },
      variables);

  const Values w = doubles(weights);
  const auto plain = [&](const Values& pa, const Values& pb) {
    Values normed = doubles(x);
    for (std::size_t row = 0; row < 3; ++row) {
      double squares = 0;
      for (std::size_t i = 0; i < 7; ++i) squares += normed[row * 7 + i] * normed[row * 7 + i] / 7;
      for (std::size_t i = 0; i < 7; ++i) normed[row * 7 + i] /= std::sqrt(squares + 1e-6);
    }
    const Values logits = product(product(normed, pa, 3, 7, 2), pb, 3, 2, 5);
    double result = 0;
    for (std::size_t row = 0; row < 3; ++row) {
      double total = 0;
      for (std::size_t j = 0; j < 5; ++j) total += std::exp(0.5 * logits[row * 5 + j]);
      for (std::size_t j = 0; j < 5; ++j)
        result += w[row * 5 + j] * std::exp(0.5 * logits[row * 5 + j]) / total;
    }
    return result;
  };
  const Values va = doubles(a.tensor());
  const Values vb = doubles(b.tensor());
  expect_close(loss, {plain(va, vb)}, 1e-5);
  ASSERT_EQ(grads.size(), 2U);
  expect_close(grads[0], central_differences([&](const Values& v) { return plain(v, vb); }, va), 1e-4);
  expect_close(grads[1], central_differences([&](const Values& v) { return plain(va, v); }, vb), 1e-4);
}

TEST_P(EagerGradient, TrainsALayer) {
  // The layer learns a rank 2 map from its own examples; without a gradient of the fused call it could not.
  const Tensor x = random_tensor({64, 10}, 1, device());
  const Tensor y = x.matmul(random_tensor({10, 2}, 2, device())).matmul(random_tensor({2, 6}, 3, device()));
  const LoRALayer layer(10, 6, {.rank = 2, .alpha = 2}, device(), 4);
  AdamW optimizer({.learning_rate = 0.05, .weight_decay = 0});
  double first = 0;
  double last = 0;
  for (int step = 0; step < 150; ++step) {
    const auto [loss, grads] = value_and_grad(
        [&] {
          const Tensor error = layer.forward(x) - y;
          return (error * error).mean();
        },
        layer.trainable_variables());
    optimizer.step(layer.trainable_variables(), grads);
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_EQ(optimizer.step_count(), 150);
  EXPECT_LT(last, 0.01 * first);
}

TEST_P(EagerGradient, LossesAndUnusedVariables) {
  const Var used(random_tensor({2, 3}, 1, device()));
  const Var unused(random_tensor({4}, 2, device()));
  const Tensor targets(std::vector<std::int32_t>{1, 0}, {2}, device());
  const std::vector<Var> variables{used, unused};
  const auto [loss, grads] =
      value_and_grad([&] { return cross_entropy_loss(used.tensor(), targets); }, variables);
  // (softmax - one-hot) / rows
  Values expected = doubles(used.tensor().softmax_stable());
  expected[1] -= 1;
  expected[3] -= 1;
  for (double& value : expected) value /= 2;
  expect_close(grads[0], expected, 1e-5);
  EXPECT_EQ(grads[1].to_vector(), std::vector<float>(4, 0.0F));
}

TEST_P(EagerGradient, NeverLosesAGradientSilently) {
  const Var x(random_tensor({3}, 1, device()));
  const LazyTensor leaf = x.tensor().lazy();
  // A lazy tensor had a history before it became eager; eager results are constants.
  const Tensor had_history(leaf * 2);
  const Tensor constant = x.tensor() * 2;
  EXPECT_EQ(Tensor(caldera::grad(caldera::sum(leaf * had_history.lazy()), leaf)).to_vector(),
            (x.tensor() * 4).to_vector());
  EXPECT_EQ(Tensor(caldera::grad(caldera::sum(leaf * (had_history * 2).lazy()), leaf)).to_vector(),
            (x.tensor() * 8).to_vector());
  EXPECT_EQ(Tensor(caldera::grad(caldera::sum(leaf * constant.lazy()), leaf)).to_vector(),
            constant.to_vector());
}

TEST_P(EagerGradient, ComesBackFromAnotherDevice) {
  const Var x(random_tensor({3}, 1, device()));
  const std::vector<Var> variables{x};
  const auto [value, grads] = value_and_grad(
      [&] {
        const Tensor there = x.tensor().to_device(Device::cpu());
        return (there * there).sum();
      },
      variables);
  ASSERT_EQ(grads.size(), 1U);
  EXPECT_EQ(grads[0].device().is_cpu(), device().is_cpu());
  const std::vector<float> in = x.tensor().to_vector(), g = grads[0].to_vector();
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_FLOAT_EQ(g[i], 2 * in[i]);
}

TEST_P(EagerGradient, LeavesTheVariablesAsTheyWere) {
  const Var x(random_tensor({3}, 1, device()));
  const std::vector<float> before = x.tensor().to_vector();
  const std::vector<Var> variables{x};
  EXPECT_THROW(value_and_grad([&]() -> Tensor { throw ValueError("mine"); }, variables), ValueError);
  EXPECT_THROW(value_and_grad([&] { return x.tensor() * 2; }, variables), TrainingError);
  value_and_grad([&] { return x.tensor().sum(); }, variables);
  EXPECT_EQ(x.tensor().to_vector(), before);
}

INSTANTIATE_TEST_SUITE_P(Devices, EagerGradient, ::testing::ValuesIn(caldera::testing::tested_devices()),
                         caldera::testing::device_test_name);

TEST(EagerGradientErrors, AVariableIsFloating) {
  const Var x(random_tensor({3}, 1, Device::cpu()));
  const Var k(Tensor(std::vector<std::int32_t>{1, 2, 3}, {3}));
  const std::vector<Var> variables{x, k};
  try {
    value_and_grad([&] { return (x.tensor() * x.tensor()).sum(); }, variables);
    FAIL() << "an integer has no gradient";
  } catch (const GradientError& error) {
    EXPECT_NE(std::string(error.what()).find("variable 1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace caldera::v1
