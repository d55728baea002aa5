// Layers that run as one loop, in every family, against the layers one behind the other.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "engine/autodiff/autodiff.h"
#include "engine/runtime/evaluate.h"
#include "lm/adapters/lora.h"
#include "lm/nn/attention/packed_texts.h"
#include "tests/lm/families/golden_model.h"
#include "tests/support/devices.h"
#include "tests/support/engine_setup.h"
#include "tests/support/temp_folder.h"
#include "training/objectives/loss.h"

namespace caldera::testing {
namespace {

constexpr const char* kLoopedFamilies[] = {
    "qwen2-untied", "llama-llama3", "qwen3",   "qwen3-sliding", "gemma2", "gemma3",    "mistral", "smollm3",
    "olmo2",        "olmo3",        "granite", "phi3-long",     "gpt2",   "qwen3-moe", "gpt-oss",
};

class LoopedFamilies : public ::testing::TestWithParam<std::tuple<const char*, Device>> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(device()); }
  static const char* family() { return std::get<0>(GetParam()); }
  static Device device() { return std::get<1>(GetParam()); }

  /// On the CPU the bits; elsewhere the loop may be compiled into other kernels.
  static void expect_equal(const LazyTensor& a, const LazyTensor& b, const std::string& what) {
    const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
    ASSERT_EQ(x.size(), y.size());
    double largest = 1e-30;
    for (const float value : y) largest = std::max(largest, std::abs(static_cast<double>(value)));
    const double allowed = device().kind == DeviceKind::cpu ? 0 : 1e-5 * largest;
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_LE(std::abs(static_cast<double>(x[i]) - y[i]), allowed) << what << ", element " << i;
  }

  /// The loss of `model`, its logits and its gradients with respect to all that is trained: with the layers
  /// as a loop, and one behind the other.
  static void expect_the_same(CausalLM& model, std::span<const std::int32_t> ids,
                              std::span<const std::int32_t> targets, AttentionCache* cache, bool is_loop) {
    const LazyTensor goal = LazyTensor::from_span(
        targets, Shape{GoldenModel::kBatch, static_cast<std::int64_t>(targets.size()) / GoldenModel::kBatch},
        device());
    std::vector<LazyTensor> inputs;
    for (const Parameter& p : model.trainable_parameters()) inputs.push_back(*p.tensor);
    model.set_checkpointing(
        std::vector(static_cast<std::size_t>(model.config().num_hidden_layers), std::optional(Keep())));
    std::vector<std::vector<LazyTensor>> results;
    for (const bool as_scan : {false, true}) {
      model.set_layers_as_scan(as_scan ? LayersAsScan::always : LayersAsScan::never);
      const LazyTensor logits = model(model.make_ids(ids, GoldenModel::kBatch), cache);
      const LazyTensor loss = cross_entropy(logits, goal);
      std::vector<LazyTensor> all = grad(loss, inputs);
      all.insert(all.end(), {logits, loss});
      const auto loops =
          std::ranges::count_if(plan_for(all)->steps, [](const Step& step) { return step.name() == "scan"; });
      if (as_scan == is_loop) {
        EXPECT_EQ(loops, as_scan ? 2 : 0) << "there and back";
      }
      eval(all);
      results.push_back(std::move(all));
    }
    for (std::size_t i = 0; i < results[0].size(); ++i)
      expect_equal(results[1][i], results[0][i], "result " + std::to_string(i));
  }

 private:
  ScopedSettings settings_;
};

TEST_P(LoopedFamilies, LogitsAndGradientsOfAnAdapterAreThoseOfTheLayersInARow) {
  GoldenModel golden(family(), device());
  CausalLM& model = golden.model();
  load_adapter(model, golden.adapter());
  const std::vector<std::int32_t> ids = golden.tokens("ids"), targets = golden.tokens("targets");
  const std::vector<std::vector<std::int64_t>> lengths{{4, 5}, {7}};
  PackedTexts packed(lengths, GoldenModel::kPositions, device());
  for (AttentionCache* cache : {static_cast<AttentionCache*>(nullptr), static_cast<AttentionCache*>(&packed)})
    expect_the_same(model, ids, targets, cache, false);
  expect_close(model(model.make_ids(ids, GoldenModel::kBatch)), golden.values("logits"),
               GoldenModel::kTolerance, "golden logits");
}

/// The family's configuration with three times as many layers: those that alternate are groups that repeat.
TEST_P(LoopedFamilies, DeepModelsAreOneLoop) {
  TempFolder folder;
  std::ifstream file(std::filesystem::path("tests/golden/models") / family() / "config.json");
  nlohmann::json config = nlohmann::json::parse(file);
  for (const char* name : {"num_hidden_layers", "n_layer"}) {
    if (config.contains(name)) config[name] = 6;
  }
  for (const char* name : {"layer_types", "no_rope_layers"}) {
    if (!config.contains(name) || config[name].is_null()) continue;
    const nlohmann::json of_layer = config[name];
    for (std::size_t i = of_layer.size(); i < 6; ++i) config[name].push_back(of_layer[i % of_layer.size()]);
  }
  folder.put("config.json", config.dump());
  const auto model = make_causal_lm(folder / "config.json", device(), 5);
  model->materialize();
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 2 * GoldenModel::kPositions; ++i) ids.push_back(i * 7 % 30);
  std::vector<std::int32_t> targets(ids.rbegin(), ids.rend());
  expect_the_same(*model, ids, targets, nullptr, true);
}

INSTANTIATE_TEST_SUITE_P(Families, LoopedFamilies,
                         ::testing::Combine(::testing::ValuesIn(kLoopedFamilies),
                                            ::testing::ValuesIn(tested_devices())),
                         [](const auto& each) {
                           std::string name = std::get<0>(each.param);
                           std::ranges::replace(name, '-', '_');
                           return name +
                                  (std::get<1>(each.param).kind == DeviceKind::vulkan ? "_vulkan" : "_cpu");
                         });

}  // namespace
}  // namespace caldera::testing
