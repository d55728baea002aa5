// A queue of a device and its timeline: a number that grows with every submit and that the device reaches
// when the work is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

/// Work of another queue that a submit waits for. No wait where the semaphore is null.
struct QueueWait {
  VkSemaphore timeline = VK_NULL_HANDLE;
  std::uint64_t value = 0;
  VkPipelineStageFlags stages = 0;  // of the submitted commands that wait
};

/// Any thread. Results are Vulkan's: whose device it is says what an error means.
class Queue {
 public:
  /// `table` outlives the queue. Queues that share a VkQueue share `mutex`. Throws DeviceError.
  Queue(VkDevice device, const VolkDeviceTable& table, VkQueue queue, std::uint32_t family,
        std::mutex& mutex);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  std::uint32_t family() const { return family_; }
  VkSemaphore timeline() const { return timeline_; }
  /// Queues the commands behind all earlier ones; `value` is what the timeline reaches when they are done.
  VkResult submit(std::span<const VkCommandBuffer> commands, const QueueWait& wait, std::uint64_t& value);
  std::uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  /// Returns what the timeline was last seen to have reached.
  std::uint64_t last_completed() const { return completed_.load(std::memory_order_acquire); }
  /// Asks how far the timeline is.
  VkResult look();
  /// Sleeps until the timeline reaches the value.
  VkResult wait(std::uint64_t value);

 private:
  void note_completed(std::uint64_t value);

  VkDevice device_;
  const VolkDeviceTable& vk_;
  VkQueue queue_;
  std::uint32_t family_;
  std::mutex& mutex_;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> completed_{0};
};

}  // namespace caldera::vulkan
