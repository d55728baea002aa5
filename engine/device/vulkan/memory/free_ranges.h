// The free ranges of a pool's blocks: best fit, joined with their neighbours when they come back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace caldera::vulkan {

/// A stretch of a block.
struct Range {
  std::uint32_t block = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

/// Every operation takes O(log n) of the free ranges; what is taken costs nothing. Not thread-safe. Knows no
/// device.
class FreeRanges {
 public:
  /// Blocks longer than this were made for one large range: a range of less than half is not cut from them,
  /// since it would keep the next large one out.
  explicit FreeRanges(std::uint64_t large_block) : large_block_(large_block) {}

  /// The shortest free range that is long enough, of several the one in the oldest block, cut to `bytes`.
  /// `in_need`: also from a large block.
  std::optional<Range> take(std::uint64_t bytes, bool in_need = false);
  /// Back, or for the first time: a new block is one free range from 0.
  void give(Range range);
  /// Removes the range if all of it is free and nothing before or behind it in the block is; whether it did.
  bool remove_whole(const Range& block);
  bool is_whole(const Range& block) const;
  std::size_t count() const { return by_size_.size(); }

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // block, offset

  const std::uint64_t large_block_;
  std::map<Key, std::uint64_t> by_place_;                                      // -> bytes
  std::set<std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>> by_size_;  // (bytes, block, offset)
};

}  // namespace caldera::vulkan
