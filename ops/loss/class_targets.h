// Integer targets beside rows of one value a class: what cross-entropy and its relatives do with them.
#pragma once

#include <optional>
#include <string_view>

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

class ClassTargets {
 public:
  /// `rows` is (..., classes) and floating, `targets` is (...) and integer. Throws ShapeError or DTypeError
  /// naming `op`.
  ClassTargets(const char* op, const LazyTensor& rows, const LazyTensor& targets,
               std::optional<std::int64_t> ignore_index = {});

  /// (..., classes): is this class the target?
  LazyTensor is_target() const;
  /// The element of each row in its target's class; 0 where the target is no class. `rows` may be of one row
  /// for all.
  LazyTensor chosen(const LazyTensor& rows) const;
  /// Reads these elements alone, for rows of which nothing else is read. Where the target is no class it
  /// gives NaN, or 0 of integers.
  LazyTensor taken(const LazyTensor& rows) const;
  /// The losses with NaN where the target is no class, and 0 where it is ignored.
  LazyTensor marked(const LazyTensor& losses) const;
  /// Puts 0 in place of what belongs to ignored targets.
  LazyTensor counted(const LazyTensor& of_targets) const;
  /// A factor for each class in `type`. Throws ShapeError unless it is (classes), DTypeError unless it is a
  /// number.
  LazyTensor class_weights(const LazyTensor& weight, DType type) const;

 private:
  const char* op_;
  LazyTensor index_;
  LazyTensor ignored_;  // undefined where none is
  std::int64_t classes_;
};

/// sum(losses) / sum(weights), a scalar; 0 where the weights are 0 altogether.
LazyTensor weighted_ratio(const LazyTensor& losses, const LazyTensor& weights);

}  // namespace caldera::ops
