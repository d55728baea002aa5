#include "engine/device/vulkan/memory/arena.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace caldera::vulkan {
namespace {

std::uint64_t bytes_of(const ArenaSegment& segment) {
  return static_cast<std::uint64_t>(segment.end - segment.begin);
}

/// The segments' numbers, the largest first.
std::vector<std::size_t> by_size(std::span<const ArenaSegment> segments) {
  std::vector<std::size_t> order(segments.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t s) { return bytes_of(segments[s]); });
  return order;
}

}  // namespace

SharedArena::SharedArena(std::shared_ptr<MemoryPool> pool)
    : pool_(std::move(pool)), reclaimer_(pool_->device()->memory(), Pressure::heavy, [this] {
        const std::lock_guard lock(mutex_);
        held_.clear();
      }) {}

Arena SharedArena::take(std::span<const ArenaSegment> segments, std::uint64_t now) {
  const std::vector<std::size_t> order = by_size(segments);
  Arena taken(segments.size());
  {
    const std::lock_guard lock(mutex_);
    // What is too small is given back first: old and new need not fit side by side, unless the old one is
    // still in use.
    for (std::size_t i = 0; i < std::min(order.size(), held_.size()); ++i) {
      Held& held = held_[i];
      const std::uint64_t bytes = bytes_of(segments[order[i]]);
      if (bytes >= held.storage->bytes() / 4) held.needed = now;
      if (held.storage->bytes() >= bytes) taken[order[i]] = held.storage;
    }
    std::erase_if(held_, [&, i = std::size_t{0}](const Held&) mutable {
      const std::size_t at = i++;
      return at < order.size() && taken[order[at]] == nullptr;
    });
  }
  if (std::ranges::find(taken, nullptr) == taken.end()) return taken;
  for (const std::size_t s : order) {
    if (taken[s] == nullptr) taken[s] = std::make_shared<VulkanStorage>(pool_, bytes_of(segments[s]));
  }
  const std::lock_guard lock(mutex_);
  for (const auto& storage : taken) {  // the new ones, and those that were let go of to make room for them
    if (std::ranges::find(held_, storage, &Held::storage) == held_.end()) held_.push_back({storage, now});
  }
  std::ranges::stable_sort(held_, std::ranges::greater(), [](const Held& h) { return h.storage->bytes(); });
  return taken;
}

void SharedArena::age(std::uint64_t since) {
  std::vector<Held> old;
  const std::lock_guard lock(mutex_);
  std::erase_if(held_, [&](Held& held) {
    if (held.needed > since) return false;
    old.push_back(std::move(held));
    return true;
  });
}

}  // namespace caldera::vulkan
