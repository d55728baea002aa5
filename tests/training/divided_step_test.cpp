// The gradients of a step, as the trainer makes them, do not depend on how its examples are divided into
// batches.
#include <algorithm>
#include <cmath>
#include <random>

#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"
#include "tests/training/objective_setup.h"
#include "training/objectives/next_token.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

/// Random texts of random lengths, which are weighted by their tokens: a mean of means would be another loss.
TokenDataset random_texts(int count, unsigned seed) {
  std::mt19937 random(seed);
  ExampleSet set;
  for (int i = 0; i < count; ++i) {
    std::string text;
    for (std::uint32_t n = 2 + random() % 14; n > 0; --n) text += static_cast<char>('a' + random() % 26);
    set.examples.push_back({.prompt = {}, .text = std::move(text)});
  }
  return TokenDataset(set, ByteTokenizer(), {.seq_len = 16});
}

using Gradients = std::vector<Doubles>;

/// What one step of plain gradient descent adds to the adapter. The rate is so large that the parameters
/// themselves do not round it.
Gradients step_of(Device device, DType dtype, const TokenDataset& data, std::int64_t batches, unsigned seed) {
  const auto model = adapted_model(device, 0, 0.1);
  if (dtype == DType::f64) compute_in_f64(*model);
  Gradients before, moved;
  for (const Parameter& p : model->trainable_parameters()) before.push_back(to_doubles(*p.tensor));
  train(ObjectiveModels(*model), NextToken(), data, nullptr,
        {.iterations = 1,
         .batch_size = data.size() / batches,
         .grad_accumulation = batches,
         .optimizer = {.name = "sgd", .learning_rate = 0x1p16, .weight_decay = 0},
         .max_grad_norm = 0,
         .seed = seed});
  for (const Parameter& p : model->trainable_parameters()) {
    const Doubles& old = before[moved.size()];
    Doubles values = to_doubles(*p.tensor);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= old[i];
    moved.push_back(std::move(values));
  }
  return moved;
}

/// The norm of the difference of two gradients beside that of the first, over `count` parameters from
/// `first` on.
double difference_of(const Gradients& a, const Gradients& b, std::size_t first, std::size_t count) {
  double difference = 0, all = 0;
  for (std::size_t k = first; k < first + count; ++k)
    for (std::size_t i = 0; i < a[k].size(); ++i) {
      difference += std::pow(a[k][i] - b[k][i], 2);
      all += std::pow(a[k][i], 2);
    }
  EXPECT_GT(all, 0);
  return std::sqrt(difference / all);
}

class DividedStep : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, DividedStep, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST_P(DividedStep, AccumulatedGradientsAreThoseOfOneBatch) {
  for (unsigned set = 0; set < 50; ++set) {
    SCOPED_TRACE(set);
    const TokenDataset data = random_texts(6, 300 + set);
    const std::int64_t batches = set % 2 == 0 ? 3 : 6;
    const auto difference = [&](DType dtype, bool each) {
      const Gradients whole = step_of(GetParam(), dtype, data, 1, set);
      const Gradients divided = step_of(GetParam(), dtype, data, batches, set);
      EXPECT_EQ(whole.size(), 14U);
      if (!each) return difference_of(whole, divided, 0, whole.size());
      double worst = 0;
      for (std::size_t k = 0; k < whole.size(); ++k)
        worst = std::max(worst, difference_of(whole, divided, k, 1));
      return worst;
    };
    EXPECT_LE(difference(DType::f32, false), 1e-6);
    // In f64 that of each parameter too: what is left above is f32's rounding.
    if (GetParam() == Device::cpu()) {
      EXPECT_LE(difference(DType::f64, true), 1e-13);
    }
  }
}

}  // namespace
}  // namespace caldera::testing
