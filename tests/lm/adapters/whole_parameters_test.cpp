// Parameters that an adapter trains themselves (modules_to_save, bias): which they are, their gradients,
// their names in PEFT's files, and what is left when the adapter is off, merged or saved without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "lm/adapters/adapter_bank.h"
#include "lm/adapters/adapter_switch.h"
#include "lm/adapters/lora.h"
#include "lm/adapters/merge.h"
#include "lm/base/atomic_file.h"
#include "lm/formats/safetensors/safetensors.h"
#include "lm/models/registry.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

constexpr const char* kUntied =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 40,
  "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "hidden_act": "silu", "tie_word_embeddings": false})";
constexpr const char* kTied =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 40,
  "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
  "num_key_value_heads": 2, "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
  "hidden_act": "silu", "tie_word_embeddings": true})";
/// Has biases everywhere.
constexpr const char* kGpt2 =
    R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 40,
  "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 32, "n_ctx": 32, "activation_function": "gelu_new",
  "layer_norm_epsilon": 1e-5})";

std::vector<float> logits_of(CausalLM& model) {
  const std::vector<std::int32_t> ids{1, 5, 9, 30, 2};
  return model.forward(model.make_ids(ids)).to_vector<float>();
}

std::set<std::string> names_in(const std::filesystem::path& adapter) {
  std::set<std::string> names;
  const SafetensorsFile file = SafetensorsFile::open(adapter / "adapter_model.safetensors");
  for (const std::string& name : file.names())
    if (name.find(".lora_") == std::string::npos) names.insert(name);
  return names;
}

std::set<std::string> trained_whole(CausalLM& model) {
  std::set<std::string> names;
  for (const Parameter& p : model.trainable_parameters())
    if (p.name.find(".lora_") == std::string::npos) names.insert(p.name);
  return names;
}

class WholeParameters : public ::testing::Test {
 protected:
  std::unique_ptr<CausalLM> make(const char* config, Device device = Device::cpu()) const {
    folder_.put("config.json", config);
    auto model = make_causal_lm(folder_ / "config.json", device, 3);
    model->materialize();
    model->set_training(false);
    return model;
  }
  static LoRAOptions options(std::vector<std::string> modules, LoRABias bias = LoRABias::none) {
    LoRAOptions options{.rank = 2, .alpha = 4};
    options.modules_to_save = std::move(modules);
    options.bias = bias;
    return options;
  }
  /// Gives all that is trained other values.
  static void train(CausalLM& model) {
    std::uint64_t seed = 40;
    for (const Parameter& p : model.trainable_parameters())
      *p.tensor = *p.tensor + random_normal(p.tensor->shape(), seed++, DType::f32, model.device()) * 0.1;
    model.materialize();
  }

  TempFolder folder_;
};

TEST_F(WholeParameters, AreThoseThatAreNamed) {
  const auto model = make(kUntied);
  apply_lora(*model, options({"embed_tokens", "lm_head", "norm"}), {"all-linear"}, 1);
  EXPECT_EQ(trained_whole(*model),
            (std::set<std::string>{"model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"}));
  // A module that is trained itself has no factors, nor has what is in it.
  const auto inside = make(kUntied);
  apply_lora(*inside, options({"layers.1.mlp", "layers.0.self_attn.q_proj"}), {"q_proj", "up_proj"}, 1);
  EXPECT_EQ(
      trained_whole(*inside),
      (std::set<std::string>{"model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.gate_proj.weight",
                             "model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.down_proj.weight"}));
  std::set<std::string> factors;
  for (const Parameter& p : inside->trainable_parameters())
    if (p.name.ends_with("lora_A.weight")) factors.insert(p.name);
  EXPECT_EQ(factors, (std::set<std::string>{"model.layers.0.mlp.up_proj.lora_A.weight",
                                            "model.layers.1.self_attn.q_proj.lora_A.weight"}));
  const auto biases = make(kGpt2);
  apply_lora(*biases, options({}, LoRABias::lora_only), {"c_attn"}, 1);
  EXPECT_EQ(trained_whole(*biases),
            (std::set<std::string>{"transformer.h.0.attn.c_attn.bias", "transformer.h.1.attn.c_attn.bias"}));
  const auto all = make(kGpt2);
  apply_lora(*all, options({}, LoRABias::all), {"c_attn"}, 1);
  EXPECT_EQ(trained_whole(*all).size(),
            2U * 6 + 1);  // four projections and two norms a layer, and the last norm
}

TEST(LoRALayers, AreCountedInTheListThatIsNamed) {
  EXPECT_EQ(layer_of_path("model.layers.3.mlp.experts.5.up_proj"), 3);
  EXPECT_EQ(layer_of_path("model.layers.3.mlp.experts.5.up_proj", {"experts"}), 5);
  EXPECT_EQ(layer_of_path("model.layers.3.mlp.experts.5.up_proj", {"h", "layers"}), 3);
  EXPECT_EQ(layer_of_path("model.layers.3.mlp.up_proj", {"experts"}), -1);
  EXPECT_EQ(layer_of_path("lm_head"), -1);
}

