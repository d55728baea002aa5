// Sums, means and maxima of rows of a table. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

enum class BagMode : std::uint8_t { sum, mean, max };

struct EmbeddingBagOptions {
  BagMode mode = BagMode::mean;
  /// Says where the bags begin in indices of one axis, ascending from 0; undefined for indices of two axes,
  /// whose rows are the bags.
  LazyTensor offsets = {};
  /// A factor for each index, of the shape of these. Sums only.
  LazyTensor per_sample_weights = {};
  bool include_last_offset = false;  // the last offset is where the last bag ends
  std::optional<std::int64_t> padding_idx =
      {};  // rows with this index count for nothing; negative: from the end
};

/// Combines for each bag the rows of `weight` (count, features) with its indices: (bags, features), zeros for
/// bags of none. An index outside gives NaN. Of equal rows of a maximum one has the gradient or all share it.
/// Throws ShapeError, DTypeError, ValueError for weights of what is no sum and a padding_idx outside.
LazyTensor embedding_bag(const LazyTensor& weight, const LazyTensor& indices,
                         const EmbeddingBagOptions& options = {});

}  // namespace caldera
