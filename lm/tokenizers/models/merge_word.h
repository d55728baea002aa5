// The merge loop of byte-pair encoding. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <vector>

#include "lm/tokenizers/models/merge_table.h"

namespace caldera::detail {

/// Merges the ids of `symbols` from `begin` on until no two neighbours have a merge: always a pair of the
/// lowest rank, of equal ones the leftmost. O(n log n). Throws ValueError for more than 2^31 of them.
void merge_word(const MergeTable& merges, std::vector<std::int32_t>& symbols, std::size_t begin);

}  // namespace caldera::detail
