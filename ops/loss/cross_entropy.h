// Cross-entropy as a composition of primitives. Declared once: caldera::v1 and training/objectives/loss.h
// both build on it. Other losses: likelihoods.h, margins.h, regression.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

#include "engine/graph/lazy_tensor.h"
#include "ops/loss/reduction.h"

namespace caldera {

struct CrossEntropyOptions {
  /// Positions whose target equals this count for nothing, smoothing included.
  std::optional<std::int64_t> ignore_index = {};
  /// Share of the probability spread evenly over all classes, in [0, 1], as in PyTorch's label_smoothing.
  double label_smoothing = 0;
  /// A factor (classes) for each class: of the loss of positions whose target it is, and of its part in what
  /// smoothing adds. Undefined: all 1.
  LazyTensor weight = {};
};

/// Both have the shape of the targets, and the dtype of the logits (f32 for 16-bit logits).
struct CrossEntropyTerms {
  /// Negative log likelihood in natural logarithms, class weights included; 0 where the target is ignored.
  LazyTensor losses;
  /// The mean divides the sum of the losses by the sum of these: the weight of the target's class (1 without
  /// class weights), 0 where the target is ignored. A mask has to be multiplied into both.
  LazyTensor weights;

  /// sum(losses) / sum(weights), as PyTorch does; 0 when all weights are 0.
  LazyTensor mean() const;
};

/// Cross-entropy position by position. `logits` is (..., classes) and floating, `targets` is (...) and
/// integer. A target outside [0, classes) that is not ignore_index gives NaN at its position: it cannot be
/// found out before the data are computed, and must not pass for a loss. Logits of -inf are allowed in
/// classes other than the target's (but not together with smoothing, which would make the loss infinite).
/// Throws ShapeError, DTypeError or ValueError.
CrossEntropyTerms cross_entropy_terms(const LazyTensor& logits, const LazyTensor& targets,
                                      const CrossEntropyOptions& options = {});

/// sum(values * weights) / sum(weights), a scalar; 0 when all weights are 0. Values and weights broadcast,
/// and a weight counts wherever it is broadcast to (numpy.average). Positions of weight 0 do not count even
/// if their value is NaN. Both floating (DTypeError); ShapeError where they do not broadcast.
LazyTensor weighted_mean(const LazyTensor& values, const LazyTensor& weights);

/// The mean of the terms over the positions that count; 0 when none does.
LazyTensor mean_cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                              const CrossEntropyOptions& options = {});

struct CrossEntropyLossOptions {
  LazyTensor weight = {};            // a factor (classes) for each class
  std::int64_t ignore_index = -100;  // positions whose target equals this count for nothing
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;  // as in CrossEntropyOptions
  int axis = -1;               // of the classes; PyTorch's is 1
};

/// The losses of cross_entropy_terms(), reduced: torch.nn.functional.cross_entropy of integer targets. The
/// mean is over the weights of the classes that are targets, and 0 when none counts; Reduction::none keeps
/// the shape of the targets. Results have the dtype of the logits (f32 for 16-bit logits).
///
/// Floating targets of the shape of the logits are the classes' probabilities p: the loss is the sum over
/// classes of -weight p log_softmax(logits), smoothed ones being (1 - s) p + s / classes, and has a gradient
/// by them. Its mean is over positions, whatever their weights; no target is ignored.
LazyTensor cross_entropy(const LazyTensor& logits, const LazyTensor& targets,
                         const CrossEntropyLossOptions& options = {});
/// Computes it with a factor (classes) for each class, as PyTorch's third argument is. (A factor for each
/// position: weighted_cross_entropy() of training/objectives/loss.h.) A template, so that {} stands for
/// options.
template <std::same_as<LazyTensor> Weights>
LazyTensor cross_entropy(const LazyTensor& logits, const LazyTensor& targets, const Weights& class_weights) {
  return cross_entropy(logits, targets, CrossEntropyLossOptions{.weight = class_weights});
}

struct NllOptions {
  LazyTensor weight = {};            // a factor (classes) for each class
  std::int64_t ignore_index = -100;  // positions whose target equals this count for nothing
  Reduction reduction = Reduction::mean;
  int axis = -1;  // of the classes; PyTorch's is 1
};

/// -log_probabilities[target] position by position, reduced. The mean is over the weights of the classes that
/// are targets, and 0 when none counts. Operands, and targets that are no class, are as for cross-entropy;
/// the result has the type of the log-probabilities.
LazyTensor nll_loss(const LazyTensor& log_probabilities, const LazyTensor& targets,
                    const NllOptions& options = {});

}  // namespace caldera
