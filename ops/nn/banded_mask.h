// The mask of attention over a band of keys.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// mask[i][j] of AttentionOptions: j <= i + offset if causal, i + offset - window < j and j < i + offset +
/// window with a window. Shape (queries, keys), boolean. The offset is an argument of the plan. Undefined
/// where all are visible.
LazyTensor banded_mask(std::int64_t queries, std::int64_t keys, std::int64_t offset, bool causal,
                       std::optional<std::int64_t> window, Device device);

}  // namespace caldera
