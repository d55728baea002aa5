// LoRA for eager programs: a trainable low-rank addition to a frozen linear layer (Hu et al. 2021).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "eager/tensor.h"
#include "eager/var.h"

namespace caldera::v1 {

struct LoRAConfig {
  std::int64_t rank = 8;
  double alpha = 16;
  /// Probability with which an element of x A is dropped in training.
  double dropout = 0;

  double scaling() const { return alpha / static_cast<double>(rank); }
  /// rank > 0, alpha > 0, 0 <= dropout < 1. Throws TrainingError (InvalidLoRAConfig) otherwise.
  void validate() const;
};

/// The scaled product x A B, to be added to what the frozen layer makes of x. A is (in, rank), normal with
/// deviation 1 / sqrt(rank); B is (rank, out), zero, so that a new layer changes nothing.
///
/// Movable, not copyable. `forward` may be called from several threads while nobody sets anything.
class LoRALayer {
 public:
  /// Throws TrainingError (InvalidLoRAConfig) for an invalid configuration, sizes below 1, and a rank above
  /// min(in, out). `seed` fixes A and the stream of dropout masks; without one, layers take the numbers 1, 2,
  /// 3 … in the order in which the process makes them.
  LoRALayer(std::int64_t in_features, std::int64_t out_features, const LoRAConfig& config = {},
            const Device& device = Device::cpu(), std::optional<std::uint64_t> seed = std::nullopt);

  /// scaling() * ((x A) B) for x of shape (..., in), the result is (..., out). In training each call drops
  /// other elements of x A. Throws ShapeError when the last axis of x is not in_features.
  Tensor forward(const Tensor& x) const;
  /// Builds the forward pass as a graph: dropout included, evaluated when asked for, differentiable.
  LazyTensor forward_lazy(const LazyTensor& x) const;

  /// rank * (in + out).
  std::int64_t num_parameters() const { return config_.rank * (in_features_ + out_features_); }
  /// A new layer is in evaluation mode.
  void set_training(bool training) { training_ = training; }
  void eval() { set_training(false); }
  bool is_training() const { return training_; }
  /// Begins the stream of dropout masks again: two runs of equal calls then drop the same elements.
  void set_dropout_seed(std::uint64_t seed);

  const Var& lora_a() const { return lora_a_; }
  const Var& lora_b() const { return lora_b_; }
  /// {A, B}
  std::vector<Var> trainable_variables() const { return {lora_a_, lora_b_}; }
  const LoRAConfig& config() const { return config_; }
  std::int64_t in_features() const { return in_features_; }
  std::int64_t out_features() const { return out_features_; }

 private:
  std::int64_t in_features_;
  std::int64_t out_features_;
  LoRAConfig config_;
  bool training_ = false;
  Var lora_a_;
  Var lora_b_;
  /// Seed of the next dropout mask. On the heap so that a layer can move while it is atomic.
  std::unique_ptr<std::atomic<std::uint64_t>> dropout_state_;
};

}  // namespace caldera::v1
