// A tensor's memory on the Vulkan device.
#pragma once

#include <atomic>
#include <memory>

#include "engine/base/error.h"
#include "engine/device/vulkan/memory/memory_pool.h"
#include "engine/tensor/storage.h"

namespace caldera::vulkan {

/// A piece of the pool of tensors. Shares ownership of the pool, so it may outlive the backend.
class VulkanStorage final : public Storage {
 public:
  VulkanStorage(std::shared_ptr<MemoryPool> pool, std::size_t bytes)
      : Storage(pool->device()->physical().info.device, bytes),
        pool_(std::move(pool)),
        piece_(pool_->allocate(bytes)) {}
  ~VulkanStorage() override { pool_->release(piece_, last_use_.load(std::memory_order_acquire)); }

  std::byte* host_data() override { return piece_.mapped; }
  VkDeviceAddress address() const { return piece_.address; }
  const Piece& piece() const { return piece_; }
  /// Throws DeviceError where the storage is not of this opening of the device: its device was lost, or has
  /// been reopened since.
  void check_owner(const LogicalDevice& device) const {
    if (pool_->device().get() == &device) return;
    pool_->device()->check_alive();
    throw DeviceError(
        device.name() +
        ": a tensor made before reopen_device() is of no use on the device as it is now; copy it "
        "to the host before");
  }
  /// Notes that work up to `ticket` touches the storage.
  void used_until(std::uint64_t ticket) { last_use_.store(ticket, std::memory_order_release); }

 private:
  std::shared_ptr<MemoryPool> pool_;
  Piece piece_;
  std::atomic<std::uint64_t> last_use_{0};
};

}  // namespace caldera::vulkan
