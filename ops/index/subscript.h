// Defines what x[{...}] is.
#pragma once

#include <span>

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// x[entries]: the first axes are indexed in turn, those not named are taken whole. A view, with x's
/// gradient. Throws ShapeError for more entries than axes, ValueError for an index out of bounds, a step
/// of 0 or two ellipses.
LazyTensor subscript(const LazyTensor& x, std::span<const Index> entries);

}  // namespace caldera::ops