TEST_F(WholeParameters, WhatCannotBeIsRefused) {
  const auto model = make(kGpt2);
  EXPECT_CONTAINS(error_of<ValueError>([&] { apply_lora(*model, options({"embed_tokens"}), {"c_attn"}, 1); }),
                  "no module 'embed_tokens'");
  LoRAOptions dora = options({}, LoRABias::all);
  dora.use_dora = true;
  EXPECT_CONTAINS(error_of<ValueError>([&] { apply_lora(*model, dora, {"c_attn"}, 1); }), "biases");
  EXPECT_FALSE(has_adapter(*model));
}

class WholeGradients : public WholeParameters, public ::testing::WithParamInterface<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, WholeGradients, ::testing::ValuesIn(tested_devices()), device_test_name);

// While B is zero the adapter changes nothing: the gradients are those of the model that is trained itself.
TEST_P(WholeGradients, AreThoseOfTheModelItself) {
  for (const char* config : {kUntied, kTied, kGpt2}) {
    const auto gradients = [&](CausalLM& model) {
      std::vector<LazyTensor> inputs;
      std::vector<std::string> names;
      for (const Parameter& p : model.trainable_parameters()) {
        if (p.name.find(".lora_") != std::string::npos) continue;
        inputs.push_back(*p.tensor);
        names.push_back(p.name);
      }
      const std::vector<std::int32_t> ids{3, 17, 5, 39, 8};
      const LazyTensor loss = sum(tanh(model.forward(model.make_ids(ids))));
      std::map<std::string, std::vector<float>> values;
      const std::vector<LazyTensor> grads = grad(loss, inputs);
      for (std::size_t i = 0; i < names.size(); ++i) values[names[i]] = grads[i].to_vector<float>();
      return values;
    };
    const auto itself = make(config, GetParam());
    const auto expected = gradients(*itself);
    const auto model = make(config, GetParam());
    const bool is_gpt2 = config == kGpt2;
    apply_lora(*model, options({is_gpt2 ? "wte" : "embed_tokens", is_gpt2 ? "ln_f" : "norm"}, LoRABias::all),
               {"all-linear"}, 1);
    model->set_training(false);
    const auto found = gradients(*model);
    EXPECT_GE(found.size(), 2U);
    for (const auto& [name, values] : found) {
      double largest = 0;
      for (const float value : expected.at(name)) largest = std::max(largest, std::abs(double{value}));
      ASSERT_GT(largest, 0) << name;
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], expected.at(name)[i], 1e-5 * largest) << name << " " << i;
    }
  }
}

TEST_F(WholeParameters, TheAdapterCanBeSwitchedOff) {
  const auto model = make(kUntied);
  const std::vector<float> base = logits_of(*model);
  apply_lora(*model, options({"embed_tokens", "lm_head"}), {"q_proj"}, 1);
  model->set_training(false);
  EXPECT_EQ(logits_of(*model), base);
  train(*model);
  const std::vector<float> adapted = logits_of(*model);
  EXPECT_NE(adapted, base);
  {
    const AdapterSwitchedOff off(*model);
    EXPECT_EQ(logits_of(*model), base);
    const AdapterSwitchedOff nested(*model);
    EXPECT_EQ(logits_of(*model), base);
  }
  EXPECT_EQ(logits_of(*model), adapted);
  // The model is saved as it is without the adapter.
  model->save(folder_ / "saved");
  EXPECT_EQ(logits_of(*load_causal_lm(folder_ / "saved", Device::cpu())), base);
}

TEST_F(WholeParameters, FilesAreThoseOfPeft) {
  const std::string prefix = "base_model.model.";
  struct Case {
    const char* config;
    LoRAOptions options;
    std::string target;
    std::set<std::string> names;
  };
  const Case cases[] = {
      {kUntied,
       options({"embed_tokens", "lm_head"}),
       "q_proj",
       {prefix + "model.embed_tokens.weight", prefix + "lm_head.weight"}},
      {kTied,
       options({"lm_head"}),
       "q_proj",
       {prefix + "model.embed_tokens.weight", prefix + "lm_head.weight"}},
      {kTied,
       options({"norm", "embed_tokens"}),
       "q_proj",
       {prefix + "model.embed_tokens.weight", prefix + "lm_head.weight", prefix + "model.norm.weight"}},
      {kGpt2,
       options({"ln_f"}, LoRABias::lora_only),
       "c_attn",
       {prefix + "transformer.ln_f.weight", prefix + "transformer.ln_f.bias",
        prefix + "transformer.h.0.attn.c_attn.base_layer.bias",
        prefix + "transformer.h.1.attn.c_attn.base_layer.bias"}}};
  for (const Case& c : cases) {
    const auto model = make(c.config);
    apply_lora(*model, c.options, {c.target}, 1);
    train(*model);
    model->set_training(false);
    save_adapter(*model, folder_ / "one", "base");
    EXPECT_EQ(names_in(folder_ / "one"), c.names);
    const auto other = make(c.config);
    load_adapter(*other, folder_ / "one");
    other->set_training(false);
    EXPECT_EQ(logits_of(*other), logits_of(*model));
    save_adapter(*other, folder_ / "two", "base");
    for (const char* file : {"adapter_model.safetensors", "adapter_config.json"})
      EXPECT_EQ(read_text_file(folder_ / "one" / file), read_text_file(folder_ / "two" / file)) << file;
    const std::vector<float> adapted = logits_of(*model);
    merge_adapter(*model);
    EXPECT_TRUE(trained_whole(*model).empty());
    const std::vector<float> merged = logits_of(*model);
    for (std::size_t i = 0; i < merged.size(); ++i) ASSERT_NEAR(merged[i], adapted[i], 1e-4);
    AdapterBank bank(*model);
    EXPECT_CONTAINS(error_of<FileError>([&] { bank.load(folder_ / "one"); }), "modules_to_save");
  }
}

