#include "ops/loss/class_targets.h"

#include <fmt/core.h>

#include <limits>

#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
#include "ops/core/ranges.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"

namespace caldera::ops {

ClassTargets::ClassTargets(const char* op, const LazyTensor& rows, const LazyTensor& targets,
                           std::optional<std::int64_t> ignore_index)
    : op_(op) {
  const Shape& shape = rows.shape();
  bool fits = shape.rank() == targets.rank() + 1;
  for (int i = 0; fits && i < targets.rank(); ++i) fits = shape[i] == targets.shape()[i];
  if (!fits)
    throw ShapeError(
        fmt::format("{}: {} and targets {} do not fit; the first is (..., classes) and targets have the "
                    "same shape without the last axis",
                    op, shape.to_string(), targets.shape().to_string()));
  classes_ = shape.back();
  if (classes_ == 0) throw ShapeError(fmt::format("{}: no classes in {}", op, shape.to_string()));
  if (!is_floating(rows.dtype()) || !is_integral(targets.dtype()))
    throw DTypeError(fmt::format("{}: {} and targets {}; want floating and integer", op, name(rows.dtype()),
                                 name(targets.dtype())));

  index_ = narrow_indices(op, targets, classes_, rows.device());
  // Not of the narrow ones: what is ignored may be far outside.
  if (ignore_index) ignored_ = equal(anchored(targets, rows.device()), *ignore_index);
}

LazyTensor ClassTargets::is_target() const {
  return equal(arange(classes_, DType::i32, index_.device()), expand_dims(index_, -1));
}

LazyTensor ClassTargets::chosen(const LazyTensor& rows) const {
  // Selecting instead of multiplying by a one-hot row: 0 * -inf would be NaN.
  return sum(where(is_target(), rows, zeros_like(rows)), -1);
}

LazyTensor ClassTargets::taken(const LazyTensor& rows) const {
  if (rows.rank() == 1) return gathered(rows, index_, 0, Indices::shared);
  return squeeze(gathered(rows, expand_dims(index_, -1), rows.rank() - 1, Indices::distinct), -1);
}

LazyTensor ClassTargets::marked(const LazyTensor& losses) const {
  const LazyTensor is_class = logical_and(greater_equal(index_, 0), less(index_, static_cast<int>(classes_)));
  const LazyTensor known =
      where(is_class, losses, full_like(losses, std::numeric_limits<double>::quiet_NaN()));
  return ignored_.defined() ? where(ignored_, zeros_like(losses), known) : known;
}

LazyTensor ClassTargets::counted(const LazyTensor& of_targets) const {
  return ignored_.defined() ? where(ignored_, zeros_like(of_targets), of_targets) : of_targets;
}

LazyTensor ClassTargets::class_weights(const LazyTensor& weight, DType type) const {
  if (weight.shape() != Shape{classes_})
    throw ShapeError(fmt::format("{}: weight {} is not one factor for each of {} classes", op_,
                                 weight.shape().to_string(), classes_));
  if (!is_floating(weight.dtype()) && !is_integral(weight.dtype()))
    throw DTypeError(fmt::format("{}: weight is {}, want a number", op_, name(weight.dtype())));
  return astype(weight, type);
}

LazyTensor weighted_ratio(const LazyTensor& losses, const LazyTensor& weights) {
  const LazyTensor total = sum(weights);
  // Smoothing leaves losses even where no weight is: divided by infinity they are 0. NaN, of a target that is
  // no class, stays.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return sum(losses) / where(equal(total, 0.0), full_like(total, kInfinity), total);
}

}  // namespace caldera::ops
