// Device memory: blocks from the driver, cut into pieces with a best-fit free list.
//
// Drivers allow few allocations and make them slowly; a training step makes thousands. A piece that work in
// flight still uses when it is given back waits until the timeline has passed that work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "engine/device/vulkan/device.h"

namespace caldera::vulkan {

/// What memory is for, which decides its type.
enum class MemoryUse : std::uint8_t {
  tensors,  // device-local, mapped where that costs nothing
  tables,   // written by the host at every replay, read by kernels
  staging,  // copies to and from the host
};

struct Block;

/// A piece of a block. Plain data: whoever holds it gives it back to the pool.
struct Piece {
  Block* block = nullptr;
  std::uint64_t offset = 0;  // in the block
  std::uint64_t bytes = 0;   // with padding
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceAddress address = 0;
  std::byte* mapped = nullptr;  // nullptr where the host cannot reach it
};

struct MemoryCounters {
  std::uint64_t allocations = 0;  // blocks taken from the driver
  std::uint64_t live_bytes = 0;
  std::uint64_t peak_bytes = 0;
};

/// The blocks of one use. Any thread.
class MemoryPool {
 public:
  /// `force_unmapped`: tensors are treated as out of the host's reach even where they are not
  /// (CALDERA_VULKAN_STAGING=1).
  MemoryPool(DevicePtr device, MemoryUse use, bool force_unmapped = false);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// 256-byte aligned. Waits for work in flight and returns unused blocks to the driver before it gives up
  /// with a DeviceError that names the bytes wanted, in use and present.
  Piece allocate(std::uint64_t bytes);
  /// Takes the piece back for use after the timeline has reached `last_use`.
  void release(const Piece& piece, std::uint64_t last_use);

  /// Whether pieces are mapped and fast for the host to read.
  bool mapped() const { return mapped_; }
  MemoryCounters counters() const;
  const DevicePtr& device() const { return device_; }

 private:
  struct Pending {
    Piece piece;
    std::uint64_t last_use;
  };

  bool take(std::uint64_t bytes, Piece& piece);
  VkResult add_block(std::uint64_t bytes);
  void reclaim(bool everything);
  void insert_free(Block* block, std::uint64_t offset, std::uint64_t bytes);
  void trim();
  void destroy(Block* block);

  DevicePtr device_;
  std::uint32_t type_ = 0;
  std::uint64_t heap_bytes_ = 0;
  bool mapped_ = false;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::set<std::tuple<std::uint64_t, Block*, std::uint64_t>> free_;  // (bytes, block, offset)
  std::vector<Pending> pending_;
  std::uint64_t block_bytes_ = 0;  // of all blocks
  MemoryCounters counters_;
};

}  // namespace caldera::vulkan
