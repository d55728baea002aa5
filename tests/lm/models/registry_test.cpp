// The registry of model families: which one a folder holds, and what is said of one that is not known.
#include "lm/models/registry.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lm/adapters/lora.h"
#include "lm/formats/safetensors/safetensors.h"
#include "lm/models/llama.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class RegistryTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(dir_); }

  fs::path put(const json& config) const {
    const fs::path path = dir_ / "config.json";
    std::ofstream(path) << config.dump();
    return path;
  }
  std::string refused(const json& config) const {
    try {
      make_causal_lm(put(config), Device::cpu());
      ADD_FAILURE() << "accepted: " << config.dump();
    } catch (const FileError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("config.json: "), std::string::npos) << message;
      return message;
    }
    return {};
  }

  TempFolder folder_;
  const fs::path dir_ = folder_ / "files";
};

json minimal(const char* architecture, const char* model_type) {
  return {{"architectures", {architecture}}, {"model_type", model_type}, {"hidden_size", 16},
          {"intermediate_size", 24},         {"num_hidden_layers", 2},   {"num_attention_heads", 4},
          {"num_key_value_heads", 2},        {"vocab_size", 40}};
}

/// A small model of a family that is known by its model_type alone.
json minimal(const std::string& model_type) {
  json config = minimal("", model_type.c_str());
  config.erase("architectures");
  if (model_type == "gpt2") config.erase("num_key_value_heads");  // it has as many as heads
  return config;
}

json with(json config, const char* field, const json& value) {
  config[field] = value;
  return config;
}

std::vector<std::string> biases_of(CausalLM& model) {
  std::vector<std::string> names;
  for (const Parameter& p : model.parameters())
    if (p.name.ends_with(".bias") && p.name.find(".layers.1.") != std::string::npos)
      names.push_back(p.name.substr(std::string("model.layers.1.").size()));
  return names;
}

TEST_F(RegistryTest, TheConfigurationSaysWhichFamily) {
  const auto llama = make_causal_lm(put(minimal("LlamaForCausalLM", "llama")), Device::cpu());
  EXPECT_NE(dynamic_cast<Llama*>(llama.get()), nullptr);
  EXPECT_TRUE(biases_of(*llama).empty());
  EXPECT_EQ(llama->config().max_position_embeddings, 2048);
  const auto qwen = make_causal_lm(put(minimal("Qwen2ForCausalLM", "qwen2")), Device::cpu());
  EXPECT_EQ(biases_of(*qwen), (std::vector<std::string>{"self_attn.q_proj.bias", "self_attn.k_proj.bias",
                                                        "self_attn.v_proj.bias"}));
  EXPECT_EQ(qwen->config().max_position_embeddings, 32768);
  EXPECT_EQ(lora_target_modules(*qwen), lora_target_modules(*llama));
}

TEST_F(RegistryTest, EitherNameOfAFamilySelectsIt) {
  ASSERT_FALSE(model_types().empty());
  for (const std::string& type : model_types()) {
    const auto by_type = make_causal_lm(put(minimal(type)), Device::cpu());
    EXPECT_EQ(by_type->config().model_type, type);
    json config = with(minimal(type), "architectures", {by_type->config().architecture});
    EXPECT_EQ(make_causal_lm(put(config), Device::cpu())->config(), by_type->config());
    config.erase("model_type");
    EXPECT_EQ(make_causal_lm(put(config), Device::cpu())->config(), by_type->config());
  }
}

