#include "engine/device/vulkan/open/device.h"

#include <fmt/core.h>

#include <cstdlib>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/environment.h"
#include "engine/device/vulkan/open/exit_guard.h"

namespace caldera::vulkan {
namespace {

std::atomic<TableHook> table_hook = nullptr;

bool copy_queue_forced() { return environment_flag("CALDERA_VULKAN_COPY_QUEUE"); }

}  // namespace

void set_table_hook(TableHook hook) { table_hook.store(hook); }

LogicalDevice::LogicalDevice(const PhysicalDevice& physical, DeviceUse use)
    : physical_(as_asked_for(physical)), use_(use) {
  const Capabilities& can = physical_.capabilities;
  std::vector<const char*> extensions;
  if (can.subgroup_size_control) extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  if (can.memory_budget) extensions.push_back(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  if (can.cooperative_matrix) extensions.push_back(kCooperativeMatrixExtension);
  if (can.bfloat16_matrix) extensions.push_back(kBfloat16Extension);
  if (can.uniform_control_flow)
    extensions.push_back(VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME);
  if (can.portability) extensions.push_back("VK_KHR_portability_subset");
  if (keeps_statistics()) extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);

  Bfloat16Features bfloat16{.type_in_shaders = VK_TRUE, .cooperative_matrix = VK_TRUE};
  CooperativeMatrixFeatures matrices{.next = can.bfloat16_matrix ? &bfloat16 : nullptr,
                                     .cooperative_matrix = VK_TRUE};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT sizes{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT,
      .pNext = can.cooperative_matrix ? &matrices : nullptr,
      .subgroupSizeControl = VK_TRUE,
      .computeFullSubgroups = VK_TRUE};
  VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR flow{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR,
      .pNext = can.subgroup_size_control ? &sizes : nullptr,
      .shaderSubgroupUniformControlFlow = VK_TRUE};
  VkPhysicalDeviceVulkan12Features v12{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                       .pNext = can.uniform_control_flow ? &flow : flow.pNext};
  v12.bufferDeviceAddress = VK_TRUE;
  v12.timelineSemaphore = VK_TRUE;
  v12.scalarBlockLayout = VK_TRUE;
  v12.storageBuffer8BitAccess = can.storage_8bit;
  v12.shaderFloat16 = can.float16;
  v12.shaderInt8 = can.int8;
  v12.vulkanMemoryModel = can.memory_model;
  v12.vulkanMemoryModelDeviceScope = can.memory_model;  // atomics have the scope of the device
  VkPhysicalDeviceVulkan11Features v11{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                       .pNext = &v12};
  v11.storageBuffer16BitAccess = can.storage_16bit;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
      .pNext = &v11,
      .pipelineExecutableInfo = VK_TRUE};
  VkPhysicalDeviceFeatures2 features{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = keeps_statistics() ? static_cast<void*>(&statistics) : &v11};
  features.features.shaderFloat64 = can.float64;
  features.features.shaderInt64 = can.int64;
  features.features.shaderInt16 = can.int16;

  const float priority = 1.0F;
  std::vector<VkDeviceQueueCreateInfo> queues{{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                               .queueFamilyIndex = physical.queue_family,
                                               .queueCount = 1,
                                               .pQueuePriorities = &priority}};
  if (physical.copy_family) {
    queues.push_back(queues[0]);
    queues[1].queueFamilyIndex = *physical.copy_family;
  }
  const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                .pNext = &features,
                                .queueCreateInfoCount = static_cast<std::uint32_t>(queues.size()),
                                .pQueueCreateInfos = queues.data(),
                                .enabledExtensionCount = static_cast<std::uint32_t>(extensions.size()),
                                .ppEnabledExtensionNames = extensions.data()};
  vulkan::check(vkCreateDevice(physical.handle, &info, nullptr, &device_), "opening " + name());
  volkLoadDeviceTable(&vk_, device_);
  if (const TableHook hook = table_hook.load()) hook(vk_);
  try {
    open_queues();
  } catch (...) {
    copy_.reset();
    compute_.reset();
    vk_.vkDestroyDevice(device_, nullptr);
    throw;
  }
  guard_exit(device_, vk_, [this] {
    const auto done = [](const std::unique_ptr<Queue>& queue) {
      return queue == nullptr || queue->last_completed() == queue->submitted();
    };
    return done(compute_) && done(copy_);
  });
}

