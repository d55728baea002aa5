// pack(): several sequences in a row, so that no computation is spent on padding.
//
// Sequences of a row do not see one another: attention is block-diagonal and positions begin again with each
// (lm/nn/attention/packed_texts.h), so that losses and gradients are those of the same sequences in rows of
// their own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace caldera {

/// Distributes sequences of `lengths` over rows of `capacity` by best-fit decreasing (Johnson, 1973: at most
/// 11/9 of the fewest possible rows): the longest first, each into the fullest row that has room for it.
/// Returns the positions in `lengths` of each row's sequences, rows in the order in which they were begun;
/// equal lengths keep their order. Throws ValueError for a length that is not in 1 to capacity.
std::vector<std::vector<std::int64_t>> pack(std::span<const std::int64_t> lengths, std::int64_t capacity);

}  // namespace caldera
