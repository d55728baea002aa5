#include "engine/device/vulkan/device.h"

#include <fmt/core.h>

#include <vector>

#include "engine/device/vulkan/exit_guard.h"
#include "engine/tensor/error.h"

namespace caldera::vulkan {
namespace {

std::atomic<TableHook> table_hook = nullptr;

}  // namespace

void set_table_hook(TableHook hook) { table_hook.store(hook); }

LogicalDevice::LogicalDevice(const PhysicalDevice& physical) : physical_(physical) {
  const Capabilities& can = physical.capabilities;
  std::vector<const char*> extensions;
  if (can.subgroup_size_control) extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  if (can.memory_budget) extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (can.cooperative_matrix) extensions.push_back(VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME);
  if (can.portability) extensions.push_back("VK_KHR_portability_subset");

  VkPhysicalDeviceCooperativeMatrixFeaturesNV matrices{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV,
      .cooperativeMatrix = VK_TRUE};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT sizes{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT,
      .pNext = can.cooperative_matrix ? &matrices : nullptr,
      .subgroupSizeControl = VK_TRUE,
      .computeFullSubgroups = VK_TRUE};
  VkPhysicalDeviceVulkan12Features v12{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                       .pNext = can.subgroup_size_control ? &sizes : nullptr};
  v12.bufferDeviceAddress = VK_TRUE;
  v12.timelineSemaphore = VK_TRUE;
  v12.scalarBlockLayout = VK_TRUE;
  v12.storageBuffer8BitAccess = can.storage_8bit;
  v12.shaderFloat16 = can.float16;
  v12.shaderInt8 = can.int8;
  VkPhysicalDeviceVulkan11Features v11{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                       .pNext = &v12};
  v11.storageBuffer16BitAccess = can.storage_16bit;
  VkPhysicalDeviceFeatures2 features{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v11};
  features.features.shaderFloat64 = can.float64;
  features.features.shaderInt64 = can.int64;
  features.features.shaderInt16 = can.int16;

  const float priority = 1.0F;
  const VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                      .queueFamilyIndex = physical.queue_family,
                                      .queueCount = 1,
                                      .pQueuePriorities = &priority};
  const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                .pNext = &features,
                                .queueCreateInfoCount = 1,
                                .pQueueCreateInfos = &queue,
                                .enabledExtensionCount = static_cast<std::uint32_t>(extensions.size()),
                                .ppEnabledExtensionNames = extensions.data()};
  vulkan::check(vkCreateDevice(physical.handle, &info, nullptr, &device_), "opening " + name());
  volkLoadDeviceTable(&vk_, device_);
  if (const TableHook hook = table_hook.load()) hook(vk_);
  vk_.vkGetDeviceQueue(device_, physical.queue_family, 0, &queue_);

  const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo semaphore{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  const VkResult result = vk_.vkCreateSemaphore(device_, &semaphore, nullptr, &timeline_);
  if (result != VK_SUCCESS) {
    vk_.vkDestroyDevice(device_, nullptr);
    vulkan::check(result, name() + ": creating the timeline");
  }
  guard_exit(device_, vk_);
}

LogicalDevice::~LogicalDevice() {
  unguard_exit(device_);
  vk_.vkDeviceWaitIdle(device_);
  vk_.vkDestroySemaphore(device_, timeline_, nullptr);
  vk_.vkDestroyDevice(device_, nullptr);
}

std::uint64_t LogicalDevice::submit(std::span<const VkCommandBuffer> commands) {
  check_alive();
  std::uint64_t value = 0;
  VkResult result = VK_SUCCESS;
  {
    const std::lock_guard lock(queue_mutex_);
    value = submitted_.load(std::memory_order_relaxed) + 1;
    const VkTimelineSemaphoreSubmitInfo timeline{.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                 .signalSemaphoreValueCount = 1,
                                                 .pSignalSemaphoreValues = &value};
    const VkSubmitInfo info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                            .pNext = &timeline,
                            .commandBufferCount = static_cast<std::uint32_t>(commands.size()),
                            .pCommandBuffers = commands.data(),
                            .signalSemaphoreCount = 1,
                            .pSignalSemaphores = &timeline_};
    result = vk_.vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE);
    if (result == VK_SUCCESS) {
      submitted_.store(value, std::memory_order_release);
      submits_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  check(result, "vkQueueSubmit");
  return value;
}

std::uint64_t LogicalDevice::completed() {
  const std::uint64_t known = completed_.load(std::memory_order_acquire);
  if (known == submitted() || is_lost()) return known;
  std::uint64_t value = 0;
  const VkResult result = vk_.vkGetSemaphoreCounterValue(device_, timeline_, &value);
  if (result == VK_ERROR_DEVICE_LOST) note_lost("asking how far the device is");
  if (result != VK_SUCCESS) return known;
  note_completed(value);
  return value;
}

void LogicalDevice::wait(std::uint64_t value) {
  if (completed_.load(std::memory_order_acquire) >= value) return;
  check_alive();
  const VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                 .semaphoreCount = 1,
                                 .pSemaphores = &timeline_,
                                 .pValues = &value};
  check(vk_.vkWaitSemaphores(device_, &info, UINT64_MAX), "waiting for the device");
  note_completed(value);
}

void LogicalDevice::settle(std::uint64_t value) noexcept {
  try {
    wait(value);
  } catch (const Error&) {
    const std::lock_guard lock(queue_mutex_);
    vk_.vkDeviceWaitIdle(device_);
  }
}

void LogicalDevice::note_completed(std::uint64_t value) {
  std::uint64_t known = completed_.load(std::memory_order_relaxed);
  while (known < value && !completed_.compare_exchange_weak(known, value, std::memory_order_release)) {
  }
}

void LogicalDevice::check_alive() const {
  if (is_lost()) throw DeviceError(lost_message_);
}

void LogicalDevice::check(VkResult result, std::string_view what) {
  if (result >= 0) return;
  if (result == VK_ERROR_DEVICE_LOST) {
    note_lost(what);
    check_alive();
  }
  throw DeviceError(fmt::format("{} ({}): {}: {}", name(), physical_.info.name, what, result_name(result)));
}

void LogicalDevice::note_lost(std::string_view what) {
  const std::lock_guard lock(lost_mutex_);
  if (is_lost()) return;
  // Its timeline may still say how far it came.
  std::uint64_t value = 0;
  if (vk_.vkGetSemaphoreCounterValue(device_, timeline_, &value) == VK_SUCCESS) note_completed(value);
  lost_message_ = fmt::format(
      "{} ({}) was lost ({}: VK_ERROR_DEVICE_LOST); {}; its tensors are gone: reopen_device() opens it anew",
      name(), physical_.info.name, what, flights_.describe(completed_.load(std::memory_order_acquire)));
  {
    // What is held for the device may be destroyed from now on: wait until it has really let go of it. A lost
    // device answers at once.
    const std::lock_guard queue_lock(queue_mutex_);
    vk_.vkDeviceWaitIdle(device_);
  }
  lost_.store(true, std::memory_order_release);
}

}  // namespace caldera::vulkan
