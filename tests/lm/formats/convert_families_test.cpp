// Every family through every format that it can be written in: what the converted model computes, what its
// configuration says for readers that do not know the family's defaults, and what is refused.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "lm/formats/convert/convert.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/lm/formats/random_folder.h"

namespace caldera::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kGoldenModels = "tests/golden/models";

struct Target {
  ModelFormat format;
  const char* type;
  double error;  ///< of its rounding
};

/// The field for which GGUF refuses a golden model; empty for those that it takes.
std::string refused_field(const std::string& name) {
  const std::map<std::string, const char*> fields{{"bert", "model_type"},
                                                  {"xlm-roberta", "model_type"},
                                                  {"modernbert", "model_type"},
                                                  {"gpt2", "model_type"},
                                                  {"gpt-oss", "model_type"},
                                                  {"qwen3-moe", "model_type"},
                                                  {"ministral3", "model_type"},
                                                  {"olmo3", "model_type"},
                                                  {"embedding-gemma", "use_bidirectional_attention"},
                                                  {"llama-dynamic", "rope_scaling"},
                                                  {"llama-yarn", "rope_scaling"},
                                                  {"gemma2", "query_pre_attn_scalar"},
                                                  {"gemma3", "query_pre_attn_scalar"},
                                                  {"gemma3-new-names", "query_pre_attn_scalar"},
                                                  {"qwen3-sliding", "use_sliding_window"},
                                                  {"smollm3", "use_sliding_window"}};
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : found->second;
}

class ConvertFamilies : public ::testing::TestWithParam<std::string> {};

TEST_P(ConvertFamilies, SayWhatTheySaidBefore) {
  const TempFolder folder;
  const fs::path source = kGoldenModels / GetParam();
  const Doubles before = said_by(source);
  for (const auto& [format, type, error] :
       {Target{ModelFormat::safetensors, "f32", 1e-6}, Target{ModelFormat::safetensors, "bf16", 0.05},
        Target{ModelFormat::mlx, "affine8", 0.05}, Target{ModelFormat::mlx, "affine4", 0.5},
        Target{ModelFormat::gguf, "f32", 1e-5}, Target{ModelFormat::gguf, "q8_0", 0.05},
        Target{ModelFormat::gguf, "q4_0", 0.5}, Target{ModelFormat::gguf, "q4_k", 0.5}}) {
    SCOPED_TRACE(type);
    const fs::path out = folder / (std::string(type) + (format == ModelFormat::gguf ? ".gguf" : ""));
    const auto convert = [&] { convert_model(source, out, {.to = format, .type = type}); };
    if (const std::string field = refused_field(GetParam()); format == ModelFormat::gguf && !field.empty()) {
      EXPECT_CONTAINS(error_of<FileError>(convert), "field '" + field + "'");
      continue;
    }
    convert();
    const double found = relative_error(said_by(out), before);
    RecordProperty(type, std::to_string(found));
    EXPECT_LE(found, error);
  }
}

std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kGoldenModels))
    if (fs::exists(entry.path() / "config.json")) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

