// What the files of losses are built with: operands of one type, weights, reductions, and their samples.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "ops/loss/reduction.h"
#include "ops/table/operands.h"

namespace caldera::ops {

/// The operands of a loss that decide on its type: promoted to it, and converted to what is computed with.
class LossOperands {
 public:
  /// Throws DTypeError for what is not floating, ShapeError for what does not broadcast; both name `op`.
  /// Numbers take the type of the first tensor among the operands, and lie where it or the first tensor of
  /// `others` does, which are what will stand beside them (or undefined).
  LossOperands(const char* op, std::initializer_list<LazyTensor> operands,
               std::initializer_list<LazyTensor> others = {});

  const LazyTensor& operator[](std::size_t i) const { return operands_[i]; }
  /// Of the operands broadcast against each other.
  const Shape& shape() const { return shape_; }
  /// What takes the operands' type instead of deciding on it: weights, and targets of 1 and -1. Throws as the
  /// constructor does, if `x` (called `what`) is no number or does not broadcast to the operands' shape.
  LazyTensor beside(const LazyTensor& x, std::string_view what) const;
  /// The losses reduced and in the operands' type.
  LazyTensor reduced(const LazyTensor& losses, Reduction reduction) const;

 private:
  const char* op_;
  std::vector<LazyTensor> operands_;
  DType type_ = DType::f32;
  Shape shape_;
  Device device_;
};

/// In the type that the losses have.
LazyTensor reduced(const LazyTensor& losses, Reduction reduction);

// ---- for the table of operations

/// The argument `reduction`: "mean" (also where it is absent), "sum", "none" or "batchmean". ValueError for
/// others.
Reduction reduction_of(const Arguments& arguments);

/// Losses of two tensors: shapes that are equal and shapes that broadcast, each reduction, and a few shapes
/// with each of the `variants`.
std::vector<Sample> loss_samples(const Operation& operation, const std::vector<Arguments>& variants = {});
/// The same without broadcasting.
std::vector<Sample> unbroadcast_loss_samples(const Operation& operation,
                                             const std::vector<Arguments>& variants = {});
/// Two operands whose shapes do not fit.
std::vector<ErrorSample> loss_errors(const Operation& operation);

/// Where two operands have these ranges, no difference of theirs is a multiple of 1/64: kinks at 0 and at
/// round margins are between values.
inline constexpr Range kOnGrid{};
inline constexpr Range kOffGrid{.offset = 1.0 / 128};
/// Probabilities that are neither 0 nor 1.
inline constexpr Range kProbability{.low = 1.0 / 16, .high = 15.0 / 16};

}  // namespace caldera::ops
