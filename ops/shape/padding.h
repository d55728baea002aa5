// Margins that continue a tensor, as torch.nn.functional.pad makes them, along any axes. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Names what margins hold.
enum class PadMode { constant, reflect, replicate, circular };

/// x with margins of `low` elements before and `high` behind it, one of each for every axis, which continue
/// it by the mode. `value` is that of constant margins. Negative margins take elements away, once the others
/// are there; ShapeError where they take more than there are.
LazyTensor pad(const LazyTensor& x, const std::vector<std::int64_t>& low,
               const std::vector<std::int64_t>& high, PadMode mode, FillValue value = 0);
/// The elements mirrored at the first and the last, which are not repeated: 3 2 (1 2 3) 2 1. Margins are
/// smaller than the extent (ShapeError).
LazyTensor pad_reflect(const LazyTensor& x, const std::vector<std::int64_t>& low,
                       const std::vector<std::int64_t>& high);
/// The first and the last element repeated: 1 1 (1 2 3) 3 3. ShapeError where there is none.
LazyTensor pad_replicate(const LazyTensor& x, const std::vector<std::int64_t>& low,
                         const std::vector<std::int64_t>& high);
/// The elements from the other end: 2 3 (1 2 3) 1 2. Margins are no larger than the extent (ShapeError).
LazyTensor pad_circular(const LazyTensor& x, const std::vector<std::int64_t>& low,
                        const std::vector<std::int64_t>& high);

}  // namespace caldera
