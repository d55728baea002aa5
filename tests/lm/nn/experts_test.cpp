// Mixtures of experts that compute the chosen ones alone, against the sum that routing defines, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "lm/nn/caches/cache_type.h"
#include "lm/nn/experts/moe.h"
#include "lm/nn/feed_forward/gated_mlp.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

constexpr std::int64_t kWide = 64, kInner = 96, kExperts = 6, kChosen = 2;

/// A mixture with its numbers at hand.
struct Mixture {
  std::unique_ptr<ExpertLayers> layer;
  Doubles router;                       // (experts, wide)
  std::vector<Doubles> gate, up, down;  // of each expert
};

/// What a matrix holds once it is in q8_0.
Doubles numbers_in_blocks(const LazyTensor& blocks, const Shape& shape) {
  return to_doubles(dequantize(quantized_tensor({.format = QuantizedFormat::q8_0}, shape, {blocks})));
}

Mixture make_mixture(bool quantised, RoutingWeights form, Device device) {
  Mixture m;
  m.router = random_doubles(kExperts * kWide, 1);
  const auto matrix = [&](std::int64_t out, std::int64_t in, std::uint64_t seed) {
    return make_tensor(random_doubles(out * in, seed, -0.3, 0.3), Shape{out, in}, DType::f32, device);
  };
  std::vector<std::unique_ptr<Layer>> experts;
  for (std::int64_t e = 0; e < kExperts; ++e) {
    const auto seed = static_cast<std::uint64_t>(10 * e + 5);
    experts.push_back(std::make_unique<GatedMLP>(std::make_unique<Linear>(matrix(kInner, kWide, seed)),
                                                 std::make_unique<Linear>(matrix(kInner, kWide, seed + 1)),
                                                 std::make_unique<Linear>(matrix(kWide, kInner, seed + 2)),
                                                 activation_of("silu")));
  }
  auto router = std::make_unique<Linear>(make_tensor(m.router, Shape{kExperts, kWide}, DType::f32, device));
  m.layer = std::make_unique<ExpertLayers>(std::move(router), std::move(experts), activation_of("silu"),
                                           kChosen, form);
  class Freeze final : public ParameterVisitor {
   public:
    Freeze(Mixture& m, bool quantised) : m_(m), quantised_(quantised) {}
    void matrix(const std::string& name, Weight& w) override {
      if (name == "gate.weight") return;
      w.trainable = false;
      const Shape shape = w.tensor.shape();
      if (quantised_) {
        const LazyTensor blocks = q8_0_blocks(w.tensor);
        eval({blocks});
        w.quantized = quantized_tensor({.format = QuantizedFormat::q8_0}, shape, {blocks});
        w.tensor = {};
      }
      std::vector<Doubles>& to = name.ends_with("gate_proj.weight") ? m_.gate
                                 : name.ends_with("up_proj.weight") ? m_.up
                                                                    : m_.down;
      to.push_back(quantised_ ? numbers_in_blocks(w.quantized.parts[0], shape) : to_doubles(w.tensor));
    }

   private:
    Mixture& m_;
    bool quantised_;
  } freeze(m, quantised);
  m.layer->visit("", freeze);
  m.layer->set_training(false);
  return m;
}

Doubles times(const Doubles& matrix, const Doubles& x) {
  Doubles y(matrix.size() / x.size());
  for (std::size_t i = 0; i < matrix.size(); ++i) y[i / x.size()] += matrix[i] * x[i % x.size()];
  return y;
}

std::vector<std::size_t> chosen_of(const Doubles& logits) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  order.resize(to_size(kChosen));
  return order;
}

Doubles mixture_in_double(const Mixture& m, const Doubles& x, RoutingWeights form) {
  Doubles all;
  for (std::size_t t = 0; t < x.size(); t += to_size(kWide)) {
    const Doubles token(x.begin() + static_cast<std::ptrdiff_t>(t),
                        x.begin() + static_cast<std::ptrdiff_t>(t) + kWide);
    const Doubles logits = times(m.router, token);
    const std::vector<std::size_t> chosen = chosen_of(logits);
    double of_all = 0, of_chosen = 0;
    for (const double l : logits) of_all += std::exp(l);
    for (const std::size_t e : chosen) of_chosen += std::exp(logits[e]);
    Doubles y(to_size(kWide));
    for (const std::size_t e : chosen) {
      Doubles inner = times(m.gate[e], token);
      const Doubles up = times(m.up[e], token);
      for (std::size_t i = 0; i < inner.size(); ++i) inner[i] *= up[i] / (1 + std::exp(-inner[i]));
      const Doubles out = times(m.down[e], inner);
      const double weight =
          std::exp(logits[e]) / (form == RoutingWeights::softmax_of_all ? of_all : of_chosen);
      for (std::size_t i = 0; i < y.size(); ++i) y[i] += weight * out[i];
    }
    all.insert(all.end(), y.begin(), y.end());
  }
  return all;
}

