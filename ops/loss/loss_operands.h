// Builds losses: operands of one type, weights, reductions.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "ops/loss/reduction.h"

namespace caldera::ops {

/// The operands of a loss that decide on its type: promoted to it, and converted to what is computed with.
class LossOperands {
 public:
  /// Throws DTypeError for what is not floating, ShapeError for what does not broadcast; both name `op`.
  /// Numbers take the type of the first tensor among the operands, and are where it or the first tensor of
  /// `others` does, which are what will stand beside them (or undefined).
  LossOperands(const char* op, std::initializer_list<LazyTensor> operands,
               std::initializer_list<LazyTensor> others = {});

  const LazyTensor& operator[](std::size_t i) const { return operands_[i]; }
  /// Returns the shape of the operands broadcast against each other.
  const Shape& shape() const { return shape_; }
  /// Converts what takes the operands' type instead of deciding on it: weights, and targets of 1 and -1.
  /// Throws as the constructor does, if `x` (called `what`) is no number or does not broadcast to the
  /// operands' shape.
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

}  // namespace caldera::ops
