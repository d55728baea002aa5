// LanguageModel of the eager API, and how one is loaded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eager/model_config.h"
#include "eager/tensor.h"
#include "lm/models/causal_lm.h"

namespace caldera::v1 {

/// A model that predicts the next token. Copies are the same model. One thread at a time.
class LanguageModel {
 public:
  /// Makes a model with random weights, a function of the seed. Throws ModelError (InvalidConfig).
  explicit LanguageModel(const ModelConfig& config, const Device& device = Device::cpu(),
                         std::uint64_t seed = 0);
  /// Takes a model of the lazy API, in evaluation mode.
  LanguageModel(std::shared_ptr<CausalLM> model, ModelConfig config);

  /// Maps ids (B, T), of any integer dtype, to logits (B, T, vocabulary) in f32. Attention is causal. `mask`
  /// (B, T), where it is given, is 0 where there is no token: such places have no position, nothing attends
  /// to them, and their logits are 0. Throws ShapeError, DTypeError, and ValueError for an id outside of the
  /// vocabulary and more tokens than the model has positions.
  Tensor forward(const Tensor& ids, const std::optional<Tensor>& mask = std::nullopt) const;

  const ModelConfig& config() const { return config_; }
  Device device() const { return Device::from(model_->device()); }
  std::int64_t num_parameters() const { return model_->parameter_count(); }
  /// The model of the lazy API underneath: `lazy()(ids)` gives logits as a graph.
  CausalLM& lazy() const { return *model_; }
  const std::shared_ptr<CausalLM>& shared() const { return model_; }

 private:
  std::shared_ptr<CausalLM> model_;
  ModelConfig config_;
};

/// Says what files hold, without loading them.
struct ModelInfo {
  ModelConfig config;
  std::int64_t num_parameters = 0;   ///< elements of all tensors
  std::vector<std::string> tensors;  ///< their names, as Hugging Face has them
};

/// Loads models from a folder in Hugging Face's layout or a GGUF file. A value.
class ModelLoader {
 public:
  explicit ModelLoader(std::filesystem::path path, const Device& device = Device::cpu())
      : path_(std::move(path)), device_(device) {}

  /// A loader whose models have weights and activations of this dtype: f32 (the default), f16 or bf16.
  ModelLoader with_dtype(DType dtype) const;
  /// Throws ModelError: FileNotFound; InvalidConfig; InvalidFormat for weights that do not fit, naming them.
  LanguageModel load() const;
  /// Loads, and throws ModelError (InvalidFormat) for a weight that holds NaN or infinity, which files may.
  LanguageModel load_with_validation() const;
  /// Throws as load() does, as far as it reads.
  ModelInfo inspect() const;

 private:
  std::filesystem::path path_;
  Device device_;
  DType dtype_ = DType::f32;
};

}  // namespace caldera::v1
