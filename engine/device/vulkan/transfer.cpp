#include "engine/device/vulkan/transfer.h"

#include <algorithm>
#include <cstring>

namespace caldera::vulkan {
namespace {

constexpr std::size_t kStagingBytes = 4U << 20;

}  // namespace

Transfer::Transfer(DevicePtr device) : device_(std::move(device)) {}

Transfer::~Transfer() {
  if (commands_ != VK_NULL_HANDLE) device_->vk().vkDestroyCommandPool(device_->handle(), commands_, nullptr);
}

void Transfer::open() {
  if (buffer_ != VK_NULL_HANDLE) return;
  if (pool_ == nullptr) {
    pool_ = std::make_unique<MemoryPool>(device_, MemoryUse::staging);
    staging_ = pool_->allocate(kStagingBytes);
  }
  if (commands_ == VK_NULL_HANDLE) {
    const VkCommandPoolCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT | VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = device_->physical().queue_family};
    check(device_->vk().vkCreateCommandPool(device_->handle(), &info, nullptr, &commands_),
          "creating the transfer commands");
  }
  const VkCommandBufferAllocateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                         .commandPool = commands_,
                                         .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                         .commandBufferCount = 1};
  check(device_->vk().vkAllocateCommandBuffers(device_->handle(), &info, &buffer_),
        "creating the transfer commands");
}

void Transfer::copy(VkBuffer from, std::uint64_t from_offset, VkBuffer to, std::uint64_t to_offset,
                    std::uint64_t bytes) {
  const VolkDeviceTable& vk = device_->vk();
  const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                       .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  check(vk.vkBeginCommandBuffer(buffer_, &begin), "recording a copy");
  const VkMemoryBarrier before{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
  vk.vkCmdPipelineBarrier(buffer_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &before, 0, nullptr, 0, nullptr);
  const VkBufferCopy region{.srcOffset = from_offset, .dstOffset = to_offset, .size = bytes};
  vk.vkCmdCopyBuffer(buffer_, from, to, 1, &region);
  const VkMemoryBarrier after{
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
      .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
      .dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
  vk.vkCmdPipelineBarrier(buffer_, VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &after, 0,
                          nullptr, 0, nullptr);
  check(vk.vkEndCommandBuffer(buffer_), "recording a copy");
  device_->wait(device_->submit({&buffer_, 1}));
}

void Transfer::upload(const Piece& to, std::uint64_t offset, const void* from, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  open();
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(bytes - done, kStagingBytes);
    std::memcpy(staging_.mapped, static_cast<const std::byte*>(from) + done, part);
    copy(staging_.buffer, staging_.offset, to.buffer, to.offset + offset + done, part);
    done += part;
  }
}

void Transfer::download(const Piece& from, std::uint64_t offset, void* to, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  open();
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t part = std::min(bytes - done, kStagingBytes);
    copy(from.buffer, from.offset + offset + done, staging_.buffer, staging_.offset, part);
    std::memcpy(static_cast<std::byte*>(to) + done, staging_.mapped, part);
    done += part;
  }
}

}  // namespace caldera::vulkan