class Experts : public ::testing::TestWithParam<Device> {};

TEST_P(Experts, AreTheSumThatRoutingDefines) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  for (const bool quantised : {false, true})
    for (const RoutingWeights form : {RoutingWeights::softmax_of_all, RoutingWeights::softmax_of_all_scaled,
                                      RoutingWeights::softmax_of_chosen}) {
      Mixture m = make_mixture(quantised, form, GetParam());
      for (const std::int64_t tokens : {1, 7, 16, 1}) {
        const Doubles x = random_doubles(tokens * kWide, to_size(100 + tokens));
        const LazyTensor y =
            m.layer->forward(make_tensor(x, Shape{1, tokens, kWide}, DType::f32, GetParam()));
        EXPECT_EQ(y.shape(), (Shape{1, tokens, kWide}));
        expect_close(y, mixture_in_double(m, x, form), 1e-5, std::to_string(tokens) + " tokens");
      }
    }
}

TEST_P(Experts, ThatWereNotChosenAreNotRead) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  Mixture m = make_mixture(true, RoutingWeights::softmax_of_all, GetParam());
  const Doubles x = random_doubles(kWide, 3);
  const std::vector<std::size_t> chosen = chosen_of(times(m.router, x));
  class Spoil final : public ParameterVisitor {
   public:
    explicit Spoil(const std::vector<std::size_t>& kept) : kept_(kept) {}
    void matrix(const std::string& name, Weight& w) override {
      for (const std::size_t e : kept_)
        if (name == "gate.weight" || name.starts_with("experts." + std::to_string(e) + ".")) return;
      LazyTensor& blocks = w.quantized.parts[0];
      // Scales that are no numbers.
      blocks = LazyTensor::full(blocks.shape(), 0x7e, DType::u8, blocks.device());
      blocks.eval();
    }

   private:
    const std::vector<std::size_t>& kept_;
  } spoil(chosen);
  m.layer->visit("", spoil);
  const LazyTensor token = make_tensor(x, Shape{1, 1, kWide}, DType::f32, GetParam());
  expect_close(m.layer->forward(token), mixture_in_double(m, x, RoutingWeights::softmax_of_all), 1e-5);
}

TEST_P(Experts, FollowWeightsThatAreReplaced) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  Mixture m = make_mixture(false, RoutingWeights::softmax_of_all, GetParam());
  const Doubles x = random_doubles(3 * kWide, 4);
  const LazyTensor tokens = make_tensor(x, Shape{3, 1, kWide}, DType::f32, GetParam());
  m.layer->forward(tokens).eval();
  class Replace final : public ParameterVisitor {
   public:
    explicit Replace(Mixture& m) : m_(m) {}
    void matrix(const std::string& name, Weight& w) override {
      if (!name.ends_with("down_proj.weight")) return;
      Doubles& numbers = m_.down[next_++];
      for (double& v : numbers) v = static_cast<float>(v * 3);
      w.tensor = make_tensor(numbers, w.tensor.shape(), DType::f32, w.tensor.device());
    }

   private:
    Mixture& m_;
    std::size_t next_ = 0;
  } replace(m);
  m.layer->visit("", replace);
  expect_close(m.layer->forward(tokens), mixture_in_double(m, x, RoutingWeights::softmax_of_all), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Devices, Experts, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(ExpertProducts, AreOneForEachKindOfMatrix) {
  const ScopedSettings scope(true);
  Mixture m = make_mixture(true, RoutingWeights::softmax_of_all, Device::cpu());
  const LazyTensor y = m.layer->forward(
      make_tensor(random_doubles(5 * kWide, 9), Shape{1, 5, kWide}, DType::f32, Device::cpu()));
  std::size_t products = 0;
  const std::shared_ptr<const Plan> plan = plan_for({y});
  for (const Step& step : plan->steps) products += step.is<QuantizedStep>() ? 1 : 0;
  EXPECT_EQ(products, 3U);
}

}  // namespace
}  // namespace caldera::testing
