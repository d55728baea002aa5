#include "ops/index/at.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "ops/core/broadcast.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/operands.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"

namespace caldera {

At::At(LazyTensor x, std::vector<Slice> slices)
    : x_(std::move(x)), slices_(std::move(slices)), shape_(x_.shape()) {
  const auto rank = static_cast<std::size_t>(x_.rank());
  if (slices_.size() > rank)
    throw ShapeError(
        fmt::format("at: {} slices for the {} axes of {}", slices_.size(), rank, x_.shape().to_string()));
  slices_.resize(rank);
  low_.resize(rank);
  high_.resize(rank);
  interior_.resize(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const int axis = static_cast<int>(i);
    const std::int64_t n = x_.shape(axis);
    const auto [first, count, step] = ops::range_of("at", slices_[i], axis, n);
    const bool backwards = step < 0;
    const std::int64_t stride = backwards ? -step : step;
    shape_[axis] = count;
    if (backwards) turned_.push_back(axis);
    const std::int64_t covered = count == 0 ? 0 : (count - 1) * stride + 1;
    low_[i] = backwards && count > 0 ? first - covered + 1 : first;
    interior_[i] = stride - 1;
    high_[i] = n - low_[i] - covered;
  }
}

LazyTensor At::get() const {
  LazyTensor y = x_;
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    const Slice& s = slices_[i];
    if (s.start || s.stop || s.step != 1) y = slice(y, static_cast<int>(i), s.start, s.stop, s.step);
  }
  return y;
}

LazyTensor At::spread(const LazyTensor& values, double rest) const {
  LazyTensor y = ops::anchored(ops::as_held_operand("at", values, x_.dtype()), x_.device());
  if (broadcast_shapes(y.shape(), shape_, "at") != shape_)
    throw ShapeError(fmt::format("at: values of {} do not broadcast to the {} elements",
                                 values.shape().to_string(), shape_.to_string()));
  y = broadcast_to(y, shape_);
  for (const int axis : turned_) y = slice(y, axis, std::nullopt, std::nullopt, -1);
  return pad(y, low_, high_, rest, interior_);
}

void At::check_numeric() const { ops::check_domain("at", ScalarDomain::numeric, x_.dtype()); }

LazyTensor At::selected() const {
  return pad(full(shape_, 1, DType::boolean, x_.device()), low_, high_, 0, interior_);
}

LazyTensor At::set(const LazyTensor& values) const { return where(selected(), spread(values, 0), x_); }
LazyTensor At::add(const LazyTensor& values) const {
  check_numeric();
  return x_ + spread(values, 0);
}
LazyTensor At::multiply(const LazyTensor& values) const {
  check_numeric();
  return x_ * spread(values, 1);
}
LazyTensor At::minimum(const LazyTensor& values) const {
  check_numeric();
  return where(selected(), caldera::minimum(x_, spread(values, 0)), x_);
}
LazyTensor At::maximum(const LazyTensor& values) const {
  check_numeric();
  return where(selected(), caldera::maximum(x_, spread(values, 0)), x_);
}

}  // namespace caldera
