// Sums, maxima and minima of the same element of several ranks. Internal to engine/distributed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/dtype.h"

namespace caldera::distributed {

enum class Combine : std::uint8_t { sum, max, min };

/// Combines `count` rows of `elements`, one behind the other, into the first by the fixed tree
/// (fixed_tree.h). Floats of 16 bits are combined as f32 and rounded once; integers wrap; of floats a NaN
/// wins.
void combine_rows(Combine combine, DType type, void* rows, std::int64_t count, std::int64_t elements);

}  // namespace caldera::distributed
