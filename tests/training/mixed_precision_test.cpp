// Training and generation in f16 and bf16: master weights, loss scaling, and how far losses may drift.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "engine/runtime/runtime.h"
#include "lm/adapters/lora.h"
#include "lm/generate/generator.h"
#include "lm/models/llama.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "ops/ops.h"
#include "tests/support/devices.h"
#include "tests/support/tiny_llama.h"
#include "training/evaluate/evaluate.h"
#include "training/optim/clip.h"
#include "training/optim/loss_scaler.h"
#include "training/trainer/trainer.h"

namespace caldera {
namespace {

ModelConfig small_config() {
  return testing::tiny_llama({.hidden = 24, .intermediate = 40, .initializer_range = 0.1});
}

TokenDataset small_data() {
  ExampleSet set;
  for (int i = 0; i < 12; ++i) {
    std::string text = "line " + std::to_string(i) + ":";
    for (int k = 0; k < i % 5; ++k) text += " again";
    set.examples.push_back({"", text});
  }
  return TokenDataset(set, ByteTokenizer(), {.seq_len = 48});
}

struct Steps : TrainObserver {
  std::vector<StepRecord> records;
  void on_step(const StepRecord& record) override { records.push_back(record); }
};

class MixedPrecision : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(GetParam());
    if (!backend(GetParam()).supports(DType::f16)) GTEST_SKIP() << "no 16-bit storage here";
  }

  static std::unique_ptr<Llama> model(DType dtype, bool lora = true) {
    auto made = std::make_unique<Llama>(small_config(), GetParam(), 7);
    if (lora) apply_lora(*made, {.rank = 4, .alpha = 8}, {"all-linear"}, 3);
    made->set_dtype(dtype);
    return made;
  }

  static std::vector<StepRecord> trained(Llama& model, std::int64_t iterations,
                                         LossScalerOptions scaling = {}) {
    TrainOptions options;
    options.iterations = iterations;
    options.optimizer.learning_rate = 1e-2;
    options.seed = 5;
    options.loss_scaling = scaling;
    Steps steps;
    TrainObserver* observers[] = {&steps};
    train(model, small_data(), nullptr, options, observers);
    return steps.records;
  }

  static std::vector<float> values(Llama& model) {
    std::vector<float> all;
    for (const Parameter& p : model.trainable_parameters()) {
      const std::vector<float> own = p.tensor->to_vector<float>();
      all.insert(all.end(), own.begin(), own.end());
    }
    return all;
  }
};

// The unit roundoff is 2^-11 for f16 and 2^-8 for bf16; two layers of about ten roundings each move a loss
// of 5.5 by far less than their sum. Both must also learn.
TEST_P(MixedPrecision, LossesFollowThoseOfF32AndMastersStayF32) {
  // A software GPU takes its time: what is learnt in the end is for the CPU to show.
  const bool is_cpu = GetParam().kind == DeviceKind::cpu;
  const std::int64_t iterations = is_cpu ? 30 : 5;
  const auto exact = model(DType::f32);
  const std::vector<StepRecord> expected = trained(*exact, iterations);
  ASSERT_LT(expected.back().loss, (is_cpu ? 0.8 : 1.0) * expected.front().loss);
  for (const auto& [dtype, first, later] :
       {std::tuple(DType::f16, 1e-3, 0.02), std::tuple(DType::bf16, 1e-2, 0.1)}) {
    const auto m = model(dtype);
    const std::vector<StepRecord> got = trained(*m, iterations);
    for (const Parameter& p : m->parameters())
      EXPECT_EQ(p.tensor->dtype(), p.trainable ? DType::f32 : dtype) << p.name;
    EXPECT_EQ(m->forward(m->make_ids(std::vector<std::int32_t>{1, 2, 3})).dtype(), dtype);
    EXPECT_NEAR(got.front().loss, expected.front().loss, first * expected.front().loss);
    EXPECT_NE(got.front().loss, expected.front().loss) << "nothing was computed in " << name(dtype);
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i].loss, expected[i].loss, later * expected[i].loss) << name(dtype) << " step " << i;
    for (const StepRecord& record : got) {
      EXPECT_FALSE(record.skipped);
      EXPECT_EQ(record.loss_scale, dtype == DType::f16 ? 65536 : 1);
    }
  }
}

