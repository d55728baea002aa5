// The Llama decoder: against plain loops, against golden logits of a trained model, with and without the
// cache.
#include "lm/models/llama.h"

#include <fstream>
#include <sstream>

#include "engine/runtime/runtime.h"
#include "lm/adapters/lora.h"
#include "ops/ops.h"
#include "tests/lm/models/reference_llama.h"
#include "tests/support/devices.h"
#include "tests/support/test_data.h"
#include "training/objectives/loss.h"
#include "training/optim/adamw.h"
#include "training/optim/clip.h"

namespace caldera::testing {
namespace {

const std::vector<std::int32_t> kIds{1, 36, 5, 5, 0, 17, 22, 3, 9, 30, 2, 11};

class LlamaTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

TEST_P(LlamaTest, AgreesWithPlainLoops) {
  for (const auto& [heads, kv_heads] : {std::pair{4, 2}, std::pair{3, 3}, std::pair{6, 1}})
    for (const bool variant : {false, true}) {
      LlamaConfig config = small_config(heads, kv_heads);
      config.tie_word_embeddings = variant;
      config.attention_bias = config.mlp_bias = !variant;
      Llama model(config, GetParam(), 3);
      randomize(model, 100);
      const LazyTensor logits = model.forward(model.make_ids(kIds, 2));
      EXPECT_EQ(logits.shape(), (Shape{2, 6, config.vocab_size}));
      expect_close(logits, LlamaReference(model).forward(kIds, 2), 1e-4,
                   std::to_string(heads) + " heads, variant " + std::to_string(variant));
    }
}

TEST_P(LlamaTest, DecodingWithTheCacheEqualsTheWholePass) {
  Llama model(small_config(4, 2), GetParam(), 3);
  randomize(model, 5);
  const Doubles whole = to_doubles(model.forward(model.make_ids(kIds, 2)));
  const auto column = [](std::int64_t from, std::int64_t count) {
    std::vector<std::int32_t> ids;
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t t = from; t < from + count; ++t) ids.push_back(kIds[to_size(b * 6 + t)]);
    return ids;
  };
  // Prompt, single tokens, and several tokens in the middle of a text.
  for (const std::vector<std::int64_t>& lengths :
       {std::vector<std::int64_t>{3, 1, 1, 1}, {1, 1, 1, 1, 1, 1}, {2, 3, 1}, {6}}) {
    const auto cache = model.make_cache(9, 2);
    std::int64_t position = 0;
    for (const std::int64_t length : lengths) {
      const LazyTensor logits = model.forward(model.make_ids(column(position, length), 2), cache.get());
      std::vector<LazyTensor> outputs = cache->state();
      outputs.push_back(logits);
      eval(outputs);
      Doubles expected;
      const std::int64_t vocab = model.config().vocab_size;
      for (std::int64_t b = 0; b < 2; ++b)
        expected.insert(expected.end(), whole.begin() + (b * 6 + position) * vocab,
                        whole.begin() + (b * 6 + position + length) * vocab);
      expect_close(logits, expected, 1e-4, "position " + std::to_string(position));
      position += length;
    }
    EXPECT_EQ(cache->position(), 6);
  }
}

TEST_P(LlamaTest, GoldenLogits) {
  CALDERA_REQUIRE_DATA(dir, "stories260K");
  const auto model = Llama::load(dir, GetParam());
  std::ifstream id_file(dir / "greedy_token_ids_200.txt");
  std::vector<std::int32_t> ids;
  for (std::string word; id_file >> word;) {
    std::erase_if(word, [](char ch) { return ch == ',' || ch == '[' || ch == ']'; });
    if (!word.empty()) ids.push_back(std::stoi(word));
  }
  std::vector<float> golden(std::size_t{200} * 512);
  std::ifstream logit_file(dir / "greedy_logits_200x512.f32", std::ios::binary);
  logit_file.read(reinterpret_cast<char*>(golden.data()),
                  static_cast<std::streamsize>(golden.size() * sizeof(float)));
  ASSERT_TRUE(logit_file.good());
  ASSERT_GE(ids.size(), 200U);
  ids.resize(200);
  const double tolerance = GetParam() == Device::cpu() ? 1e-4 : 1e-3;
  const std::vector<float> logits = model->forward(model->make_ids(ids)).to_vector<float>();
  ASSERT_EQ(logits.size(), golden.size());
  double worst = 0;
  for (std::size_t i = 0; i < golden.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(logits[i]) - static_cast<double>(golden[i])));
  EXPECT_LE(worst, tolerance);
}

