// Copies between the host and memory that the host cannot reach, through a staging buffer.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

#include "engine/device/vulkan/memory.h"

namespace caldera::vulkan {

/// One copy at a time, each waited for. Any thread. The staging memory is taken on first use.
class Transfer {
 public:
  explicit Transfer(DevicePtr device);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void upload(const Piece& to, std::uint64_t offset, const void* from, std::size_t bytes);
  void download(const Piece& from, std::uint64_t offset, void* to, std::size_t bytes);

 private:
  void open();
  void copy(VkBuffer from, std::uint64_t from_offset, VkBuffer to, std::uint64_t to_offset,
            std::uint64_t bytes);

  DevicePtr device_;
  std::mutex mutex_;
  std::unique_ptr<MemoryPool> pool_;
  Piece staging_;
  VkCommandPool commands_ = VK_NULL_HANDLE;
  VkCommandBuffer buffer_ = VK_NULL_HANDLE;
};

}  // namespace caldera::vulkan