TEST_P(MixedPrecision, StepsThatOverflowChangeNothingAndLowerTheScale) {
  const auto m = model(DType::f16);
  const std::vector<float> before = values(*m);
  // So large that gradients of logits overflow f16: they are about scale / tokens.
  const std::vector<StepRecord> one = trained(*m, 1, {.initial_scale = 0x1p40});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_TRUE(one[0].skipped);
  EXPECT_FALSE(std::isfinite(one[0].grad_norm));
  EXPECT_EQ(values(*m), before);

  const bool is_cpu = GetParam().kind == DeviceKind::cpu;
  const std::vector<StepRecord> all = trained(*m, is_cpu ? 60 : 4, {.initial_scale = 0x1p40});
  std::size_t skipped = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].loss_scale, std::ldexp(1.0, 40 - static_cast<int>(skipped))) << i;
    skipped += all[i].skipped ? 1 : 0;
  }
  if (!is_cpu) return;
  EXPECT_GT(skipped, 5U);
  EXPECT_LT(skipped, 40U);
  EXPECT_FALSE(all.back().skipped);
  EXPECT_LT(all.back().loss, 0.9 * all.front().loss);
}

TEST_P(MixedPrecision, TheScaleGrowsAfterGoodSteps) {
  const auto m = model(DType::f16);
  const std::vector<StepRecord> all = trained(*m, 7, {.initial_scale = 256, .growth_interval = 3});
  const std::vector<double> expected{256, 256, 256, 512, 512, 512, 1024};
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].loss_scale, expected[i]) << i;
}

// Gradients as small as these vanish in f16 without a scale.
TEST_P(MixedPrecision, ScalingKeepsSmallGradients) {
  const LazyTensor w = LazyTensor::from_vector(std::vector<float>{0.5F, -0.25F}, Shape{2}, GetParam());
  const auto loss = [](const LazyTensor& x) {
    return astype(sum(astype(x, DType::f16) * 1.0), DType::f32) * 1e-9;
  };
  const LossScaler scaler({.initial_scale = 65536});
  EXPECT_EQ(grad(loss(w), {w})[0].to_vector<float>(), (std::vector<float>{0, 0}));
  std::vector<LazyTensor> grads = grad(scaler.scaled(loss(w)), {w});
  scaler.unscale(grads);
  for (const float g : grads[0].to_vector<float>()) EXPECT_NEAR(g, 1e-9F, 1e-9F * 0.01F);
}

TEST_P(MixedPrecision, PretrainingKeepsF32Weights) {
  const auto m = model(DType::bf16, false);
  const std::vector<StepRecord> steps = trained(*m, GetParam().kind == DeviceKind::cpu ? 20 : 3);
  for (const Parameter& p : m->parameters()) EXPECT_EQ(p.tensor->dtype(), DType::f32) << p.name;
  EXPECT_LT(steps.back().loss, (steps.size() > 3 ? 0.9 : 1.0) * steps.front().loss);
}

TEST_P(MixedPrecision, GeneratesWithA16BitCache) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto m = model(dtype);
    std::vector<std::vector<float>> rows;
    GenerateOptions options;
    options.max_tokens = 8;
    options.sampling.temperature = 0;
    options.on_logits = [&](std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); };
    const std::vector<std::int32_t> prompt{5, 6, 7, 8, 9};
    const Generation made = generate(*m, prompt, options);
    ASSERT_EQ(made.ids.size(), 8U);
    // All at once, without a cache.
    std::vector<std::int32_t> all = prompt;
    all.insert(all.end(), made.ids.begin(), made.ids.end() - 1);
    const EvaluationMode mode(*m);
    const std::vector<float> whole = astype(m->forward(m->make_ids(all)), DType::f32).to_vector<float>();
    ASSERT_EQ(rows.size(), all.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t k = 0; k < rows[i].size(); ++k)
        ASSERT_NEAR(rows[i][k], whole[i * rows[i].size() + k], dtype == DType::f16 ? 0.01 : 0.08);
    }
  }
}

TEST_P(MixedPrecision, OtherTypesAreRefused) {
  const auto m = model(DType::f32);
  EXPECT_THROW(m->set_dtype(DType::i32), DTypeError);
  EXPECT_EQ(m->dtype(), DType::f32);
  EXPECT_THROW(LossScaler({.initial_scale = 0}), ValueError);
  EXPECT_THROW(LossScaler({.backoff_factor = 1}), ValueError);
  EXPECT_THROW(LossScaler({.growth_interval = 0}), ValueError);
}

INSTANTIATE_TEST_SUITE_P(Devices, MixedPrecision, ::testing::ValuesIn(testing::tested_devices()),
                         testing::device_test_name);

}  // namespace
}  // namespace caldera
