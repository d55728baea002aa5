// An adapter on the head: only where it is named, its formula, its files, and what cannot be done with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "lm/adapters/adapter_bank.h"
#include "lm/adapters/adapter_formats.h"
#include "lm/adapters/adapter_switch.h"
#include "lm/adapters/lora.h"
#include "lm/adapters/merge.h"
#include "lm/base/atomic_file.h"
#include "lm/models/llama.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/devices.h"
#include "tests/support/tiny_llama.h"

namespace caldera::testing {
namespace {

constexpr std::int64_t kHidden = 16, kVocabulary = 60;
const std::vector<std::int32_t> kIds{1, 5, 9, 30, 2};

std::unique_ptr<Llama> make(bool tied, Device device = Device::cpu()) {
  auto model = std::make_unique<Llama>(
      tiny_llama({.hidden = kHidden, .vocabulary = kVocabulary, .tied = tied, .initializer_range = 0.3}),
      device, 3);
  model->materialize();
  model->set_training(false);
  return model;
}

void adapt(CausalLM& model, const std::vector<std::string>& targets) {
  apply_lora(model, {.rank = 2, .alpha = 6}, targets, 1);
  std::uint64_t seed = 40;
  for (const Parameter& p : model.trainable_parameters())
    *p.tensor = *p.tensor + random_normal(p.tensor->shape(), seed++, DType::f32, model.device()) * 0.2;
  model.materialize();
  model.set_training(false);
}

std::vector<double> doubles(const LazyTensor& x) {
  const std::vector<float> values = x.to_vector<float>();
  return {values.begin(), values.end()};
}

class HeadAdapter : public ::testing::TestWithParam<std::tuple<bool, Device>> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(std::get<1>(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(All, HeadAdapter,
                         ::testing::Combine(::testing::Bool(), ::testing::ValuesIn(tested_devices())),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param) ? "tied" : "untied") +
                                  (std::get<1>(each.param).kind == DeviceKind::vulkan ? "_vulkan" : "_cpu");
                         });

TEST_P(HeadAdapter, AddsItsProductToTheLogits) {
  const auto [tied, device] = GetParam();
  const auto model = make(tied, device);
  const LazyTensor ids = model->make_ids(kIds);
  const std::vector<double> base = doubles(model->forward(ids)), hidden = doubles(model->hidden_states(ids));
  adapt(*model, {"lm_head"});
  std::vector<double> a, b;
  for (const Parameter& p : model->trainable_parameters())
    (p.name == "lm_head.lora_A.weight" ? a : b) = doubles(*p.tensor);
  ASSERT_EQ(a.size(), 2U * kHidden);
  ASSERT_EQ(b.size(), 2U * kVocabulary);
  const std::vector<double> logits = doubles(model->forward(ids));
  for (std::size_t t = 0; t < kIds.size(); ++t)
    for (std::size_t v = 0; v < kVocabulary; ++v) {
      double expected = base[t * kVocabulary + v];
      for (std::size_t r = 0; r < 2; ++r) {
        double inner = 0;
        for (std::size_t i = 0; i < kHidden; ++i) inner += a[r * kHidden + i] * hidden[t * kHidden + i];
        expected += 3 * inner * b[v * 2 + r];
      }
      ASSERT_NEAR(logits[t * kVocabulary + v], expected, 1e-4) << t << " " << v;
    }
  // As one matrix it is the same.
  const LazyTensor matrix = model->linear_head()->weight;
  const std::vector<double> by_matrix = doubles(matmul(model->hidden_states(ids), transpose(matrix)));
  for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(by_matrix[i], logits[i], 1e-4);
  const AdapterSwitchedOff off(*model);
  EXPECT_EQ(doubles(model->forward(ids)), base);
}

TEST_P(HeadAdapter, GradientsAreThoseOfTheFormula) {
  const auto [tied, device] = GetParam();
  const auto model = make(tied, device);
  adapt(*model, {"lm_head"});
  std::vector<LazyTensor> inputs;
  for (const Parameter& p : model->trainable_parameters()) inputs.push_back(*p.tensor);
  const LazyTensor ids = model->make_ids(kIds);
  const LazyTensor hidden = model->hidden_states(ids);
  const LazyTensor along = random_normal(Shape{1, 5, kVocabulary}, 8, DType::f32, device);
  const auto found = grad(sum(model->forward(ids) * along), inputs);
  // d/dA = s B^T G^T h and d/dB = s G^T (h A^T), of the logits' gradient G.
  const LazyTensor h = squeeze(hidden, 0), g = squeeze(along, 0);
  const std::vector<LazyTensor> expected{matmul(transpose(matmul(g, inputs[1])), h) * 3.0,
                                         matmul(transpose(g), matmul(h, transpose(inputs[0]))) * 3.0};
  for (std::size_t k = 0; k < 2; ++k) {
    const std::vector<double> one = doubles(found[k]), two = doubles(expected[k]);
    for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(one[i], two[i], 2e-4) << k << " " << i;
  }
}

TEST(HeadAdapterFiles, AreWrittenAndReadAndMergedWhereThereIsAMatrix) {
  for (const bool tied : {false, true}) {
    const TempFolder temp;
    const auto model = make(tied);
    const auto logits = [](CausalLM& of) { return doubles(of.forward(of.make_ids(kIds))); };
    const std::vector<double> base = logits(*model);
    adapt(*model, {"lm_head", "q_proj"});
    save_adapter(*model, temp / "one");
    const auto other = make(tied);
    load_adapter(*other, temp / "one");
    other->set_training(false);
    EXPECT_EQ(logits(*other), logits(*model));
    save_adapter(*other, temp / "two");
    for (const char* file : {"adapter_model.safetensors", "adapter_config.json"})
      EXPECT_EQ(read_text_file(temp / "one" / file), read_text_file(temp / "two" / file)) << file;
    const auto plain = make(tied);
    EXPECT_CONTAINS(error_of<FileError>([&] { AdapterBank(*plain).load(temp / "one"); }), "head");
    EXPECT_CONTAINS(error_of<FileError>(
                        [&] { convert_adapter(*plain, temp / "one", AdapterFormat::gguf, temp / "g.gguf"); }),
                    "head");
    const std::vector<double> adapted = logits(*model);
    if (tied) {
      EXPECT_CONTAINS(error_of<ValueError>([&] { merge_adapter(*model); }), "the embedding");
      EXPECT_EQ(logits(*model), adapted);  // nothing is half merged
      continue;
    }
    merge_adapter(*model);
    const std::vector<double> merged = logits(*model);
    for (std::size_t i = 0; i < merged.size(); ++i) ASSERT_NEAR(merged[i], adapted[i], 1e-4);
    EXPECT_NE(merged, base);
  }
}

TEST(HeadAdapterTargets, TheHeadMustBeNamed) {
  const auto model = make(false);
  for (const auto& [path, options] : lora_modules(*model, {}, {"all-linear"})) EXPECT_NE(path, "lm_head");
  EXPECT_EQ(lora_modules(*model, {}, {"lm_head"}).size(), 1U);
  EXPECT_EQ(lora_modules(*model, {}, {"q_proj", "lm_head"}).size(), 3U);
  const std::size_t all = lora_modules(*model, {}, {"all-linear"}).size();
  EXPECT_EQ(lora_modules(*model, {}, {"all-linear", "lm_head"}).size(), all + 1);
  LoRAOptions itself;  // PEFT trains the module itself then
  itself.modules_to_save = {"lm_head"};
  EXPECT_EQ(lora_modules(*model, itself, {"q_proj", "lm_head"}).size(), 2U);
}

}  // namespace
}  // namespace caldera::testing
