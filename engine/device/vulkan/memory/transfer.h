// Copies between the host and memory that the host cannot reach, through a ring of staging slices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "engine/device/vulkan/memory/memory_pool.h"

namespace caldera::vulkan {

/// Any thread; one transfer at a time, in slices of which several are in flight: while the device copies one
/// the host fills or empties the next. A transfer is done when its call returns. It runs on the device's copy
/// queue where there is one, else among the computations. The staging memory is taken on first use.
class Transfer {
 public:
  explicit Transfer(DevicePtr device);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void upload(const Piece& to, std::uint64_t offset, const void* from, std::size_t bytes);
  void download(const Piece& from, std::uint64_t offset, void* to, std::size_t bytes);
  /// Gives the staging memory to its pool, until it is needed again.
  void trim();

 private:
  static constexpr std::size_t kSlices = 2;
  struct Slice {
    VkCommandBuffer commands = VK_NULL_HANDLE;
    std::uint64_t offset = 0;  // in the staging buffer
    std::byte* mapped = nullptr;
    std::uint64_t ticket = 0;       // of its last copy
    std::function<void()> arrived;  // what to do when that is done; may be empty
  };

  void open();
  /// The slice whose copy is the oldest, that copy done and dealt with.
  Slice& next_slice();
  void finish(Slice& slice);
  void copy(Slice& slice, VkBuffer from, std::uint64_t from_offset, VkBuffer to, std::uint64_t to_offset,
            std::uint64_t bytes);
  /// Runs a transfer; whatever happens, nothing of it is in flight afterwards.
  void whole(const std::function<void()>& transfer);

  DevicePtr device_;
  std::mutex mutex_;
  std::unique_ptr<MemoryPool> pool_;
  Piece staging_;
  VkCommandPool commands_ = VK_NULL_HANDLE;
  std::array<Slice, kSlices> slices_;
  std::size_t next_ = 0;
};

}  // namespace caldera::vulkan
