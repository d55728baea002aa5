// Counters in memory that host and device share, by which the workgroups of a dispatch find out which of them
// ends last.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/device/vulkan/memory/memory_pool.h"

namespace caldera::vulkan {

/// Zeros before and after every dispatch that counts, so that they are written but once. Dispatches of one
/// replay have counters of their own; replays, which never overlap, share them.
class Counters {
 public:
  static constexpr std::int32_t kMost = 512;

  /// Takes its memory from the tables' pool. Takes no memory before reserve().
  explicit Counters(std::shared_ptr<MemoryPool> pool) : pool_(std::move(pool)) {}
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  /// Sees to it that they are there. Any thread; by whoever will ask for addresses. Throws OutOfMemoryError,
  /// DeviceError.
  void reserve();
  /// Returns the address of counter `number` < kMost.
  VkDeviceAddress address(std::int32_t number) const;
  /// Makes them zeros again: a replay whose submits failed half way has left numbers. Under the backend's
  /// order of submits, when nothing that was submitted runs any more.
  void clear();

 private:
  /// Apart from each other, so that no two are in one line of a cache.
  static constexpr std::uint64_t kBytes = 64;

  const std::shared_ptr<MemoryPool> pool_;
  std::mutex mutex_;  // of reserve(): memory_ stays as it is from then on
  Piece memory_;
};

}  // namespace caldera::vulkan
