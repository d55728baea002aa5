// A Llama forward pass in plain double loops, from the parameters of a model by their names.
#pragma once

#include <functional>
#include <map>

#include "lm/models/llama.h"
#include "tests/lm/nn/reference.h"

namespace caldera::testing {

class LlamaReference {
 public:
  explicit LlamaReference(Llama& model) : c_(model.config()) {
    for (const Parameter& p : model.parameters()) weights_[p.name] = to_doubles(*p.tensor);
  }

  /// Logits (batch, length, vocabulary).
  Doubles forward(const std::vector<std::int32_t>& ids, std::int64_t batch) const {
    const std::int64_t length = static_cast<std::int64_t>(ids.size()) / batch;
    const Doubles& table = at("model.embed_tokens.weight");
    Doubles x;
    for (const std::int32_t id : ids)
      x.insert(x.end(), table.begin() + id * c_.hidden_size, table.begin() + (id + 1) * c_.hidden_size);
    for (std::int64_t i = 0; i < c_.num_hidden_layers; ++i) {
      const std::string p = "model.layers." + std::to_string(i) + ".";
      add(x, attention(rms_norm_reference(x, at(p + "input_layernorm.weight"), c_.rms_norm_eps),
                       p + "self_attn.", batch, length));
      add(x,
          mlp(rms_norm_reference(x, at(p + "post_attention_layernorm.weight"), c_.rms_norm_eps), p + "mlp."));
    }
    x = rms_norm_reference(x, at("model.norm.weight"), c_.rms_norm_eps);
    return linear_reference(x, c_.tie_word_embeddings ? table : at("lm_head.weight"), {}, c_.hidden_size,
                            c_.vocab_size);
  }

 private:
  const Doubles& at(const std::string& name) const { return weights_.at(name); }
  static void add(Doubles& x, const Doubles& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  Doubles project(const Doubles& x, const std::string& name, std::int64_t in, std::int64_t out) const {
    const auto bias = weights_.find(name + ".bias");
    Doubles y =
        linear_reference(x, at(name + ".weight"), bias == weights_.end() ? Doubles{} : bias->second, in, out);
    if (weights_.contains(name + ".lora_A.weight")) {
      const Doubles& a = at(name + ".lora_A.weight");
      const std::int64_t rank = static_cast<std::int64_t>(a.size()) / in;
      Doubles delta =
          linear_reference(linear_reference(x, a, {}, in, rank), at(name + ".lora_B.weight"), {}, rank, out);
      for (double& d : delta) d *= lora_scaling;
      add(y, delta);
    }
    return y;
  }

  Doubles attention(const Doubles& x, const std::string& p, std::int64_t batch, std::int64_t length) const {
    const std::int64_t d = c_.head_dim;
    const auto heads = [&](const char* name, std::int64_t count) {
      return swap_middle(project(x, p + name, c_.hidden_size, count * d), batch, length, count, d);
    };
    const Doubles q = turned(heads("q_proj", c_.num_attention_heads), length);
    const Doubles k = turned(heads("k_proj", c_.num_key_value_heads), length);
    const Doubles v = heads("v_proj", c_.num_key_value_heads);
    const AttentionSizes sizes{batch, c_.num_attention_heads, c_.num_key_value_heads, length, length, d};
    const Doubles out = attention_reference(q, k, v, sizes, 0);
    return project(swap_middle(out, batch, c_.num_attention_heads, length, d), p + "o_proj",
                   c_.num_attention_heads * d, c_.hidden_size);
  }

  Doubles turned(const Doubles& x, std::int64_t length) const {
    const std::int64_t d = c_.head_dim;
    if (!theta_at) return rotary_reference(x, length, d, c_.rope_theta, 0);
    Doubles all;
    for (std::size_t at = 0; at < x.size(); at += to_size(d)) {
      const std::int64_t position = static_cast<std::int64_t>(at) / d % length;
      const Doubles row(x.begin() + static_cast<std::ptrdiff_t>(at),
                        x.begin() + static_cast<std::ptrdiff_t>(at) + d);
      const Doubles one = rotary_reference(row, 1, d, theta_at(position), position);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  Doubles mlp(const Doubles& x, const std::string& p) const {
    Doubles inner = project(x, p + "gate_proj", c_.hidden_size, c_.intermediate_size);
    const Doubles up = project(x, p + "up_proj", c_.hidden_size, c_.intermediate_size);
    for (std::size_t i = 0; i < inner.size(); ++i) inner[i] = silu_reference(inner[i]) * up[i];
    return project(inner, p + "down_proj", c_.intermediate_size, c_.hidden_size);
  }

  LlamaConfig c_;
  std::map<std::string, Doubles> weights_;

 public:
  double lora_scaling = 0;
  /// The theta that tokens of a position are rotated with; none: that of the configuration.
  std::function<double(std::int64_t)> theta_at;
};

/// A small model whose sizes all differ; hidden_size is not heads * head_dim.
inline LlamaConfig small_config(std::int64_t heads, std::int64_t kv_heads) {
  LlamaConfig c;
  c.hidden_size = 20;
  c.intermediate_size = 28;
  c.num_hidden_layers = 2;
  c.num_attention_heads = heads;
  c.num_key_value_heads = kv_heads;
  c.head_dim = 6;
  c.vocab_size = 37;
  c.max_position_embeddings = 64;
  c.rms_norm_eps = 1e-5;
  c.initializer_range = 0.3;  // large, so that every part matters to the logits
  return c;
}

/// Gives every parameter (norms, biases and LoRA's B included) random values.
inline void randomize(Llama& model, std::uint64_t seed) {
  for (const Parameter& p : model.parameters()) {
    const double centre = p.name.find("norm") != std::string::npos ? 1 : 0;
    *p.tensor = make_tensor(random_doubles(p.tensor->numel(), seed++, centre - 0.4, centre + 0.4),
                            p.tensor->shape(), DType::f32, model.device());
  }
}

}  // namespace caldera::testing
