// Rows: a tensor as rows along one of its axes, and what is picked out of each by position. Internal to
// ops/sort/.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <limits>

#include "ops/core/gather_scatter.h"
#include "ops/core/views.h"
#include "ops/sort/row_order.h"

namespace caldera::ops {

/// A tensor as rows (rows, n) along one of its axes.
class Rows {
 public:
  Rows(const LazyTensor& x, int axis, const char* op) : at_(x.shape().normalize_axis(axis, op)) {
    constexpr std::int64_t kLongest = std::int64_t{1} << 28;
    if (x.shape(at_) > kLongest || x.numel() > std::numeric_limits<std::int32_t>::max()) {
      throw ShapeError(fmt::format("{}: {} has more elements than int32 can order; an axis has at most 2^28",
                                   op, x.shape().to_string()));
    }
    const LazyTensor moved = swapaxes(x, at_, -1);
    shape_ = moved.shape();
    length_ = shape_[-1 + shape_.rank()];
    flat_ = length_ == 0 ? reshape(moved, Shape{0, 0}) : reshape(moved, Shape{x.numel() / length_, length_});
  }

  const LazyTensor& flat() const { return flat_; }
  std::int64_t length() const { return length_; }
  bool empty() const { return flat_.numel() == 0; }

  /// The elements at `positions` (rows, count), none of which comes twice in a row. A gather, so that
  /// gradients are scattered back.
  LazyTensor at(const LazyTensor& positions) const {
    return gathered(flat_, positions, 1, Indices::distinct);
  }

  /// Puts what belongs to the rows, (rows, count), in the place of the axis.
  LazyTensor restored(const LazyTensor& y) const {
    Shape shape = shape_;
    shape[shape.rank() - 1] = y.shape(1);
    return swapaxes(reshape(y, shape), at_, -1);
  }

 private:
  int at_;
  Shape shape_;  // with the axis last
  std::int64_t length_;
  LazyTensor flat_;
};

/// Finds where the first elements in order are, as `restored`. Not of empty rows.
inline LazyTensor positions_of(const Rows& rows, bool descending, std::int64_t count) {
  return order_of_rows(rows.flat(), descending, 0, count);
}
/// Finds where the elements are that come in places `first` to `last` of the ascending order, that one
/// included.
inline LazyTensor positions_between(const Rows& rows, std::int64_t first, std::int64_t last) {
  return order_of_rows(rows.flat(), false, first, last + 1 - first);
}

}  // namespace caldera::ops
