// The fixed binary tree by which sums are made, so that their bits depend neither on who adds nor on how many
// add.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace caldera::distributed {

/// Returns where the tree over [begin, end) divides: its left part has the larger half.
constexpr std::int64_t tree_middle(std::int64_t begin, std::int64_t end) {
  return begin + (end - begin + 1) / 2;
}

/// Returns how many sums are due once leaf `leaf` of `count` is there, where leaves come in order and partial
/// sums wait on a stack: each adds the two newest.
constexpr int sums_due(std::int64_t leaf, std::int64_t count) {
  int sums = 0;
  for (std::int64_t begin = 0, end = count; end - begin > 1;) {
    if (leaf == end - 1) ++sums;
    const std::int64_t middle = tree_middle(begin, end);
    (leaf < middle ? end : begin) = middle;
  }
  return sums;
}

/// The leaves [first, second) of `count` that rank `rank` of `size` has. Where `size` is a power of two they
/// are a part of the tree over all leaves, and the tree over ranks is its top.
constexpr std::pair<std::int64_t, std::int64_t> leaves_of_rank(std::int64_t count, std::int64_t rank,
                                                               std::int64_t size) {
  if (size < 1 || (size & (size - 1)) != 0) return {count * rank / size, count * (rank + 1) / size};
  std::int64_t begin = 0, end = count, first = 0, last = size;
  while (last - first > 1) {
    const std::int64_t middle = tree_middle(begin, end), half = (first + last) / 2;
    (rank < half ? end : begin) = middle;
    (rank < half ? last : first) = half;
  }
  return {begin, end};
}

}  // namespace caldera::distributed