INSTANTIATE_TEST_SUITE_P(, ConvertFamilies, ::testing::ValuesIn(golden_models()), [](const auto& model) {
  std::string name = model.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

/// What transformers' classes have by default is not what other readers have.
TEST(ConvertedDefaults, AreWritten) {
  const std::map<std::string, std::vector<std::string>> of_families{
      {"qwen2", {"num_key_value_heads", "rope_theta", "use_sliding_window", "tie_word_embeddings"}},
      {"qwen3", {"head_dim", "attention_bias"}},
      {"gemma2", {"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"}},
      {"granite", {"embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"}},
      {"mistral", {"sliding_window", "num_key_value_heads"}},
      {"ministral3", {"rope_scaling"}},
      {"gpt_oss", {"rope_scaling", "swiglu_limit"}},
      {"smollm3", {"no_rope_layer_interval", "rope_theta"}},
      {"phi3", {"original_max_position_embeddings"}},
      {"gemma3_text", {"rope_local_base_freq", "hidden_activation"}},
      {"modernbert", {"local_attention", "global_rope_theta"}}};
  for (const FamilyFacts& family : model_families()) {
    SCOPED_TRACE(family.model_type + " " + family.architectures.front());
    const TempFolder folder;
    json config = smallest_config(family.model_type);
    config["architectures"] = {family.architectures.front()};
    make_random_folder(folder / "model", config);
    const Doubles before = said_by(folder / "model");

    convert_model(folder / "model", folder / "whole", {});
    const json whole = json::parse(slurp(folder / "whole/config.json"));
    if (const auto wanted = of_families.find(family.model_type); wanted != of_families.end()) {
      for (const std::string& field : wanted->second) EXPECT_TRUE(whole.contains(field)) << field;
    }
    EXPECT_TRUE(make_text_model(folder / "whole", Device::cpu())->config() ==
                make_text_model(folder / "model", Device::cpu())->config())
        << whole.dump();
    EXPECT_LE(relative_error(said_by(folder / "whole"), before), 1e-6) << whole.dump();

    // The same of a model that is saved.
    load_text_model(folder / "model", Device::cpu())->save(folder / "saved");
    EXPECT_TRUE(make_text_model(folder / "saved", Device::cpu())->config() ==
                make_text_model(folder / "model", Device::cpu())->config())
        << slurp(folder / "saved/config.json");
    EXPECT_LE(relative_error(said_by(folder / "saved"), before), 1e-6);

    if (family.encoder || family.model_type == "gpt2" || family.model_type == "gpt_oss" ||
        family.model_type == "qwen3_moe" || family.model_type == "ministral3" || family.model_type == "olmo3")
      continue;
    convert_model(folder / "model", folder / "m.gguf", {.to = ModelFormat::gguf, .type = "f32"});
    EXPECT_LE(relative_error(said_by(folder / "m.gguf"), before), 1e-5);
    const auto read = make_text_model(folder / "m.gguf", Device::cpu())->config();
    const auto written = make_text_model(folder / "model", Device::cpu())->config();
    EXPECT_EQ(read.sliding_window, written.sliding_window);
    EXPECT_EQ(read.max_positions(), written.max_positions());
  }
}

/// Null is a value: no window, no cap.
TEST(ConvertedDefaults, NullsStayNull) {
  const TempFolder folder;
  json config = smallest_config("mistral");
  config["sliding_window"] = nullptr;
  make_random_folder(folder / "model", config);
  load_text_model(folder / "model", Device::cpu())->save(folder / "saved");
  EXPECT_EQ(make_text_model(folder / "saved", Device::cpu())->config().sliding_window, std::nullopt);
  convert_model(folder / "model", folder / "m.gguf", {.to = ModelFormat::gguf, .type = "f32"});
  EXPECT_EQ(make_text_model(folder / "m.gguf", Device::cpu())->config().sliding_window, std::nullopt);

  config = smallest_config("gemma2");
  config["final_logit_softcapping"] = nullptr;
  make_random_folder(folder / "gemma", config);
  load_text_model(folder / "gemma", Device::cpu())->save(folder / "again");
  EXPECT_LE(relative_error(said_by(folder / "again"), said_by(folder / "gemma")), 1e-6);
}

/// What GGUF has no key for is refused by the name of the field that says it.
TEST(ConvertedToGguf, NamesWhatCannotBeSaid) {
  const json yarn{{"rope_type", "yarn"}, {"factor", 2.0}, {"original_max_position_embeddings", 32}};
  const auto with = [](json object, const json& more) {
    object.update(more);
    return object;
  };
  struct Case {
    const char* type;
    json more;
    std::string field;
  };
  const json sliding{"full_attention", "sliding_attention", "full_attention", "full_attention"};
  const std::vector<Case> cases{
      {"llama", {{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}}, "rope_scaling"},
      {"llama", {{"rope_scaling", with(yarn, {{"truncate", false}})}}, "rope_scaling"},
      {"llama", {{"rope_scaling", with(yarn, {{"attention_factor", 1.5}})}}, "rope_scaling"},
      {"llama",
       {{"rope_parameters", with(yarn, {{"mscale", 1.0}, {"mscale_all_dim", 0.5}})}},
       "rope_parameters"},
      {"llama", {{"eos_token_id", {1, 2, 3, 4}}}, "eos_token_id"},
      {"qwen3", {{"attention_bias", true}}, "attention_bias"},
      {"smollm3", {{"attention_bias", true}}, "attention_bias"},
      {"smollm3", {{"mlp_bias", true}}, "mlp_bias"},
      {"olmo2", {{"attention_bias", true}}, "attention_bias"},
      {"gemma2", {{"attention_bias", true}}, "attention_bias"},
      {"gemma2", {{"attn_logit_softcapping", nullptr}}, "attn_logit_softcapping"},
      {"gemma2", {{"final_logit_softcapping", nullptr}}, "final_logit_softcapping"},
      {"gemma2", {{"hidden_activation", "gelu"}}, "hidden_activation"},
      {"gemma2", {{"query_pre_attn_scalar", 144}}, "query_pre_attn_scalar"},
      {"gemma2", {{"layer_types", sliding}}, "layer_types"},
      {"gemma3_text", {{"_sliding_window_pattern", 3}}, "sliding_window_pattern"},
      {"gemma3_text", {{"attn_logit_softcapping", 20.0}}, "attn_logit_softcapping"},
      {"gemma3_text",
       {{"rope_parameters",
         {{"full_attention", {{"rope_type", "default"}, {"rope_theta", 1e6}}},
          {"sliding_attention", {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 1e4}}}}}},
       "rope_parameters"},
      {"qwen2", {{"use_sliding_window", true}, {"max_window_layers", 1}}, "use_sliding_window"},
      {"qwen3", {{"use_sliding_window", true}, {"layer_types", sliding}}, "use_sliding_window"},
      {"smollm3", {{"use_sliding_window", true}, {"sliding_window", 4}}, "use_sliding_window"},
      {"smollm3", {{"no_rope_layer_interval", 2}}, "no_rope_layer_interval"},
      {"smollm3", {{"no_rope_layers", {1, 1, 0, 1}}}, "no_rope_layers"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.type + c.more.dump());
    const TempFolder folder;
    make_random_folder(folder / "model", with(smallest_config(c.type), c.more));
    const std::string message = error_of<FileError>([&] {
      convert_model(folder / "model", folder / "m.gguf", {.to = ModelFormat::gguf, .type = "f32"});
    });
    EXPECT_CONTAINS(message, "field '" + c.field + "'");
    EXPECT_FALSE(fs::exists(folder / "m.gguf"));
  }
}

/// And what it has keys for arrives.
TEST(ConvertedToGguf, SaysTheRest) {
  const json yarn{{"rope_type", "yarn"}, {"factor", 2.0}};
  const std::vector<std::pair<const char*, json>> cases{
      {"llama", {{"attention_bias", true}, {"mlp_bias", true}}},
      {"granite", {{"attention_bias", true}, {"attention_multiplier", 0.3}, {"logits_scaling", 2.0}}},
      {"llama", {{"rope_scaling", yarn}, {"max_position_embeddings", 64}}},
      {"llama", {{"rope_scaling", {{"rope_type", "yarn"}, {"original_max_position_embeddings", 16}}}}},
      {"llama",
       {{"rope_scaling",
         {{"rope_type", "linear"}, {"factor", 4.0}, {"original_max_position_embeddings", 16}}},
        {"max_position_embeddings", 32}}},
      {"phi3",
       {{"num_attention_heads", 4},
        {"rope_parameters",
         {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}, {"rope_theta", 5000.0}}}}},
      {"qwen3", {{"num_key_value_heads", 4}, {"sliding_window", 4}}},
      {"gemma3_text", {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}, {"sliding_window", 4}}},
      {"mistral", {{"sliding_window", 3}}}};
  for (const auto& [type, more] : cases) {
    SCOPED_TRACE(type + more.dump());
    const TempFolder folder;
    json config = smallest_config(type);
    config.update(more);
    make_random_folder(folder / "model", config);
    convert_model(folder / "model", folder / "m.gguf", {.to = ModelFormat::gguf, .type = "f32"});
    EXPECT_LE(relative_error(said_by(folder / "m.gguf"), said_by(folder / "model")), 1e-5);
    EXPECT_EQ(make_text_model(folder / "m.gguf", Device::cpu())->config().max_positions(),
              make_text_model(folder / "model", Device::cpu())->config().max_positions());
  }
}

