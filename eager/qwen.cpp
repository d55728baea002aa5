#include "eager/qwen.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "eager/errors.h"
#include "lm/models/decoder.h"
#include "lm/nn/attention/rotary.h"

namespace caldera::v1 {
namespace {

constexpr const char* kModelType = "qwen2";

/// The part of a model with this path.
template <class Part>
Part* find_part(Module& root, const std::string& path) {
  class Finder final : public ParameterVisitor {
   public:
    explicit Finder(const std::string& path) : path_(path) {}
    void module(const std::string& name, Module& module) override {
      if (found == nullptr && name == path_) found = dynamic_cast<Part*>(&module);
      ParameterVisitor::module(name, module);
    }
    Part* found = nullptr;

   private:
    const std::string& path_;
  };
  Finder finder(path);
  root.visit({}, finder);
  return finder.found;
}

/// The context of a call over x (B, T, hidden), and the angles that it looks up.
AttentionContext context_of(const CausalLM& model, const Tensor& x) {
  const caldera::ModelConfig& c = model.config();
  if (x.rank() != 3 || x.shape()[2] != c.hidden_size)
    throw ShapeError(
        fmt::format("Qwen: {} is not (batch, positions, {})", x.shape().to_string(), c.hidden_size));
  RotaryEmbedding rotary(c.head_dim, c.max_position_embeddings, RopeParameters{c.rope_theta, c.rope_scaling},
                         model.device());
  return make_attention_context(rotary, x.shape()[0], x.shape()[1], nullptr);
}

const ModelConfig& checked(const ModelConfig& config) {
  if (config.model_type() != kModelType)
    throw ModelError::invalid_config(
        fmt::format("the model is of the family '{}'; LanguageModel takes any, Qwen takes {}",
                    config.model_type(), kModelType));
  return config;
}

}  // namespace

Tensor QwenAttention::forward(const Tensor& x) const {
  return Tensor::of_call(attention_->forward(x.lazy(), context_of(*model_, x), layer_));
}

Tensor QwenMLP::forward(const Tensor& x) const { return Tensor::of_call(mlp_->forward(x.lazy())); }

Tensor QwenDecoderLayer::forward(const Tensor& x) const {
  return Tensor::of_call(decoder_->forward(x.lazy(), context_of(*model_, x), layer_));
}

QwenAttention QwenDecoderLayer::attention() const {
  return {model_, *find_part<SelfAttention>(*decoder_, "self_attn"), layer_};
}

QwenMLP QwenDecoderLayer::mlp() const { return {model_, *find_part<Layer>(*decoder_, "mlp")}; }

Qwen::Qwen(const ModelConfig& config, const Device& device, std::uint64_t seed)
    : LanguageModel(checked(config), device, seed) {}

Qwen::Qwen(const LanguageModel& model) : LanguageModel(model.shared(), checked(model.config())) {}

QwenDecoderLayer Qwen::layer(std::int64_t index) const {
  auto* found = find_part<DecoderLayer>(lazy(), fmt::format("model.layers.{}", index));
  if (found == nullptr)
    throw ValueError(fmt::format("there is no layer {}; the model has {}", index, config().num_layers()));
  return {shared(), *found, index};
}

}  // namespace caldera::v1
