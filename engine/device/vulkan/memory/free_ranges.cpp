#include "engine/device/vulkan/memory/free_ranges.h"

#include <iterator>

namespace caldera::vulkan {

std::optional<Range> FreeRanges::take(std::uint64_t bytes, bool in_need) {
  const auto fit = by_size_.lower_bound({bytes, 0, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [size, block, offset] = *fit;
  if (!in_need && size > large_block_ && bytes < size / 2) return std::nullopt;
  by_size_.erase(fit);
  by_place_.erase({block, offset});
  if (size > bytes) {
    by_place_.emplace(Key{block, offset + bytes}, size - bytes);
    by_size_.emplace(size - bytes, block, offset + bytes);
  }
  return Range{block, offset, bytes};
}

void FreeRanges::give(Range range) {
  auto next = by_place_.lower_bound({range.block, range.offset});
  if (next != by_place_.end() && next->first == Key{range.block, range.offset + range.bytes}) {
    range.bytes += next->second;
    by_size_.erase({next->second, next->first.first, next->first.second});
    next = by_place_.erase(next);
  }
  if (next != by_place_.begin()) {
    const auto before = std::prev(next);
    const auto [block, offset] = before->first;
    if (block == range.block && offset + before->second == range.offset) {
      range.offset = offset;
      range.bytes += before->second;
      by_size_.erase({before->second, block, offset});
      by_place_.erase(before);
    }
  }
  by_place_.emplace(Key{range.block, range.offset}, range.bytes);
  by_size_.emplace(range.bytes, range.block, range.offset);
}

bool FreeRanges::is_whole(const Range& block) const {
  const auto found = by_place_.find({block.block, block.offset});
  return found != by_place_.end() && found->second == block.bytes;
}

bool FreeRanges::remove_whole(const Range& block) {
  if (!is_whole(block)) return false;
  by_place_.erase({block.block, block.offset});
  by_size_.erase({block.bytes, block.block, block.offset});
  return true;
}

}  // namespace caldera::vulkan
