// The formulas by which optimisers move parameters: pure functions from lazy tensors to lazy tensors.
//
// Declared once. caldera::v1::AdamW and the optimisers of training/ both call these; what differs between
// them is only who owns the moments and when they are evaluated.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The numbers of one AdamW step. All are arguments of the compiled plan: a new learning rate or step number
/// does not compile again.
struct AdamWScalars {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  /// Number of this step, counted from 1, the same for every parameter of the step.
  std::int64_t step = 1;
};

/// Holds what a step leaves behind: the new parameter (dtype of the old one) and its new moments.
struct AdamWUpdate {
  LazyTensor param;
  LazyTensor m;
  LazyTensor v;
};

/// AdamW with decoupled weight decay (Loshchilov and Hutter 2019), in the order of operations of PyTorch:
///
///   p' = p (1 - lr wd);  m' = b1 m + (1 - b1) g;  v' = b2 v + (1 - b2) g^2
///   p'' = p' - lr / (1 - b1^t) * m' / (sqrt(v') / sqrt(1 - b2^t) + eps)
///
/// `m` and `v` start as zeros and set the dtype of the arithmetic: f32 moments of a 16-bit parameter
/// give f32 arithmetic. All shapes are equal. Throws ShapeError when they differ, ValueError when step < 1.
AdamWUpdate adamw_update(const LazyTensor& param, const LazyTensor& grad, const LazyTensor& m,
                         const LazyTensor& v, const AdamWScalars& scalars);

/// Makes the updates of all parameters of a step: its numbers are nodes, eight of them, which the updates
/// share.
class AdamWStep {
 public:
  /// Throws ValueError when scalars.step < 1.
  explicit AdamWStep(const AdamWScalars& scalars);

  /// Throws ShapeError as adamw_update() does.
  AdamWUpdate operator()(const LazyTensor& param, const LazyTensor& grad, const LazyTensor& m,
                         const LazyTensor& v) const;

 private:
  LazyTensor beta1_, rest1_;  // what is kept of the moments, and what comes in
  LazyTensor beta2_, rest2_;
  LazyTensor decay_;
  LazyTensor root_correction_;
  LazyTensor eps_;
  LazyTensor step_size_;
};

}  // namespace caldera
