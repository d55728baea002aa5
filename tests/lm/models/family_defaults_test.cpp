// What a family's config.json means where it leaves fields out, or has them as null: the defaults are those
// of Hugging Face's configuration classes, which differ by family. And what contradicts itself is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lm/models/registry.h"
#include "lm/nn/attention/rope_frequencies.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

using nlohmann::json;

class FamilyDefaults : public ::testing::Test {
 protected:
  /// Sizes that every family's defaults fit.
  static json minimal(const char* model_type) {
    return {{"model_type", model_type}, {"hidden_size", 64},         {"intermediate_size", 24},
            {"num_hidden_layers", 4},   {"num_attention_heads", 32}, {"vocab_size", 40}};
  }
  static json with(json config, const json& more) {
    config.update(more);
    return config;
  }
  ModelConfig read(const json& config) const {
    std::ofstream(path_) << config.dump();
    return make_text_model(path_, Device::cpu())->config();
  }
  void expect_refused(const json& config, const std::string& field) const {
    try {
      read(config);
      ADD_FAILURE() << "accepted: " << config.dump();
    } catch (const FileError& e) {
      EXPECT_NE(std::string(e.what()).find("field '" + field + "'"), std::string::npos) << e.what();
    }
  }
  static std::vector<bool> sliding(const ModelConfig& config) {
    std::vector<bool> all;
    for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) all.push_back(config.layer(i).sliding);
    return all;
  }

  TempFolder folder_;
  std::filesystem::path path_ = folder_ / "config.json";
};

TEST_F(FamilyDefaults, OfKeyValueHeads) {
  const std::pair<const char*, std::int64_t> expected[] = {
      {"llama", 32},   {"qwen2", 32},      {"qwen3", 32},  {"qwen3_moe", 4}, {"gemma2", 4},
      {"mistral", 8},  {"gemma3_text", 4}, {"smollm3", 4}, {"olmo2", 32},    {"olmo3", 32},
      {"granite", 32}, {"ministral3", 8},  {"gpt_oss", 8}, {"phi3", 32}};
  for (const auto& [type, heads] : expected) {
    EXPECT_EQ(read(minimal(type)).num_key_value_heads, heads) << type;
    EXPECT_EQ(read(with(minimal(type), {{"num_key_value_heads", nullptr}})).num_key_value_heads, 32) << type;
  }
}

TEST_F(FamilyDefaults, OfHeadDim) {
  const std::pair<const char*, std::int64_t> expected[] = {
      {"llama", 2},        {"qwen3", 128}, {"gemma2", 256}, {"gemma3_text", 256},
      {"ministral3", 128}, {"mistral", 2}, {"gpt_oss", 64}};
  for (const auto& [type, width] : expected) {
    EXPECT_EQ(read(minimal(type)).head_dim, width) << type;
    EXPECT_EQ(read(with(minimal(type), {{"head_dim", nullptr}})).head_dim, 2) << type;
  }
}

TEST_F(FamilyDefaults, OfFrequencies) {
  const std::pair<const char*, double> expected[] = {
      {"llama", 1e4}, {"qwen2", 1e4},   {"gemma3_text", 1e6}, {"olmo2", 1e4},
      {"olmo3", 5e5}, {"smollm3", 2e6}, {"gpt_oss", 15e4},    {"modernbert", 16e4}};
  for (const auto& [type, theta] : expected) EXPECT_EQ(read(minimal(type)).rope_theta, theta) << type;

  const ModelConfig ministral = read(minimal("ministral3"));
  EXPECT_EQ(ministral.rope_theta, 1e6);
  EXPECT_EQ(ministral.rope_scaling.type, RopeType::yarn);
  EXPECT_EQ(ministral.rope_scaling.factor, 16);
  EXPECT_EQ(ministral.rope_scaling.llama_4_scaling_beta, 0.1);
  expect_refused(with(minimal("ministral3"), {{"rope_theta", 1e5}}), "rope_theta");
  EXPECT_EQ(read(with(minimal("ministral3"), {{"rope_parameters", {{"rope_type", "default"}}}})).rope_theta,
            1e4);

  const json linear{{"rope_type", "linear"}, {"factor", 2.0}};
  const ModelConfig modern = read(with(minimal("modernbert"), {{"rope_scaling", linear}}));
  EXPECT_EQ(modern.rope_scaling.type, RopeType::linear);
  EXPECT_EQ(modern.local_rope->scaling.type, RopeType::linear) << "of all layers";
  EXPECT_EQ(modern.local_rope->theta, 1e4);
}

TEST_F(FamilyDefaults, ANullWindowIsNoWindow) {
  const json uses{{"use_sliding_window", true}, {"max_window_layers", 2}};
  const json null{{"sliding_window", nullptr}};
  for (const char* type : {"qwen2", "qwen3", "qwen3_moe"}) {
    EXPECT_EQ(read(with(minimal(type), uses)).sliding_window, 4096) << type;
    EXPECT_TRUE(read(with(minimal(type), uses)).layer(3).sliding) << type;
    const ModelConfig without = read(with(with(minimal(type), uses), null));
    EXPECT_EQ(without.sliding_window, std::nullopt) << type;
    EXPECT_EQ(sliding(without), std::vector<bool>(4, false)) << type;
  }
  EXPECT_EQ(sliding(read(minimal("mistral"))), std::vector<bool>(4, true));
  EXPECT_EQ(sliding(read(with(minimal("mistral"), null))), std::vector<bool>(4, false));
  for (const char* type : {"gemma2", "gemma3_text", "olmo3"}) {
    EXPECT_EQ(read(minimal(type)).sliding_window, 4096) << type;
    expect_refused(with(minimal(type), null), "sliding_window");
  }
}

