// Settings of operations over spatial axes. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <vector>

namespace caldera {

/// One value for every spatial axis, or one each.
using Spatial = std::vector<std::int64_t>;

}  // namespace caldera
