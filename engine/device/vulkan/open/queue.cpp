#include "engine/device/vulkan/open/queue.h"

namespace caldera::vulkan {

Queue::Queue(VkDevice device, const VolkDeviceTable& table, VkQueue queue, std::uint32_t family,
             std::mutex& mutex)
    : device_(device), vk_(table), queue_(queue), family_(family), mutex_(mutex) {
  const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  check(vk_.vkCreateSemaphore(device_, &info, nullptr, &timeline_), "creating a timeline");
}

Queue::~Queue() { vk_.vkDestroySemaphore(device_, timeline_, nullptr); }

VkResult Queue::submit(std::span<const VkCommandBuffer> commands, const QueueWait& wait,
                       std::uint64_t& value) {
  const std::lock_guard lock(mutex_);
  value = submitted_.load(std::memory_order_relaxed) + 1;
  const std::uint32_t waits = wait.timeline != VK_NULL_HANDLE ? 1 : 0;
  const VkTimelineSemaphoreSubmitInfo timeline{.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                               .waitSemaphoreValueCount = waits,
                                               .pWaitSemaphoreValues = &wait.value,
                                               .signalSemaphoreValueCount = 1,
                                               .pSignalSemaphoreValues = &value};
  const VkSubmitInfo info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                          .pNext = &timeline,
                          .waitSemaphoreCount = waits,
                          .pWaitSemaphores = waits > 0 ? &wait.timeline : nullptr,
                          .pWaitDstStageMask = waits > 0 ? &wait.stages : nullptr,
                          .commandBufferCount = static_cast<std::uint32_t>(commands.size()),
                          .pCommandBuffers = commands.data(),
                          .signalSemaphoreCount = 1,
                          .pSignalSemaphores = &timeline_};
  const VkResult result = vk_.vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE);
  if (result == VK_SUCCESS) submitted_.store(value, std::memory_order_release);
  return result;
}

VkResult Queue::look() {
  if (last_completed() == submitted()) return VK_SUCCESS;
  std::uint64_t value = 0;
  const VkResult result = vk_.vkGetSemaphoreCounterValue(device_, timeline_, &value);
  if (result == VK_SUCCESS) note_completed(value);
  return result;
}

VkResult Queue::wait(std::uint64_t value) {
  if (last_completed() >= value) return VK_SUCCESS;
  const VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                 .semaphoreCount = 1,
                                 .pSemaphores = &timeline_,
                                 .pValues = &value};
  const VkResult result = vk_.vkWaitSemaphores(device_, &info, UINT64_MAX);
  if (result == VK_SUCCESS) note_completed(value);
  return result;
}

void Queue::note_completed(std::uint64_t value) {
  std::uint64_t known = completed_.load(std::memory_order_relaxed);
  while (known < value && !completed_.compare_exchange_weak(known, value, std::memory_order_release)) {
  }
}

}  // namespace caldera::vulkan
