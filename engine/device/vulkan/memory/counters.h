// Counters in memory that host and device share, by which the workgroups of a dispatch find out which of them
// ends last.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/device/vulkan/memory/memory_pool.h"

namespace caldera::vulkan {

/// Zeros before and after every dispatch that counts, so that they are written but once. Dispatches of one
/// replay have counters of their own; replays, which never overlap, share them. Under the backend's order of
/// submits, but for the constructor.
class Counters {
 public:
  static constexpr std::int32_t kMost = 512;

  /// Of the tables' pool. Takes no memory before a counter is asked for.
  explicit Counters(std::shared_ptr<MemoryPool> pool) : pool_(std::move(pool)) {}
  ~Counters();
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;

  /// Of counter `number` < kMost. Throws OutOfMemoryError, DeviceError.
  VkDeviceAddress address(std::int32_t number);
  /// Makes them zeros again. Nothing that counts may be in flight: a replay whose submits failed half way has
  /// left numbers.
  void clear();

 private:
  /// Apart from each other, so that no two are in one line of a cache.
  static constexpr std::uint64_t kBytes = 64;

  const std::shared_ptr<MemoryPool> pool_;
  Piece memory_;
};

}  // namespace caldera::vulkan