TEST_F(FamilyDefaults, LayersThatAFamilyDoesNotTellApartAreRefused) {
  const json mixed{
      {"layer_types", {"full_attention", "sliding_attention", "full_attention", "full_attention"}},
      {"sliding_window", 8}};
  for (const char* type : {"mistral", "ministral3", "phi3"})
    expect_refused(with(minimal(type), mixed), "layer_types");
  expect_refused(with(with(minimal("qwen3_moe"), mixed), {{"use_sliding_window", true}}), "layer_types");
}

TEST_F(FamilyDefaults, NamesOfExperts) {
  for (const char* type : {"qwen3_moe", "gpt_oss"})
    for (const char* field : {"num_experts", "num_local_experts"}) {
      const json config = with(minimal(type), {{field, 3}, {"num_experts_per_tok", 3}});
      EXPECT_NO_THROW(read(config)) << type << " " << field;
      expect_refused(with(config, {{"num_experts_per_tok", 4}}), "num_experts_per_tok");
    }
}

TEST_F(FamilyDefaults, WhatWouldChangeTheResultIsRefused) {
  for (const char* type : {"bert", "roberta", "xlm-roberta"})
    expect_refused(with(minimal(type), {{"is_decoder", true}}), "is_decoder");
  const json yarn{{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
  expect_refused(with(minimal("phi3"), {{"rope_scaling", yarn}}), "rope_scaling");
  const json growing = with(yarn, {{"llama_4_scaling_beta", 0.1}});
  EXPECT_NO_THROW(read(with(minimal("ministral3"), {{"rope_parameters", growing}})));
  expect_refused(with(minimal("mistral"), {{"rope_parameters", growing}}), "rope_parameters");
  const json other{{"rope_type", "linear"}, {"factor", 2.0}};
  expect_refused(with(minimal("llama"), {{"rope_scaling", yarn}, {"rope_parameters", other}}),
                 "rope_parameters");
  EXPECT_NO_THROW(read(with(minimal("llama"), {{"rope_scaling", yarn}, {"rope_parameters", yarn}})));
}

/// Which of the lengths counts, where a file has several.
TEST_F(FamilyDefaults, OriginalLengths) {
  // Dynamic frequencies know max_position_embeddings alone.
  const ModelConfig dynamic =
      read(with(minimal("llama"),
                {{"head_dim", 4},
                 {"max_position_embeddings", 100},
                 {"rope_scaling",
                  {{"rope_type", "dynamic"}, {"factor", 2.0}, {"original_max_position_embeddings", 50}}}}));
  const auto frequency = [&](std::int64_t length) {
    return rope_frequencies({dynamic.rope_theta, dynamic.rope_scaling}, 4, 100, length).inverse.at(1);
  };
  EXPECT_EQ(frequency(80), frequency(100));
  // theta (2 * 200 / 100 - 1)^(4 / 2), to the power of -1 / 2.
  EXPECT_NEAR(frequency(200), 1 / std::sqrt(1e4 * 9), 1e-12);

  const json factors{{"rope_type", "longrope"}, {"short_factor", {1.0}}, {"long_factor", {2.0}}};
  const json phi =
      with(minimal("phi3"), {{"max_position_embeddings", 400}, {"original_max_position_embeddings", 100}});
  const auto scale = [&](const json& rope) {
    const ModelConfig c = read(with(phi, {{"rope_scaling", rope}}));
    return rope_frequencies({c.rope_theta, c.rope_scaling}, 2, 400, 10).attention_scale;
  };
  EXPECT_NEAR(scale(factors), std::sqrt(1 + std::log(4.0) / std::log(100.0)), 1e-12);
  EXPECT_NEAR(scale(with(factors, {{"factor", 2.0}})), std::sqrt(1 + std::log(2.0) / std::log(100.0)), 1e-12);
  EXPECT_NEAR(scale(with(factors, {{"original_max_position_embeddings", 50}})),
              std::sqrt(1 + std::log(4.0) / std::log(100.0)), 1e-12)
      << "the one outside goes first";
}

TEST_F(FamilyDefaults, TheTextPartTakesTheTokensOfTheWhole) {
  const json text = minimal("gemma3_text");
  const json whole{
      {"model_type", "gemma3"}, {"text_config", text}, {"eos_token_id", {1, 6}}, {"bos_token_id", 2}};
  EXPECT_EQ(read(whole).eos_token_ids, (std::vector<std::int64_t>{1, 6}));
  EXPECT_EQ(read(whole).bos_token_id, 2);
  json own = whole;
  own["text_config"]["eos_token_id"] = 3;
  EXPECT_EQ(read(own).eos_token_ids, std::vector<std::int64_t>{3});
}

}  // namespace
}  // namespace caldera::testing
