// The memory of intermediates on the Vulkan device, an allocation a segment.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/device/memory_budget.h"
#include "engine/device/vulkan/memory/memory_pool.h"
#include "engine/device/vulkan/memory/storage.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// The memory of a plan's segments, in their order.
using Arena = std::vector<std::shared_ptr<VulkanStorage>>;

/// One arena for all plans, as large as the largest needs: plans run one after the other. The segments of a
/// plan take the storages in order of size, so that the largest serves the largest of every plan. Under
/// pressure it lets go of its storages.
class SharedArena {
 public:
  explicit SharedArena(std::shared_ptr<MemoryPool> pool);

  /// A storage for each segment, at least as large. The caller holds them until the ticket of its work is
  /// noted there. `now` counts replays. Throws OutOfMemoryError. One thread at a time.
  Arena take(std::span<const ArenaSegment> segments, std::uint64_t now);
  /// Lets those go of which no replay since number `since` has needed a quarter. One thread at a time.
  void age(std::uint64_t since);

 private:
  struct Held {
    std::shared_ptr<VulkanStorage> storage;
    std::uint64_t needed = 0;  // the last replay that needed a quarter of it
  };

  const std::shared_ptr<MemoryPool> pool_;
  std::mutex mutex_;                   // pressure comes from any thread
  std::vector<Held> held_;             // the largest first
  MemoryBudget::Reclaimer reclaimer_;  // last: gone before what it uses
};

}  // namespace caldera::vulkan