TEST_F(RegistryTest, AnUnknownFamilyIsAnErrorThatNamesTheKnownOnes) {
  for (const json& config : {minimal("MambaForCausalLM", "mamba"), minimal("LlamaForCausalLM", "mamba"),
                             minimal("MambaForCausalLM", "llama"), minimal("LlamaForCausalLM", "qwen2")}) {
    const std::string message = refused(config);
    EXPECT_NE(message.find("LlamaForCausalLM (model_type \"llama\")"), std::string::npos) << message;
    for (const std::string& type : model_types())
      EXPECT_NE(message.find("(model_type \"" + type + "\")"), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_NE(refused(minimal("MambaForCausalLM", "mamba")).find("'MambaForCausalLM'"), std::string::npos);
  EXPECT_THROW(make_causal_lm(dir_ / "absent.json", Device::cpu()), FileError);
  EXPECT_THROW(load_causal_lm(dir_ / "absent", Device::cpu()), FileError);
}

TEST_F(RegistryTest, WhatAFamilyDoesNotComputeIsRefusedByName) {
  const json config = minimal("Qwen2ForCausalLM", "qwen2");
  const auto names = [&](const char* field, const json& value) {
    EXPECT_NE(refused(with(config, field, value)).find(field), std::string::npos);
  };
  names("use_sliding_window", "yes");
  names("layer_types", {"full_attention", "sliding_attention"});
  names("layer_types", {"full_attention"});
  names("layer_types", {"full_attention", "full_attention", "full_attention"});
  names("layer_types", json::array());
  names("hidden_act", "gelu");
  names("rope_scaling", {{"rope_type", "yarn"}});
  names("rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}, {"squeeze", 2}});
  names("rope_scaling", {{"rope_type", "xpos"}, {"factor", 4.0}});
  names("rope_scaling", {{"rope_type", "linear"}, {"factor", 0.5}});
  names("rope_scaling", {{"rope_type", "longrope"}, {"short_factor", {1, 1}}});
  names("partial_rotary_factor", 0.5);
  names("attention_multiplier", 0.3);
  names("num_key_value_heads", 3);
  EXPECT_NO_THROW(
      make_causal_lm(put(with(config, "layer_types", {"full_attention", "full_attention"})), Device::cpu()));
}

TEST_F(RegistryTest, AFieldThatIsNotKnownIsRefusedUnlessItSwitchesNothingOn) {
  const json config = minimal("LlamaForCausalLM", "llama");
  for (const auto& [field, value] : {std::pair<const char*, json>{"new_feature", true},
                                     {"new_scale", 0.5},
                                     {"new_list", {1}},
                                     {"new_object", {{"a", 0}}},
                                     {"new_name", "x"},
                                     {"sliding_window", 128},
                                     {"layer_types", {"full_attention", "full_attention"}}})
    EXPECT_NE(refused(with(config, field, value)).find(std::string("field '") + field + "'"),
              std::string::npos);
  for (const json& off : {json(), json(false), json(0), json(""), json::array(), json::object()})
    EXPECT_NO_THROW(make_causal_lm(put(with(config, "new_feature", off)), Device::cpu()));
  for (const char* harmless : {"transformers_version", "_name_or_path", "unsloth_version"})
    EXPECT_NO_THROW(make_causal_lm(put(with(config, harmless, "x")), Device::cpu()));
}

TEST_F(RegistryTest, TheTextPartOfALargerModelIsReadAsAModelOfItsOwn) {
  json text = minimal("gemma3_text");
  const auto part = make_causal_lm(put(text), Device::cpu(), 3);
  part->materialize();
  // Its weights, and others, as a larger model names them.
  std::vector<std::vector<float>> values;
  std::vector<TensorToWrite> tensors;
  for (const Parameter& p : part->parameters()) values.push_back(p.tensor->to_vector<float>());
  for (std::size_t i = 0; const Parameter& p : part->parameters()) {
    tensors.push_back(
        {"language_model." + p.name, DType::f32, p.tensor->shape(), std::as_bytes(std::span(values[i]))});
    ++i;
  }
  tensors.push_back(
      {"vision_tower.weight", DType::f32, Shape{1}, std::as_bytes(std::span(values[0]).first(1))});
  put({{"architectures", {"Gemma3ForConditionalGeneration"}},
       {"model_type", "gemma3"},
       {"text_config", text},
       {"vision_config", {{"hidden_size", 8}}}});
  write_safetensors(dir_ / "model.safetensors", tensors);
  const auto loaded = load_causal_lm(dir_, Device::cpu());
  const std::vector<std::int32_t> ids{1, 7, 39, 2};
  EXPECT_EQ(loaded->forward(loaded->make_ids(ids)).to_vector<float>(),
            part->forward(part->make_ids(ids)).to_vector<float>());
  // It is saved as the text model that it is.
  loaded->save(dir_ / "saved");
  EXPECT_EQ(load_causal_lm(dir_ / "saved", Device::cpu())->config(), part->config());
}

TEST_F(RegistryTest, EncodersAreNoGenerators) {
  ASSERT_FALSE(encoder_model_types().empty());
  for (const std::string& type : encoder_model_types()) {
    json config = minimal(type);
    config.erase("num_key_value_heads");
    if (type == "gemma3_text") config["architectures"] = {"Gemma3TextModel"};
    const auto encoder = make_text_model(put(config), Device::cpu(), 3);
    EXPECT_EQ(encoder->config().model_type, type);
    EXPECT_THROW(encoder->logits(encoder->hidden_states(encoder->make_ids(std::vector<std::int32_t>{1, 2}))),
                 ValueError);
    config["architectures"] = {encoder->config().architecture};
    EXPECT_NE(refused(config).find("is not supported"), std::string::npos);
    encoder->materialize();
    encoder->save(dir_ / type);
    const auto loaded = load_text_model(dir_ / type, Device::cpu());
    EXPECT_EQ(loaded->config(), encoder->config());
    const std::vector<std::int32_t> ids{1, 7, 39, 2};
    EXPECT_EQ(loaded->hidden_states(loaded->make_ids(ids)).to_vector<float>(),
              encoder->hidden_states(encoder->make_ids(ids)).to_vector<float>());
  }
}

TEST_F(RegistryTest, AnyFamilyIsSavedAndLoaded) {
  for (const std::string& type : model_types()) {
    const auto model = make_causal_lm(put(minimal(type)), Device::cpu(), 3);
    model->materialize();
    model->save(dir_ / type);
    const auto loaded = load_causal_lm(dir_ / type, Device::cpu());
    EXPECT_EQ(loaded->config(), model->config());
    EXPECT_FALSE(loaded->is_training());
    const std::vector<std::int32_t> ids{1, 7, 39, 2};
    EXPECT_EQ(loaded->forward(loaded->make_ids(ids)).to_vector<float>(),
              model->forward(model->make_ids(ids)).to_vector<float>());
    EXPECT_NE(make_causal_lm(dir_ / "config.json", Device::cpu(), 4)
                  ->parameters()
                  .front()
                  .tensor->to_vector<float>(),
              model->parameters().front().tensor->to_vector<float>())
        << "the weights are a function of the seed";
  }
}

}  // namespace
}  // namespace caldera::testing
