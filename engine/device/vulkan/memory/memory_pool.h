// Device memory: blocks from the driver, cut into slabs of small pieces and into large ones by best fit.
//
// Drivers allow few allocations and make them slowly; a training step makes thousands. A piece that work in
// flight still uses when it is given back waits until the timeline has passed that work. All pools of a
// device share its budget (LogicalDevice::memory): what they take from the driver, they take together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/device/memory_budget.h"
#include "engine/device/vulkan/memory/free_ranges.h"
#include "engine/device/vulkan/memory/memory_types.h"
#include "engine/device/vulkan/memory/slabs.h"
#include "engine/device/vulkan/open/device.h"

namespace caldera::vulkan {

struct Block;

/// A piece of a block. Plain data: whoever holds it gives it back to the pool.
struct Piece {
  Block* block = nullptr;
  Slab* slab = nullptr;      // that it is a part of, if it is small
  std::uint64_t offset = 0;  // in the block
  std::uint64_t bytes = 0;   // with padding
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceAddress address = 0;
  std::byte* mapped = nullptr;  // nullptr where the host cannot reach it
  /// Whether the host reads it where it is. Writing is fast wherever `mapped` is set; memory that the host
  /// does not cache is read at a crawl, and better copied to staging memory.
  bool readable = false;
};

struct MemoryCounters {
  std::uint64_t allocations = 0;  // blocks taken from the driver
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
};

/// Asks what the driver would still give from a heap: VK_EXT_memory_budget's budget less its usage. Nothing
/// where it cannot tell.
using HeapQuery = std::function<std::optional<std::uint64_t>(std::uint32_t heap)>;

/// The blocks of one use. They are in the best type of memory for it, and in the next one where that has no
/// more (memory_types.h). Any thread.
class MemoryPool {
 public:
  /// `force_unmapped`: tensors are treated as out of the host's reach even where they are not
  /// (CALDERA_VULKAN_STAGING=1). `heap_left`: asked before a block is taken; the driver's, if not given.
  MemoryPool(DevicePtr device, MemoryUse use, bool force_unmapped = false, HeapQuery heap_left = {});
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// 64-byte aligned, 256-byte where larger than 4 KiB. Where the budget, the heap or the driver has no more:
  /// waits for work in flight, returns the unused blocks of all pools to the driver, then drops arenas. Then
  /// throws OutOfMemoryError that names the bytes wanted, in use and present.
  Piece allocate(std::uint64_t bytes);
  /// Takes the piece back for use after the timeline has reached `last_use`.
  void release(const Piece& piece, std::uint64_t last_use);

  /// Returns to the driver the blocks beyond the smallest from which nothing was taken since the last call,
  /// and in which nothing is. Does not wait. Called now and then by whoever counts the work.
  void age();

  MemoryCounters counters() const;
  const DevicePtr& device() const { return device_; }

 private:
  /// A type of the device's memory.
  struct Type {
    std::uint32_t index = 0, heap = 0;
    bool mapped = false, readable = false;
  };

  bool try_allocate(std::uint64_t bytes, Piece& piece, VkResult& result);
  bool take(std::uint64_t bytes, Piece& piece, bool in_need = false);
  bool take_small(std::uint64_t bytes, Piece& piece);
  void set_piece(const Range& range, Slab* slab, Piece& piece);
  void put_back(const Piece& piece);
  void reclaim();
  void give_back();
  void drop_unused();
  std::uint64_t next_block_bytes() const;
  VkResult add_block(std::uint64_t bytes);
  VkResult make_block(Block& block, std::uint64_t bytes);
  VkResult allocate_from(const Type& type, Block& block, std::uint64_t bytes);
  std::string what_there_is(std::uint64_t wanted) const;
  void drop_idle_large_blocks();
  bool drop_if_unused(Block& block);
  void destroy(const Block& block);

  const DevicePtr device_;
  const MemoryUse use_;
  std::vector<Type> types_;  // the best first
  HeapQuery heap_left_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::unique_ptr<Block>> blocks_;  // by their number
  std::uint32_t next_number_ = 0;
  FreeRanges free_;
  Slabs slabs_;
  std::multimap<std::uint64_t, Piece> pending_;  // by last use
  std::uint64_t block_bytes_ = 0;                // of all blocks
  MemoryCounters counters_;
  std::optional<MemoryBudget::Reclaimer> reclaimer_;
};

}  // namespace caldera::vulkan
