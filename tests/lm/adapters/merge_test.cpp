// Adapters merged into weights: the same logits, the same structure as before, files that load.
#include "lm/adapters/merge.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "lm/adapters/lora.h"
#include "lm/models/registry.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/tiny_llama.h"

namespace caldera::testing {
namespace {

/// Llama keeps its matrices as (out, in), GPT-2 as (in, out); a square one does not show which.
constexpr const char* kLlama =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 40,
  "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "hidden_act": "silu", "tie_word_embeddings": true})";
constexpr const char* kGpt2 =
    R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 40,
  "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 32, "n_ctx": 32, "activation_function": "gelu_new",
  "layer_norm_epsilon": 1e-5})";

std::vector<float> logits_on_five(CausalLM& model) {
  const std::vector<std::int32_t> ids{1, 5, 9, 30, 2};
  return model.forward(model.make_ids(ids)).to_vector<float>();
}

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], tolerance) << i;
}

LoRAOptions kind(bool dora, LoRAInit init) {
  LoRAOptions options{.rank = 3, .alpha = 5};
  options.use_dora = dora;
  options.init = init;
  return options;
}

class Merge : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_.put("config.json", GetParam());
    model_ = make();
    model_->save(folder_ / "base");
  }
  std::unique_ptr<CausalLM> make() const {
    auto model = make_causal_lm(folder_ / "config.json", Device::cpu(), 3);
    model->materialize();
    model->set_training(false);
    return model;
  }
  void adapt(const LoRAOptions& options) {
    apply_lora(*model_, options, {"all-linear"}, 1);
    std::uint64_t seed = 50;
    for (const Parameter& p : model_->trainable_parameters())
      *p.tensor = *p.tensor + random_normal(p.tensor->shape(), seed++, DType::f32, Device::cpu()) * 0.2;
    model_->materialize();
  }

  TempFolder folder_;
  std::unique_ptr<CausalLM> model_;
};
INSTANTIATE_TEST_SUITE_P(Families, Merge, ::testing::Values(kLlama, kGpt2),
                         [](const auto& each) { return each.index == 0 ? "llama" : "gpt2"; });

TEST_P(Merge, GivesTheLogitsOfTheAdapterBesideAndTheModelsStructure) {
  const std::size_t parameters = model_->parameters().size();
  const std::vector<float> base = logits_on_five(*model_);
  for (const LoRAOptions& options :
       {kind(false, LoRAInit::kaiming), kind(true, LoRAInit::kaiming), kind(false, LoRAInit::pissa)}) {
    model_ = make();
    adapt(options);
    const std::vector<float> beside = logits_on_five(*model_);
    EXPECT_NE(beside, base);
    EXPECT_GT(merge_adapter(*model_), 4u);
    expect_near(logits_on_five(*model_), beside, 2e-4);
    EXPECT_EQ(model_->parameters().size(), parameters);
    EXPECT_THROW(merge_adapter(*model_), ValueError) << "there is none left";
  }
}

TEST_P(Merge, OfAPartIsThatPart) {
  adapt(kind(false, LoRAInit::kaiming));
  // Half of the change is the change of an adapter with half the alpha.
  save_adapter(*model_, folder_ / "adapter");
  merge_adapter(*model_, 0.5);
  const auto other = make();
  std::string config = slurp(folder_ / "adapter" / "adapter_config.json");
  config.replace(config.find("\"lora_alpha\": 5"), 15, "\"lora_alpha\": 2.5");
  folder_.put("adapter/adapter_config.json", config);
  load_adapter(*other, folder_ / "adapter");
  expect_near(logits_on_five(*model_), logits_on_five(*other), 2e-5);
}

TEST_P(Merge, WritesAModelThatLoads) {
  adapt(kind(false, LoRAInit::kaiming));
  save_adapter(*model_, folder_ / "adapter");
  const Fused fused = fuse_model(folder_ / "base", folder_ / "fused", {.adapters = {{folder_ / "adapter"}}});
  EXPECT_EQ(fused.type, "f32");
  EXPECT_LT(fused.largest_logit_difference, 2e-4);
  expect_near(logits_on_five(*load_causal_lm(folder_ / "fused", Device::cpu())), logits_on_five(*model_),
              2e-4);
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "."))
    EXPECT_EQ(entry.path().filename().string().find("caldera-"), std::string::npos) << entry.path();
}

TEST(MergeQuantised, KeepsTheTypeOfTheModel) {
  const TempFolder folder;
  std::string config = kLlama;  // rows of 64, a whole group of the format
  config.replace(config.find("\"hidden_size\": 32"), 17, "\"hidden_size\": 64");
  folder.put("config.json", config);
  const auto model = make_causal_lm(folder / "config.json", Device::cpu(), 3);
  model->materialize();
  model->save(folder / "base");
  convert_model(folder / "base", folder / "quantised", {.to = ModelFormat::mlx, .type = "affine8"});
  const auto quantised = load_causal_lm(folder / "quantised", Device::cpu());
  apply_lora(*quantised, {.rank = 2, .alpha = 4}, {"q_proj", "down_proj"}, 1);
  save_adapter(*quantised, folder / "adapter");
  const Fused fused = fuse_model(folder / "quantised", folder / "fused",
                                 {.adapters = {{folder / "adapter"}}, .to = ModelFormat::mlx});
  EXPECT_EQ(fused.type, "affine8");
  EXPECT_EQ(fused.merged_modules, 4u);
  EXPECT_GT(fused.largest_logit_difference, 0);
  EXPECT_LT(fused.largest_logit_difference, 0.05);
  // Of several adapters, and of parts of them, too.
  const Fused twice = fuse_model(
      folder / "quantised", folder / "twice",
      {.adapters = {{folder / "adapter", 0.5}, {folder / "adapter", 0.25}}, .to = ModelFormat::mlx});
  EXPECT_EQ(twice.merged_modules, 8u);
  EXPECT_GT(twice.largest_logit_difference, 0);
  EXPECT_LT(twice.largest_logit_difference, 0.05);
}

TEST(MergeErrors, NameWhatIsWrong) {
  const TempFolder folder;
  EXPECT_THROW(fuse_model(folder / "x", folder / "y", {}), ValueError);
  EXPECT_THROW(fuse_model(folder / "x", folder / "y", {.adapters = {{folder / "a"}}}), FileError);
  folder.put("config.json", kLlama);
  const auto model = make_causal_lm(folder / "config.json", Device::cpu(), 3);
  apply_lora(*model, kind(true, LoRAInit::kaiming), {"q_proj"}, 1);
  EXPECT_CONTAINS(error_of<ValueError>([&] { merge_adapter(*model, 0.5); }), "DoRA");
}

}  // namespace
}  // namespace caldera::testing
