#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "lm/adapters/adapter_config.h"
#include "lm/models/llama.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/test_data.h"

namespace caldera {
namespace {

using nlohmann::json;
using testing::error_of;
using testing::slurp;
using testing::TempFolder;

json minimal() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_size", 64},
          {"intermediate_size", 172},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 8},
          {"vocab_size", 512}};
}

/// Parses the minimal configuration with one field changed; returns the error.
std::string with(const std::string& field, const json& value) {
  json config = minimal();
  config[field] = value;
  auto message = error_of<FileError>([&] { LlamaConfig::from_json(config.dump(), "dir/config.json"); });
  EXPECT_CONTAINS(message, "dir/config.json: ");
  return message;
}

TEST(ModelConfig, DefaultsOfLlama) {
  const auto config = LlamaConfig::from_json(minimal().dump());
  EXPECT_EQ(config.num_key_value_heads, 8);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.max_position_embeddings, 2048);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.rope_theta, 10000.0);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_FALSE(config.attention_bias);
  EXPECT_FALSE(config.mlp_bias);
  EXPECT_EQ(config.initializer_range, 0.02);
  EXPECT_EQ(config.bos_token_id, std::nullopt);
  EXPECT_TRUE(config.eos_token_ids.empty());
}

TEST(ModelConfig, ReadsEveryField) {
  json j = minimal();
  j.update({{"num_key_value_heads", 4},
            {"head_dim", 16},
            {"max_position_embeddings", 77},
            {"rms_norm_eps", 1e-5},
            {"rope_theta", 5e5},
            {"tie_word_embeddings", true},
            {"attention_bias", true},
            {"mlp_bias", true},
            {"bos_token_id", 1},
            {"eos_token_id", {2, 3}},
            {"initializer_range", 0.1},
            {"rope_scaling", nullptr},
            {"hidden_act", "silu"},
            {"torch_dtype", "bfloat16"},
            {"use_cache", true}});
  const auto config = LlamaConfig::from_json(j.dump());
  EXPECT_EQ(config.hidden_size, 64);
  EXPECT_EQ(config.intermediate_size, 172);
  EXPECT_EQ(config.num_hidden_layers, 2);
  EXPECT_EQ(config.num_attention_heads, 8);
  EXPECT_EQ(config.num_key_value_heads, 4);
  EXPECT_EQ(config.head_dim, 16) << "may differ from hidden_size / heads";
  EXPECT_EQ(config.vocab_size, 512);
  EXPECT_EQ(config.max_position_embeddings, 77);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.rope_theta, 5e5);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_TRUE(config.attention_bias);
  EXPECT_TRUE(config.mlp_bias);
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(config.eos_token_ids, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(config.initializer_range, 0.1);
  EXPECT_EQ(config.torch_dtype, "bfloat16");
  EXPECT_EQ(LlamaConfig::from_json(config.to_json()), config);

  LlamaConfig other = config;
  other.eos_token_ids = {2};
  EXPECT_EQ(json::parse(other.to_json()).at("eos_token_id"), 2);
  EXPECT_EQ(LlamaConfig::from_json(other.to_json()), other);
  other.eos_token_ids.clear();
  other.bos_token_id.reset();
  EXPECT_EQ(LlamaConfig::from_json(other.to_json()), other);
}