/// A scale that its type does not hold is no infinity in a file.
TEST(ConvertedWeights, ThatAreTooLargeAreNamed) {
  const TempFolder folder;
  json config = smallest_config("llama");
  config["hidden_size"] = 256;  // whole blocks of Q4_K
  make_random_folder(folder / "model", config);
  const auto model = load_causal_lm(folder / "model", Device::cpu());
  for (const double magnitude : {1e8, 3e38}) {
    for (const Parameter& p : model->parameters())
      if (p.name == "model.layers.1.self_attn.q_proj.weight")
        *p.tensor = make_tensor(random_doubles(p.tensor->numel(), 4, -magnitude, magnitude),
                                p.tensor->shape(), DType::f32, Device::cpu());
    model->save(folder / "large");
    for (const auto& [format, type] :
         {std::pair{ModelFormat::gguf, "q8_0"}, std::pair{ModelFormat::gguf, "q4_0"},
          std::pair{ModelFormat::gguf, "q4_k"}, std::pair{ModelFormat::gguf, "f16"},
          std::pair{ModelFormat::safetensors, "f16"}, std::pair{ModelFormat::mlx, "affine4"}}) {
      SCOPED_TRACE(type);
      if (format == ModelFormat::mlx && magnitude < 1e38) continue;  // its scales are f32 here
      const auto convert = [&] {
        convert_model(folder / "large", folder / "x", {.to = format, .type = type});
      };
      EXPECT_CONTAINS(error_of<ValueError>(convert), "model.layers.1.self_attn.q_proj.weight");
      EXPECT_FALSE(fs::exists(folder / "x"));
    }
  }
}

/// Fields that would change the result are not lost on the way.
TEST(ConvertedConfigurations, AreThoseThatRun) {
  const TempFolder folder;
  json config = smallest_config("llama");
  make_random_folder(folder / "model", config);
  config["clip_qkv"] = 3.0;
  std::ofstream(folder / "model/config.json") << config.dump();
  for (const ModelFormat format : {ModelFormat::safetensors, ModelFormat::gguf, ModelFormat::mlx})
    EXPECT_CONTAINS(
        error_of<FileError>([&] { convert_model(folder / "model", folder / "x", {.to = format}); }),
        "'clip_qkv'");
}

}  // namespace
}  // namespace caldera::testing
