// Functions along one axis, of tensors without axes too.
#pragma once

#include <string>
#include <string_view>

#include "ops/core/views.h"

namespace caldera::ops {

/// f(x, axis) with the axis counted from 0. A tensor without axes is taken for one of one axis, which 0 and
/// -1 name, and the result has none either, as in PyTorch. Throws ShapeError naming `op`.
template <class F>
LazyTensor along_axis(std::string_view op, const LazyTensor& x, int axis, const F& f) {
  const bool single = x.rank() == 0 && (axis == 0 || axis == -1);
  if (single) return reshape(f(reshape(x, Shape{1}), 0), Shape{});
  return f(x, x.shape().normalize_axis(axis, std::string(op).c_str()));
}

}  // namespace caldera::ops
