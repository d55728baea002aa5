// EmbeddingModel of the eager API: texts to vectors, computed when the call returns.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eager/tensor.h"
#include "lm/embed/embedding_model.h"

namespace caldera::v1 {

using caldera::Pooling;

struct EmbeddingConfig {
  std::filesystem::path model;          ///< a model folder
  bool normalize = true;                ///< vectors of length 1, whatever the folder says
  std::optional<Pooling> pooling = {};  ///< else the folder's, or the mean where it says nothing
  std::int64_t batch_size = 32;         ///< texts that are computed together
  DType dtype = DType::f32;             ///< what weights are kept and computed in
};

/// A caldera::EmbeddingModel whose vectors are there when `encode` returns. Movable, not copyable; one thread
/// at a time.
class EmbeddingModel {
 public:
  /// Opens a model folder with the defaults of EmbeddingConfig. Throws ModelError: FileNotFound where there
  /// is no such folder, InvalidFormat for what is wrong with its files.
  static EmbeddingModel from_pretrained(const std::filesystem::path& model,
                                        const Device& device = Device::cpu());
  /// Opens the model that the configuration names, as it says. Throws ModelError (InvalidConfig) for a batch
  /// size below 1.
  static EmbeddingModel from_config(const EmbeddingConfig& config, const Device& device = Device::cpu());

  /// The vectors of texts, (texts, dimension()), in f32, on the model's device. Longer texts than the model
  /// takes are cut.
  Tensor encode(const std::vector<std::string>& texts);
  /// The width of the vectors.
  std::int64_t dimension() const { return model_->dimension(); }
  const EmbeddingConfig& config() const { return config_; }
  /// The lazy model underneath: its `embed` gives vectors as a graph.
  caldera::EmbeddingModel& lazy() { return *model_; }

 private:
  EmbeddingModel(EmbeddingConfig config, std::unique_ptr<caldera::EmbeddingModel> model, const Device& device)
      : config_(std::move(config)), model_(std::move(model)), device_(device) {}

  EmbeddingConfig config_;
  std::unique_ptr<caldera::EmbeddingModel> model_;
  Device device_;
};

/// hidden (B, T, features) and mask (B, T), which is not 0 where a token is: the mean over the tokens, in
/// f32, (B, features). Zeros for a row without any. Throws ShapeError.
Tensor mean_pool(const Tensor& hidden, const Tensor& mask);
/// x / max(|x|, 1e-12) over the last axis.
Tensor normalize(const Tensor& x);

}  // namespace caldera::v1