void LogicalDevice::open_queues() {
  const auto open = [&](std::uint32_t family) {
    VkQueue queue = VK_NULL_HANDLE;
    vk_.vkGetDeviceQueue(device_, family, 0, &queue);
    try {
      return std::make_unique<Queue>(device_, vk_, queue, family, queue_mutex_);
    } catch (const Error& error) {
      throw DeviceError(name() + ": " + error.what());
    }
  };
  compute_ = open(physical_.queue_family);
  families_ = {physical_.queue_family};
  if (physical_.copy_family) {
    copy_ = open(*physical_.copy_family);
    families_.push_back(*physical_.copy_family);
  } else if (copy_queue_forced()) {
    copy_ = open(physical_.queue_family);
  }
}

LogicalDevice::~LogicalDevice() {
  unguard_exit(device_);
  vk_.vkDeviceWaitIdle(device_);
  copy_.reset();
  compute_.reset();
  vk_.vkDestroyDevice(device_, nullptr);
}

std::uint64_t LogicalDevice::submit(Queue& queue, std::span<const VkCommandBuffer> commands,
                                    const QueueWait& wait) {
  check_alive();
  std::uint64_t value = 0;
  check(queue.submit(commands, wait, value), "vkQueueSubmit");
  submits_.fetch_add(1, std::memory_order_relaxed);
  return value;
}

std::uint64_t LogicalDevice::submit(std::span<const VkCommandBuffer> commands) {
  if (copy_ == nullptr) return submit(*compute_, commands, {});
  // What one submit has waited for, all later ones see, too.
  const std::uint64_t copied = copy_->last_completed();
  if (copied <= copies_seen_.load(std::memory_order_acquire)) return submit(*compute_, commands, {});
  const std::uint64_t value =
      submit(*compute_, commands, {copy_->timeline(), copied, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT});
  std::uint64_t seen = copies_seen_.load(std::memory_order_relaxed);
  while (seen < copied && !copies_seen_.compare_exchange_weak(seen, copied, std::memory_order_release)) {
  }
  return value;
}

std::uint64_t LogicalDevice::submit_copy(std::span<const VkCommandBuffer> commands) {
  QueueWait wait;
  if (copy_ != nullptr)
    wait = {compute_->timeline(), compute_->last_completed(), VK_PIPELINE_STAGE_TRANSFER_BIT};
  return submit(copies(), commands, wait);
}

std::uint64_t LogicalDevice::completed() {
  if (!is_lost() && compute_->look() == VK_ERROR_DEVICE_LOST) note_lost("asking how far the device is");
  return compute_->last_completed();
}

void LogicalDevice::wait(Queue& queue, std::uint64_t value) {
  if (queue.last_completed() >= value) return;
  check_alive();
  check(queue.wait(value), "waiting for the device");
}

void LogicalDevice::wait(std::uint64_t value) { wait(*compute_, value); }
void LogicalDevice::wait_copy(std::uint64_t value) { wait(copies(), value); }

void LogicalDevice::settle(Queue& queue, std::uint64_t value) noexcept {
  try {
    wait(queue, value);
  } catch (const Error&) {
    const std::lock_guard lock(queue_mutex_);
    vk_.vkDeviceWaitIdle(device_);
  }
}

void LogicalDevice::settle(std::uint64_t value) noexcept { settle(*compute_, value); }
void LogicalDevice::settle_copy(std::uint64_t value) noexcept { settle(copies(), value); }

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
  compute_->look();
  lost_message_ = fmt::format(
      "{} ({}) was lost ({}: VK_ERROR_DEVICE_LOST); {}; its tensors are gone: reopen_device() opens it anew",
      name(), physical_.info.name, what, flights_.describe(compute_->last_completed()));
  {
    // What is held for the device may be destroyed from now on: wait until it has really let go of it. A lost
    // device answers at once.
    const std::lock_guard queue_lock(queue_mutex_);
    vk_.vkDeviceWaitIdle(device_);
  }
  lost_.store(true, std::memory_order_release);
}

}  // namespace caldera::vulkan
