// Dynamic loss scaling for f16, with the defaults of torch.amp.GradScaler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct LossScalerOptions {
  double initial_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  ///< steps in a row without overflow before the scale grows

  /// Throws ValueError naming the field that is out of its domain.
  void validate() const;
};

/// Gradients below the smallest f16 number vanish, and those above the largest become infinite. The loss is
/// multiplied by a scale before it is differentiated and the gradients are divided by it after; a step whose
/// gradients overflow is left out and the scale is lowered, and after many good steps it is raised. A
/// training step is
///
///   auto grads = grad(scaler.scaled(loss), inputs);
///   scaler.unscale(grads);
///   // Decides on the device whether the update is applied:
///   auto finite = is_finite_scalar(global_norm(grads));
///   ... evaluate ...
///   scaler.update(whether the norm was finite);
///
/// The scale is an argument of the plan: changing it compiles nothing. One thread at a time.
class LossScaler {
 public:
  explicit LossScaler(const LossScalerOptions& options = {});

  double scale() const { return scale_; }
  /// The loss as it is to be differentiated.
  LazyTensor scaled(const LazyTensor& loss) const;
  /// Divides the gradients of the scaled loss by the scale.
  void unscale(std::vector<LazyTensor>& grads) const;
  /// Tells how the step went.
  void update(bool finite);
  /// Whether the scale has fallen so low (below 2^-24, the smallest f16 number) that scaling cannot be what
  /// is wrong.
  bool is_exhausted() const;

  /// Holds what changes from step to step: a checkpoint saves it.
  struct State {
    double scale = 1;
    std::int64_t good_steps = 0;
  };
  State state() const { return {.scale = scale_, .good_steps = good_steps_}; }
  /// Goes on from a saved state. Throws ValueError for a scale that no scaler has.
  void restore(const State& state);

 private:
  LossScalerOptions options_;
  double scale_;
  std::int64_t good_steps_ = 0;
};

/// A boolean scalar: whether `norm` (a floating scalar) is neither infinite nor NaN.
LazyTensor is_finite_scalar(const LazyTensor& norm);

}  // namespace caldera
