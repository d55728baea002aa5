#include "engine/compile/arena/free_space.h"

#include <iterator>

namespace caldera {

std::int64_t FreeSpace::take(std::int64_t bytes) {
  const auto fit = by_size_.lower_bound({bytes, 0});
  if (fit != by_size_.end()) {
    const auto [size, offset] = *fit;
    remove(offset, size);
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }
  const std::int64_t offset = growth_offset();
  if (offset < end_) remove(offset, end_ - offset);
  end_ = offset + bytes;
  return offset;
}

void FreeSpace::give(std::int64_t offset, std::int64_t bytes) {
  auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.end() && offset + bytes == next->first) {
    bytes += next->second;
    remove(next->first, next->second);
  }
  next = by_offset_.lower_bound(offset);
  if (next != by_offset_.begin()) {
    const auto [before, size] = *std::prev(next);
    if (before + size == offset) {
      remove(before, size);
      offset = before;
      bytes += size;
    }
  }
  add(offset, bytes);
}

std::optional<std::int64_t> FreeSpace::fit(std::int64_t bytes) const {
  const auto found = by_size_.lower_bound({bytes, 0});
  if (found == by_size_.end()) return std::nullopt;
  return found->first;
}

std::int64_t FreeSpace::growth_offset() const {
  if (by_offset_.empty()) return end_;
  const auto [last, size] = *std::prev(by_offset_.end());
  return last + size == end_ ? last : end_;
}

void FreeSpace::add(std::int64_t offset, std::int64_t bytes) {
  by_offset_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
}

void FreeSpace::remove(std::int64_t offset, std::int64_t bytes) {
  by_offset_.erase(offset);
  by_size_.erase({bytes, offset});
}

}  // namespace caldera
