#include "engine/device/vulkan/executable.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "engine/device/vulkan/encoder.h"
#include "engine/tensor/error.h"

namespace caldera::vulkan {
namespace {

/// Replays of one plan in flight at once: one runs, one waits, one is being prepared.
constexpr std::size_t kMaxInstances = 3;

}  // namespace

struct VulkanExecutable::Instance {
  explicit Instance(ContextPtr c) : context(std::move(c)) {}
  ~Instance() {
    // The commands may still run.
    try {
      context->device->wait(last_use);
    } catch (const Error&) {
      // A lost device runs nothing.
    }
    if (pool != VK_NULL_HANDLE)
      context->device->vk().vkDestroyCommandPool(context->device->handle(), pool, nullptr);
    if (table.block != nullptr) context->tables->release(table, last_use);
  }

  ContextPtr context;
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  Piece table;
  std::uint64_t last_use = 0;
};

VulkanExecutable::VulkanExecutable(ContextPtr context, std::shared_ptr<const Plan> plan)
    : Executable(std::move(plan)), context_(std::move(context)), recording_(encode(this->plan(), *context_)) {
  if (!recording_.dispatches.empty()) instances_.push_back(record());
}

VulkanExecutable::~VulkanExecutable() = default;

std::size_t VulkanExecutable::bytes() const {
  constexpr std::size_t kPool = std::size_t{32} << 10;  // that a driver takes for the commands of any plan
  constexpr std::size_t kCommand = 256;                 // for a dispatch: bind, push, dispatch, barrier
  const std::size_t recording = recording_.table.size() + recording_.dispatches.size() * sizeof(Dispatch) +
                                recording_.addresses.size() * sizeof(AddressPatch) +
                                recording_.scalars.size() * sizeof(ScalarPatch);
  const std::size_t instance = kPool + recording_.table.size() + recording_.dispatches.size() * kCommand;
  return recording + kMaxInstances * instance;
}

std::unique_ptr<VulkanExecutable::Instance> VulkanExecutable::record() {
  const LogicalDevice& device = *context_->device;
  const VolkDeviceTable& vk = device.vk();
  auto instance = std::make_unique<Instance>(context_);
  instance->table = context_->tables->allocate(recording_.table.size());
  std::memcpy(instance->table.mapped, recording_.table.data(), recording_.table.size());

  const VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                     .queueFamilyIndex = device.physical().queue_family};
  check(vk.vkCreateCommandPool(device.handle(), &pool, nullptr, &instance->pool), "creating commands");
  const VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                             .commandPool = instance->pool,
                                             .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                             .commandBufferCount = 1};
  check(vk.vkAllocateCommandBuffers(device.handle(), &allocate, &instance->commands), "creating commands");

  VkCommandBuffer commands = instance->commands;
  const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  check(vk.vkBeginCommandBuffer(commands, &begin), "recording a plan");
  const auto barrier = [&](VkPipelineStageFlags from, VkAccessFlags wrote, VkPipelineStageFlags to,
                           VkAccessFlags will) {
    const VkMemoryBarrier memory{
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = wrote, .dstAccessMask = will};
    vk.vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
  };
  constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  constexpr VkAccessFlags kReadWrite = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  // Earlier submits: their results, and the arena that they may still use.
  barrier(kCompute | VK_PIPELINE_STAGE_TRANSFER_BIT,
          VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, kCompute, kReadWrite);
  VkPipeline bound = VK_NULL_HANDLE;
  for (const Dispatch& dispatch : recording_.dispatches) {
    if (dispatch.barrier_before) barrier(kCompute, VK_ACCESS_SHADER_WRITE_BIT, kCompute, kReadWrite);
    if (dispatch.pipeline != bound) {
      vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline);
      bound = dispatch.pipeline;
    }
    const VkDeviceAddress block = instance->table.address + dispatch.block;
    vk.vkCmdPushConstants(commands, context_->pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                          sizeof block, &block);
    vk.vkCmdDispatch(commands, dispatch.groups, dispatch.instances, 1);
  }
  barrier(kCompute, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  check(vk.vkEndCommandBuffer(commands), "recording a plan");
  return instance;
}

VulkanExecutable::Instance& VulkanExecutable::free_instance() {
  const std::uint64_t done = context_->device->completed();
  for (const auto& instance : instances_) {
    if (instance->last_use <= done) return *instance;
  }
  if (instances_.size() < kMaxInstances) {
    instances_.push_back(record());
    return *instances_.back();
  }
  Instance& oldest = **std::ranges::min_element(instances_, {}, [](const auto& i) { return i->last_use; });
  context_->device->wait(oldest.last_use);
  return oldest;
}

std::uint64_t VulkanExecutable::replay(const Bindings& bindings) {
  const Plan& p = plan();
  const auto slots = static_cast<std::size_t>(p.input_count) + static_cast<std::size_t>(p.output_count);
  if (bindings.slots.size() != slots || bindings.scalars.size() != p.scalars.size())
    throw PlanError(fmt::format("{}: {} slots and {} scalars bound to a plan of {} and {}",
                                context_->device->name(), bindings.slots.size(), bindings.scalars.size(),
                                slots, p.scalars.size()));
  if (recording_.dispatches.empty()) return context_->device->submitted();

  Instance& instance = free_instance();
  VulkanStorage* arena =
      p.arena_bytes > 0 ? &context_->arena(static_cast<std::uint64_t>(p.arena_bytes)) : nullptr;
  std::byte* const table = instance.table.mapped;
  for (const AddressPatch& patch : recording_.addresses) {
    VkDeviceAddress address = 0;
    if (patch.slot == AddressPatch::kArena) {
      address = arena->address();
    } else {
      const Bindings::Slot& slot = bindings.slots[static_cast<std::size_t>(patch.slot)];
      if (slot.storage == nullptr)
        throw PlanError(
            fmt::format("{}: nothing is bound to slot {} of a plan", context_->device->name(), patch.slot));
      address = static_cast<const VulkanStorage*>(slot.storage)->address() +
                static_cast<std::uint64_t>(slot.byte_offset);
    }
    address += static_cast<std::uint64_t>(patch.offset);
    std::memcpy(table + patch.at, &address, sizeof address);
  }
  for (const ScalarPatch& patch : recording_.scalars) {
    std::memcpy(table + patch.at, &bindings.scalars[static_cast<std::size_t>(patch.scalar)], 8);
  }

  const std::uint64_t ticket = context_->device->submit(instance.commands);
  instance.last_use = ticket;
  if (arena != nullptr) arena->used_until(ticket);
  for (const Bindings::Slot& slot : bindings.slots) {
    if (slot.storage != nullptr) static_cast<VulkanStorage*>(slot.storage)->used_until(ticket);
  }
  return ticket;
}

}  // namespace caldera::vulkan
