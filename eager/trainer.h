// Trainer of the eager API: steps over batches, with clipping, a schedule and AdamW.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "eager/optimizer.h"
#include "eager/scheduler.h"
#include "eager/var.h"

namespace caldera::v1 {

struct TrainingConfig {
  std::int64_t num_epochs = 3;
  /// The rate of each step; nothing: that of the optimiser's configuration.
  std::optional<LRScheduler> lr_scheduler = std::nullopt;
  AdamWConfig optimizer_config = {};
  /// The gradients of a step are scaled down to this norm over all of them; 0 does not clip.
  double max_grad_norm = 1.0;

  /// Throws TrainingError (InvalidConfig) unless num_epochs is positive and max_grad_norm finite and not
  /// negative, and as AdamWConfig::validate does.
  void validate() const;
};

/// Reports a step.
struct StepMetrics {
  double loss = 0;        ///< before the step
  std::int64_t step = 0;  ///< counted from 1
  double learning_rate = 0;
  double grad_norm = 0;  ///< before it is clipped
};

/// One step: the loss, its gradients, clipping, the update. Not to be used by two threads at once.
class TrainingStep {
 public:
  /// Keeps a reference to the optimiser.
  TrainingStep(std::vector<Var> variables, AdamW& optimizer, double max_grad_norm = 1.0);

  /// Minimises `loss`, a scalar of the variables, at the optimiser's rate. Throws TrainingError: Gradient as
  /// value_and_grad does, Failed for a loss or a norm that is not finite; no variable has changed then.
  StepMetrics run(const std::function<Tensor()>& loss);

 private:
  std::vector<Var> variables_;
  AdamW& optimizer_;
  double max_grad_norm_;
};

/// Trains variables on batches, `num_epochs` times over. Not to be used by two threads at once.
class Trainer {
 public:
  /// Throws TrainingError (InvalidConfig) for a bad configuration, and (State) without variables.
  Trainer(std::vector<Var> variables, const TrainingConfig& config);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// `forward` maps a batch, of any type, to the loss, a scalar Tensor. Returns the metrics of the last step.
  /// Throws TrainingError (Failed) without batches, and as TrainingStep::run does.
  template <class Batch, class Forward>
  StepMetrics train(std::span<const Batch> batches, Forward forward) {
    check_batches(batches.size());
    StepMetrics metrics;
    for (std::int64_t epoch = 0; epoch < config_.num_epochs; ++epoch)
      for (const Batch& batch : batches) metrics = step([&] { return forward(batch); });
    return metrics;
  }
  template <class Batch, class Forward>
  StepMetrics train(const std::vector<Batch>& batches, Forward forward) {
    return train(std::span<const Batch>(batches), forward);
  }
  /// A single step.
  StepMetrics step(const std::function<Tensor()>& loss);

  std::int64_t global_step() const { return global_step_; }
  const TrainingConfig& config() const { return config_; }
  const std::vector<Var>& variables() const { return variables_; }
  AdamW& optimizer() { return optimizer_; }
  /// Goes on as after `step` steps: the schedule does. load_checkpoint() restores the rest.
  void set_global_step(std::int64_t step) { global_step_ = step; }

 private:
  static void check_batches(std::size_t count);

  TrainingConfig config_;
  std::vector<Var> variables_;
  AdamW optimizer_;
  TrainingStep step_;
  std::int64_t global_step_ = 0;
};

}  // namespace caldera::v1
