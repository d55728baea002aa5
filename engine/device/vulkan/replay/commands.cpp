#include "engine/device/vulkan/replay/commands.h"

namespace caldera::vulkan {
namespace {

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkAccessFlags kReadWrite = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;

}  // namespace

Commands::Commands(ContextPtr context, VkDeviceAddress table) : context_(std::move(context)), table_(table) {
  LogicalDevice& device = *context_->device;
  const VkCommandPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                     .queueFamilyIndex = device.physical().queue_family};
  device.check(device.vk().vkCreateCommandPool(device.handle(), &info, nullptr, &pool_), "creating commands");
}

Commands::~Commands() {
  context_->device->vk().vkDestroyCommandPool(context_->device->handle(), pool_, nullptr);
}

VkCommandBuffer Commands::record(const Recording& recording, const Part& part, const Marks& marks,
                                 const std::vector<bool>& spared) {
  LogicalDevice& device = *context_->device;
  const VolkDeviceTable& vk = device.vk();
  const VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                             .commandPool = pool_,
                                             .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                             .commandBufferCount = 1};
  VkCommandBuffer commands = VK_NULL_HANDLE;
  device.check(vk.vkAllocateCommandBuffers(device.handle(), &allocate, &commands), "creating commands");

  const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  device.check(vk.vkBeginCommandBuffer(commands, &begin), "recording a plan");
  const auto barrier = [&](VkPipelineStageFlags from, VkAccessFlags wrote, VkPipelineStageFlags to,
                           VkAccessFlags will) {
    const VkMemoryBarrier memory{
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = wrote, .dstAccessMask = will};
    vk.vkCmdPipelineBarrier(commands, from, to, 0, 1, &memory, 0, nullptr, 0, nullptr);
  };
  const bool is_first = buffers_.empty();
  const bool is_last = part.last == recording.dispatches.size() && part.ends_dispatch();
  const auto take = [&](std::size_t number) {
    if (marks.stamps != nullptr) marks.stamps->take(commands, static_cast<std::uint32_t>(number));
  };
  if (is_first && marks.stamps != nullptr) marks.stamps->reset(commands);
  // Earlier submits: their results, and the arena that they may still use.
  if (is_first) {
    barrier(kCompute | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT, kCompute, kReadWrite);
  }
  if (!marks.each_dispatch || is_first) take(2 * buffers_.size());
  const Pipeline* bound = nullptr;
  bool barrier_next = false;  // left by dispatches that are spared
  for (std::size_t i = part.first; i < part.last; ++i) {
    const Dispatch& dispatch = recording.dispatches[i];
    barrier_next = barrier_next || (dispatch.barrier_before && i > 0 && part.slice == 0);
    if (i >= spared.size() || !spared[i]) {
      if (barrier_next) barrier(kCompute, VK_ACCESS_SHADER_WRITE_BIT, kCompute, kReadWrite);
      barrier_next = false;
      if (dispatch.pipeline.get() != bound) {
        vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch.pipeline->handle());
        bound = dispatch.pipeline.get();
      }
      KernelPush push{table_ + dispatch.block, dispatch.groups};
      if (dispatch.finish_counter >= 0) {
        push.turns = dispatch.groups * dispatch.instances;
        push.finish_arguments = table_ + dispatch.finish_block;
        push.finish_counter = context_->counters.address(dispatch.finish_counter);
      }
      vk.vkCmdPushConstants(commands, context_->pipelines.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            sizeof push, &push);
      const GroupRange groups = groups_of(dispatch, part.slice, part.slices);
      if (part.slices == 1)
        vk.vkCmdDispatch(commands, groups.x, groups.y, 1);
      else
        vk.vkCmdDispatchBase(commands, groups.first_x, groups.first_y, 0, groups.x, groups.y, 1);
    }
    if (marks.each_dispatch && part.ends_dispatch()) take(i + 1);
  }
  if (barrier_next) barrier(kCompute, VK_ACCESS_SHADER_WRITE_BIT, kCompute, kReadWrite);
  if (is_last)
    barrier(kCompute, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  if (!marks.each_dispatch) take(2 * buffers_.size() + 1);
  device.check(vk.vkEndCommandBuffer(commands), "recording a plan");
  buffers_.push_back(commands);
  return commands;
}

}  // namespace caldera::vulkan