/// Writes an adapter file again, each tensor under another name or with other values.
void rewrite(const std::filesystem::path& adapter,
             const std::function<void(std::string& name, std::vector<float>& values)>& change) {
  const SafetensorsFile file = SafetensorsFile::open(adapter / "adapter_model.safetensors");
  std::vector<std::pair<std::string, std::vector<float>>> tensors;
  std::vector<TensorToWrite> list;
  for (const std::string& name : file.names()) tensors.emplace_back(name, file.read_f32(name));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Shape shape = file.info(file.names()[i]).shape;
    change(tensors[i].first, tensors[i].second);
    if (!tensors[i].first.empty())
      list.push_back({tensors[i].first, DType::f32, shape, std::as_bytes(std::span(tensors[i].second))});
  }
  StagedFiles files;
  write_safetensors(files, adapter / "adapter_model.safetensors", list, {{"format", "pt"}});
  files.commit();
}

TEST_F(WholeParameters, OlderNamesAndMissingBiasesAreRead) {
  const auto model = make(kGpt2);
  apply_lora(*model, options({}, LoRABias::lora_only), {"c_attn"}, 1);
  train(*model);
  save_adapter(*model, folder_ / "adapter", "base");
  rewrite(folder_ / "adapter", [](std::string& name, std::vector<float>&) {
    if (const auto at = name.find(".base_layer"); at != name.npos) name.erase(at, 11);
  });
  const auto older = make(kGpt2);
  load_adapter(*older, folder_ / "adapter");
  older->set_training(false);
  EXPECT_EQ(logits_of(*older), logits_of(*model));
  // As PEFT itself writes lora_only: without them.
  rewrite(folder_ / "adapter", [](std::string& name, std::vector<float>&) {
    if (name.ends_with(".bias")) name.clear();
  });
  const auto without = make(kGpt2);
  load_adapter(*without, folder_ / "adapter");
  without->set_training(false);
  EXPECT_NE(logits_of(*without), logits_of(*model));
}

TEST_F(WholeParameters, AHeadOfItsOwnIsRefusedWhereTheModelSharesIt) {
  const auto model = make(kTied);
  apply_lora(*model, options({"embed_tokens"}), {"q_proj"}, 1);
  save_adapter(*model, folder_ / "adapter", "base");
  rewrite(folder_ / "adapter", [](std::string& name, std::vector<float>& values) {
    if (name.ends_with("lm_head.weight")) values[0] += 1;
  });
  const auto other = make(kTied);
  EXPECT_CONTAINS(error_of<FileError>([&] { load_adapter(*other, folder_ / "adapter"); }),
                  "lm_head.weight is another matrix than model.embed_tokens.weight");
  EXPECT_FALSE(has_adapter(*other));
  rewrite(folder_ / "adapter", [](std::string& name, std::vector<float>&) {
    if (name.ends_with("lm_head.weight")) name.clear();
  });
  EXPECT_CONTAINS(error_of<FileError>([&] { load_adapter(*other, folder_ / "adapter"); }), "lm_head.weight");
}

TEST_F(WholeParameters, APartOfTheChangeIsMerged) {
  const auto model = make(kUntied);
  const auto weight = [&] {
    for (const Parameter& p : model->parameters())
      if (p.name == "lm_head.weight") return p.tensor->to_vector<float>();
    return std::vector<float>();
  };
  const std::vector<float> base = weight();
  apply_lora(*model, options({"lm_head"}), {"q_proj"}, 1);
  train(*model);
  const std::vector<float> trained = weight();
  merge_adapter(*model, 0.25);
  const std::vector<float> merged = weight();
  for (std::size_t i = 0; i < merged.size(); ++i)
    ASSERT_NEAR(merged[i], 0.75 * base[i] + 0.25 * trained[i], 1e-6);
}

}  // namespace
}  // namespace caldera::testing