TEST(ModelConfig, RopeObjects) {
  json j = minimal();
  j["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 250000.0}};
  EXPECT_EQ(LlamaConfig::from_json(j.dump()).rope_theta, 250000.0);
  EXPECT_EQ(LlamaConfig::from_json([] {
              json k = minimal();
              k["rope_scaling"] = {{"type", "default"}};
              return k.dump();
            }())
                .rope_theta,
            10000.0);
  EXPECT_CONTAINS(with("rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}), "'llama3'");
  EXPECT_CONTAINS(with("rope_scaling", {{"type", "linear"}}), "'linear'");
  EXPECT_CONTAINS(with("rope_scaling", {{"factor", 2.0}}), "factor");
  EXPECT_CONTAINS(with("rope_scaling", "x"), "rope_scaling");
  EXPECT_CONTAINS(with("rope_parameters", {{"rope_type", "yarn"}}), "'yarn'");
  EXPECT_CONTAINS(with("partial_rotary_factor", 0.5), "partial_rotary_factor");
  EXPECT_CONTAINS(with("rope_parameters", {{"partial_rotary_factor", 0.5}}), "partial_rotary_factor");
  // Of each type of layer.
  for (const char* type : {"yarn", "default"}) {
    const auto message = with("rope_parameters", {{"full_attention", {{"rope_type", type}}}});
    EXPECT_CONTAINS(message, "field 'rope_parameters'");
    EXPECT_CONTAINS(message, "'full_attention'");
  }
  EXPECT_CONTAINS(with("rope_scaling", {{"a\nb", {{"factor", 2.0}}}}), "'a\\x0ab'");
}

TEST(ModelConfig, ReadsARealFile) {
  CALDERA_REQUIRE_DATA(path, "stories260K/config.json");
  const auto config = LlamaConfig::from_file(path);
  EXPECT_EQ(config.num_key_value_heads, 4);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.eos_token_ids, std::vector<std::int64_t>{2});
  EXPECT_EQ(LlamaConfig::from_json(config.to_json()), config);
}

TEST(ModelConfig, MissingFieldsAreNamed) {
  for (const char* field :
       {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}) {
    json j = minimal();
    j.erase(field);
    const auto message = error_of<FileError>([&] { LlamaConfig::from_json(j.dump(), "c.json"); });
    EXPECT_EQ(message, std::string("c.json: field '") + field + "' is missing");
    EXPECT_CONTAINS(with(field, nullptr), "is null");
  }
  EXPECT_CONTAINS(error_of<FileError>([] { LlamaConfig::from_json("{}"); }), "architectures");
  const TempFolder folder;
  EXPECT_CONTAINS(error_of<FileError>([&] { LlamaConfig::from_file(folder / "gone.json"); }), "gone.json");
  EXPECT_CONTAINS(error_of<FileError>([&] { LlamaConfig::from_file(folder.put("bad.json", "{\n,")); }),
                  "bad.json: not valid JSON (line 2");
  EXPECT_CONTAINS(error_of<FileError>([&] { LlamaConfig::from_json("[1]", "w"); }), "w: ");
}

TEST(ModelConfig, UnknownArchitecturesAreNamed) {
  const auto message = with("architectures", {"GPT2LMHeadModel"});
  EXPECT_CONTAINS(message, "GPT2LMHeadModel");
  EXPECT_CONTAINS(message, "LlamaForCausalLM");
  EXPECT_CONTAINS(with("model_type", "mistral"), "'mistral'");
  EXPECT_CONTAINS(with("architectures", json::array()), "architectures");
  EXPECT_CONTAINS(with("architectures", "LlamaForCausalLM"), "list");
  json j = minimal();
  j.erase("architectures");
  EXPECT_NO_THROW(LlamaConfig::from_json(j.dump()));
  j.erase("model_type");
  EXPECT_THROW(LlamaConfig::from_json(j.dump()), FileError);
}

TEST(ModelConfig, ValuesOutOfDomainAreNamed) {
  for (const char* field : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                            "num_key_value_heads", "head_dim", "vocab_size", "max_position_embeddings"}) {
    EXPECT_CONTAINS(with(field, 0), field);
    EXPECT_CONTAINS(with(field, -8), field);
    EXPECT_CONTAINS(with(field, 1LL << 40), field);
    EXPECT_CONTAINS(with(field, std::numeric_limits<std::uint64_t>::max()), field);
    EXPECT_CONTAINS(with(field, "64"), field);
    EXPECT_CONTAINS(with(field, 64.0), field);
    EXPECT_CONTAINS(with(field, json::array({64})), field);
  }
  EXPECT_CONTAINS(with("num_key_value_heads", 3), "does not divide");
  EXPECT_CONTAINS(with("num_key_value_heads", 16), "does not divide");
  EXPECT_CONTAINS(with("num_attention_heads", 7), "no multiple");
  EXPECT_CONTAINS(with("head_dim", 7), "even");
  EXPECT_CONTAINS(with("hidden_act", "gelu"), "'gelu'");
  EXPECT_CONTAINS(with("rms_norm_eps", 0), "rms_norm_eps");
  EXPECT_CONTAINS(with("rms_norm_eps", "1e-5"), "rms_norm_eps");
  EXPECT_CONTAINS(with("rope_theta", -1.0), "rope_theta");
  EXPECT_CONTAINS(with("initializer_range", -0.1), "initializer_range");
  EXPECT_CONTAINS(with("tie_word_embeddings", 1), "tie_word_embeddings");
  EXPECT_CONTAINS(with("bos_token_id", 512), "bos_token_id");
  EXPECT_CONTAINS(with("eos_token_id", {2, -1}), "eos_token_id");
  EXPECT_CONTAINS(with("eos_token_id", {"x"}), "eos_token_id");
  EXPECT_CONTAINS(with("quantization_config", {{"bits", 4}}), "quantization_config");

  LlamaConfig config = LlamaConfig::from_json(minimal().dump());
  config.hidden_size = -1;
  EXPECT_CONTAINS(error_of<ValueError>([&] { config.validate(); }), "hidden_size");
}

// ---- adapter_config.json

json minimal_adapter() {
  return {{"peft_type", "LORA"}, {"r", 4}, {"lora_alpha", 8}, {"target_modules", {"q_proj", "v_proj"}}};
}

std::string adapter_with(const std::string& field, const json& value) {
  json config = minimal_adapter();
  config[field] = value;
  auto message = error_of<FileError>([&] { AdapterConfig::from_json(config.dump(), "adapter_config.json"); });
  EXPECT_CONTAINS(message, "adapter_config.json: ");
  EXPECT_CONTAINS(message, field);
  return message;
}

TEST(AdapterConfig, RoundTripsInPeftsForm) {
  const TempFolder folder;
  AdapterConfig config;
  config.options.rank = 6;
  config.options.alpha = 12;
  config.options.dropout = 0.25;
  config.target_modules = {"q_proj", "down_proj"};
  config.base_model_name_or_path = "some/model";
  config.write(folder / "adapter_config.json");
  EXPECT_EQ(AdapterConfig::from_file(folder / "adapter_config.json"), config);

  const auto j = json::parse(slurp(folder / "adapter_config.json"));
  EXPECT_EQ(j.at("peft_type"), "LORA");
  EXPECT_EQ(j.at("task_type"), "CAUSAL_LM");
  EXPECT_EQ(j.at("r"), 6);
  EXPECT_TRUE(j.at("lora_alpha").is_number_integer());
  EXPECT_EQ(j.at("lora_alpha"), 12);
  EXPECT_EQ(j.at("lora_dropout"), 0.25);
  EXPECT_EQ(j.at("target_modules"), json({"q_proj", "down_proj"}));
  EXPECT_EQ(j.at("bias"), "none");
  EXPECT_EQ(j.at("fan_in_fan_out"), false);
  EXPECT_EQ(j.at("inference_mode"), true);
  EXPECT_EQ(j.at("base_model_name_or_path"), "some/model");
  EXPECT_TRUE(j.at("modules_to_save").is_null());

  config.options.alpha = 0.5;
  config.target_modules = {"all-linear"};
  EXPECT_EQ(json::parse(config.to_json()).at("target_modules"), "all-linear");
  EXPECT_EQ(AdapterConfig::from_json(config.to_json()), config);
}

TEST(AdapterConfig, HasTheFieldsOfAPeftFile) {
  CALDERA_REQUIRE_DATA(path, "peft_adapter/adapter_config.json");
  const auto config = AdapterConfig::from_file(path);
  EXPECT_EQ(config.options.rank, 8);
  EXPECT_EQ(config.options.alpha, 8.0);
  EXPECT_EQ(config.target_modules, std::vector<std::string>{"c_attn"});
  EXPECT_EQ(config.base_model_name_or_path, "gpt2");
  EXPECT_TRUE(config.fan_in_fan_out);
  EXPECT_EQ(json::parse(config.to_json()), json::parse(slurp(path))) << "what PEFT wrote, field by field";
}

TEST(AdapterConfig, RefusesWhatWouldChangeTheResult) {
  adapter_with("lora_bias", true);
  adapter_with("trainable_token_indices", {1});
  adapter_with("bias", "some");
  adapter_with("init_lora_weights", "pissa");
  adapter_with("peft_type", "IA3");
  adapter_with("alora_invocation_tokens", {1, 2});
  json j = minimal_adapter();
  j.update({{"use_dora", false},
            {"modules_to_save", nullptr},
            {"rank_pattern", json::object()},
            {"init_lora_weights", "gaussian"}});
  EXPECT_NO_THROW(AdapterConfig::from_json(j.dump()));
}

TEST(AdapterConfig, WritesWhatItReadsOfEveryKind) {
  for (const json& change : std::vector<json>{{{"use_dora", true}},
                                              {{"use_rslora", true}},
                                              {{"init_lora_weights", "gaussian"}},
                                              {{"bias", "lora_only"}},
                                              {{"layers_pattern", "layers"}, {"layers_to_transform", {0}}},
                                              {{"modules_to_save", {"embed_tokens", "lm_head"}}},
                                              {{"modules_to_save", {"norm", "score"}}, {"bias", "all"}},
                                              {{"rank_pattern", {{"layers.0.*q_proj", 2}, {"v_proj", 16}}}},
                                              {{"alpha_pattern", {{"q_proj", 2}, {"v_proj", 0.5}}}},
                                              {{"layers_to_transform", {0, 3}}},
                                              {{"exclude_modules", {"k_proj"}}},
                                              {{"exclude_modules", ".*layers\\.1\\..*"}},
                                              {{"target_modules", ".*_proj"}}}) {
    json given = minimal_adapter();
    given.update(change);
    const AdapterConfig config = AdapterConfig::from_json(given.dump());
    const std::string text = config.to_json();
    for (const auto& [field, value] : change.items()) EXPECT_EQ(json::parse(text).at(field), value);
    EXPECT_EQ(AdapterConfig::from_json(text).to_json(), text);
    EXPECT_EQ(AdapterConfig::from_json(text), config);
  }
}

TEST(AdapterConfig, RefusesBadValues) {
  adapter_with("rank_pattern", {{"q_proj", 0}});
  adapter_with("rank_pattern", {{"q_proj", 1.5}});
  adapter_with("rank_pattern", {{"q_proj", "8"}});
  adapter_with("rank_pattern", {1});
  adapter_with("layers_to_transform", {"0"});
  for (const char* field : {"peft_type", "r", "lora_alpha", "target_modules"}) adapter_with(field, nullptr);
  adapter_with("r", 0);
  adapter_with("r", 1LL << 40);
  adapter_with("r", "8");
  adapter_with("lora_alpha", 0);
  adapter_with("lora_alpha", "x");
  adapter_with("lora_dropout", 1.0);
  adapter_with("lora_dropout", -0.1);
  adapter_with("target_modules", json::array());
  adapter_with("target_modules", {1});
  adapter_with("target_modules", {""});
  AdapterConfig config;
  EXPECT_CONTAINS(error_of<ValueError>([&] { (void)config.to_json(); }), "target_modules");
  config.target_modules = {"\xFF"};
  EXPECT_CONTAINS(error_of<ValueError>([&] { (void)config.to_json(); }), "UTF-8");
}

}  // namespace
}  // namespace caldera
