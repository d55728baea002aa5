// Small models with random weights, written as folders whose config.json is given word for word.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lm/models/registry.h"
#include "tests/lm/nn/reference.h"

namespace caldera::testing {

/// Makes sizes that every family's defaults fit; the rest is left to them.
inline nlohmann::json smallest_config(const std::string& type) {
  nlohmann::json config{{"model_type", type},     {"hidden_size", 64},         {"intermediate_size", 32},
                        {"num_hidden_layers", 4}, {"num_attention_heads", 32}, {"vocab_size", 40}};
  if (type == "qwen3_moe" || type == "gpt_oss")
    config.update({{"num_experts", 3}, {"num_experts_per_tok", 2}});
  if (type == "qwen3_moe") config["moe_intermediate_size"] = 32;
  return config;
}

/// Writes a folder with random weights, norms and biases among them.
inline void make_random_folder(const std::filesystem::path& dir, const nlohmann::json& config) {
  std::filesystem::create_directories(dir);
  std::ofstream(dir / "config.json") << config.dump();
  const auto model = make_text_model(dir, Device::cpu(), 5);
  model->materialize();
  std::uint64_t seed = 1;
  for (const Parameter& p : model->parameters())
    *p.tensor = make_tensor(random_doubles(p.tensor->numel(), ++seed, -0.3, 0.4), p.tensor->shape(),
                            DType::f32, Device::cpu());
  model->save(dir);
  std::ofstream(dir / "config.json") << config.dump();
}

/// Computes what a model says of a few tokens: logits, or of encoders hidden states.
inline Doubles said_by(CausalLM& model, bool encoder) {
  const std::vector<std::int32_t> ids{1, 5, 2, 7, 3, 11, 4, 6, 9, 12, 8};
  const LazyTensor hidden = model.hidden_states(model.make_ids(ids));
  return to_doubles(encoder ? hidden : model.logits(hidden));
}
inline Doubles said_by(const std::filesystem::path& path) {
  return said_by(*load_text_model(path, Device::cpu()), is_encoder(path));
}

/// Computes the size of what differs, beside the size of what there is.
inline double relative_error(const Doubles& found, const Doubles& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double off = 0;
  double all = 0;
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    off += (found[i] - expected[i]) * (found[i] - expected[i]);
    all += expected[i] * expected[i];
  }
  return std::sqrt(off / all);
}

}  // namespace caldera::testing
