// Checks the parameters of distributions. Private to ops/distributions/.
#pragma once

#include <string_view>

#include "engine/graph/lazy_tensor.h"

namespace caldera::ops {

/// Throws DTypeError that names both unless the parameter is floating.
void check_floating(std::string_view distribution, std::string_view parameter, const LazyTensor& x);
/// Broadcasts both to one shape and promotes them to one type. Throws ShapeError that names the distribution.
void share_shape(std::string_view distribution, LazyTensor& a, LazyTensor& b);

}  // namespace caldera::ops