TEST_P(LlamaTest, TrainingWithAnAdapterMovesTheAdapterAlone) {
  Llama model(small_config(4, 2), GetParam(), 3);
  const Doubles before = to_doubles(*model.parameters().front().tensor);
  EXPECT_EQ(apply_lora(model, {.rank = 4, .alpha = 8, .dropout = 0.1}, {"all-linear"}, 1), 14U);
  model.set_random_seed(1);
  AdamW optimizer(model.trainable_parameters());
  EXPECT_EQ(optimizer.parameters().size(), 28U);
  const std::vector<std::int32_t> targets(kIds.rbegin(), kIds.rend());
  const LazyTensor goal = LazyTensor::from_vector(targets, Shape{2, 6}, GetParam());
  double first = 0;
  double last = 0;
  for (int step = 0; step < 40; ++step) {
    const LazyTensor loss = cross_entropy(model.forward(model.make_ids(kIds, 2)), goal);
    std::vector<LazyTensor> grads = grad(loss, optimizer.inputs());
    const LazyTensor norm = clip_grad_norm(grads, 1.0);
    optimizer.update(grads, 2e-2);
    std::vector<LazyTensor> outputs = optimizer.outputs();
    outputs.push_back(loss);
    outputs.push_back(norm);
    eval(outputs);
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, first / 2);
  EXPECT_EQ(to_doubles(*model.parameters().front().tensor), before);
}

// What repeats is planned once: learning rates, bias corrections, dropout seeds and positions are plan
// arguments.
TEST_P(LlamaTest, RepeatedStepsReplayOnePlan) {
  Llama model(small_config(4, 2), GetParam(), 3);
  const auto cache = model.make_cache(16);
  std::uint64_t misses = 0;
  for (int step = 0; step < 6; ++step) {
    const std::vector<std::int32_t> ids(step == 0 ? 3 : 1, step + 1);
    std::vector<LazyTensor> outputs{model.forward(model.make_ids(ids), cache.get())};
    for (const LazyTensor& buffer : cache->state()) outputs.push_back(buffer);
    eval(outputs);
    if (step == 1) misses = plan_cache_stats().misses;
  }
  EXPECT_EQ(plan_cache_stats().misses, misses) << "decoding";

  apply_lora(model, {.rank = 2, .dropout = 0.1}, {"all-linear"}, 1);
  AdamW optimizer(model.trainable_parameters());
  const LazyTensor goal = LazyTensor::from_vector(kIds, Shape{2, 6}, GetParam());
  for (int step = 0; step < 4; ++step) {
    const LazyTensor loss = cross_entropy(model.forward(model.make_ids(kIds, 2)), goal);
    std::vector<LazyTensor> grads = grad(loss, optimizer.inputs());
    clip_grad_norm(grads, 1.0);
    optimizer.update(grads, 1e-3 * step);
    std::vector<LazyTensor> outputs = optimizer.outputs();
    outputs.push_back(loss);
    eval(outputs);
    if (step == 0) misses = plan_cache_stats().misses;
  }
  EXPECT_EQ(plan_cache_stats().misses, misses) << "training";
}

INSTANTIATE_TEST_SUITE_P(Devices, LlamaTest, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(LlamaArgumentsTest, AreChecked) {
  Llama model(small_config(4, 2), Device::cpu(), 1);
  EXPECT_THROW(model.make_ids(std::vector<std::int32_t>{0, 37}), ValueError);
  EXPECT_THROW(model.make_ids(std::vector<std::int32_t>{-1}), ValueError);
  EXPECT_THROW(model.make_ids(std::vector<std::int32_t>{}), ShapeError);
  EXPECT_THROW(model.make_cache(65), ValueError);
  EXPECT_THROW(model.forward(model.make_ids(std::vector<std::int32_t>(65, 1))), ValueError);
  EXPECT_THROW(model.forward(LazyTensor::zeros(Shape{3}, DType::i32, Device::cpu())), ShapeError);
  const auto cache = model.make_cache(4);
  model.forward(model.make_ids(std::vector<std::int32_t>(3, 1)), cache.get());
  EXPECT_THROW(model.forward(model.make_ids(std::vector<std::int32_t>(2, 1)), cache.get()), ValueError);
  EXPECT_EQ(cache->position(), 3);
}

TEST(LlamaInitTest, IsAFunctionOfTheSeed) {
  LlamaConfig config = small_config(4, 2);
  config.initializer_range = 0.02;
  Llama a(config, Device::cpu(), 1);
  Llama b(config, Device::cpu(), 1);
  Llama c(config, Device::cpu(), 2);
  const auto weights = [](Llama& m) { return m.parameters().front().tensor->to_vector<float>(); };
  EXPECT_EQ(weights(a), weights(b));
  EXPECT_NE(weights(a), weights(c));
  double squares = 0;
  for (const float w : weights(a)) squares += static_cast<double>(w) * static_cast<double>(w);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(weights(a).size())), 0.02, 0.002);
}

}  // namespace
}  // namespace caldera::testing
