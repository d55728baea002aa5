#include "engine/device/vulkan/memory/transfer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "engine/base/error.h"

namespace caldera::vulkan {
namespace {

/// Of a slice, and what is not worth cutting: a copy of its own costs some 20 us.
constexpr std::size_t kSliceBytes = 8U << 20;
constexpr std::size_t kLeastPart = 1U << 20;

/// How much of a transfer goes at a time: parts of one that fills no two slices overlap all the same.
std::size_t part_bytes(std::size_t bytes) {
  return std::clamp((bytes / 4 + 4095) / 4096 * 4096, kLeastPart, kSliceBytes);
}

}  // namespace

Transfer::Transfer(DevicePtr device) : device_(std::move(device)) {}

Transfer::~Transfer() {
  if (commands_ != VK_NULL_HANDLE) device_->vk().vkDestroyCommandPool(device_->handle(), commands_, nullptr);
  if (staging_.block != nullptr) pool_->release(staging_, 0);
}

void Transfer::trim() {
  const std::lock_guard lock(mutex_);  // no transfer is under way
  if (commands_ != VK_NULL_HANDLE) device_->vk().vkDestroyCommandPool(device_->handle(), commands_, nullptr);
  commands_ = VK_NULL_HANDLE;
  if (staging_.block != nullptr) pool_->release(staging_, 0);
  staging_ = {};
  slices_ = {};
}

void Transfer::open() {
  if (slices_[0].commands != VK_NULL_HANDLE) return;
  if (pool_ == nullptr) pool_ = std::make_unique<MemoryPool>(device_, MemoryUse::staging);
  if (staging_.block == nullptr) {
    try {
      staging_ = pool_->allocate(kSlices * kSliceBytes);
    } catch (const OutOfMemoryError& error) {
      throw OutOfMemoryError(std::string("staging of a copy between host and device: ") + error.what());
    }
  }
  if (commands_ == VK_NULL_HANDLE) {
    const VkCommandPoolCreateInfo info{
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT | VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = device_->copy_family()};
    device_->check(device_->vk().vkCreateCommandPool(device_->handle(), &info, nullptr, &commands_),
                   "creating the transfer commands");
  }
  const VkCommandBufferAllocateInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                         .commandPool = commands_,
                                         .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                         .commandBufferCount = kSlices};
  std::array<VkCommandBuffer, kSlices> buffers{};
  device_->check(device_->vk().vkAllocateCommandBuffers(device_->handle(), &info, buffers.data()),
                 "creating the transfer commands");
  for (std::size_t i = 0; i < kSlices; ++i)
    slices_[i] = {buffers[i], staging_.offset + i * kSliceBytes, staging_.mapped + i * kSliceBytes, 0, {}};
}

void Transfer::finish(Slice& slice) {
  device_->wait_copy(slice.ticket);
  if (const auto arrived = std::exchange(slice.arrived, nullptr)) arrived();
}

Transfer::Slice& Transfer::next_slice() {
  Slice& slice = slices_[next_];
  next_ = (next_ + 1) % kSlices;
  finish(slice);
  return slice;
}

void Transfer::copy(Slice& slice, VkBuffer from, std::uint64_t from_offset, VkBuffer to,
                    std::uint64_t to_offset, std::uint64_t bytes) {
  const VolkDeviceTable& vk = device_->vk();
  const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                       .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  device_->check(vk.vkBeginCommandBuffer(slice.commands, &begin), "recording a copy");
  // Among computations, barriers order copies; between queues, semaphores do (LogicalDevice::submit_copy),
  // and a queue for copies alone knows no shaders.
  const bool among = !device_->has_copy_queue();
  const VkPipelineStageFlags compute = among ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : 0;
  const VkAccessFlags write = among ? VK_ACCESS_SHADER_WRITE_BIT : 0;
  const VkAccessFlags read = among ? VK_ACCESS_SHADER_READ_BIT : 0;
  const VkMemoryBarrier before{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = write | VK_ACCESS_TRANSFER_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
  vk.vkCmdPipelineBarrier(slice.commands, compute | VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &before, 0, nullptr, 0, nullptr);
  const VkBufferCopy region{.srcOffset = from_offset, .dstOffset = to_offset, .size = bytes};
  vk.vkCmdCopyBuffer(slice.commands, from, to, 1, &region);
  const VkMemoryBarrier after{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                              .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                              .dstAccessMask = VK_ACCESS_HOST_READ_BIT | read | write};
  vk.vkCmdPipelineBarrier(slice.commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_PIPELINE_STAGE_HOST_BIT | compute, 0, 1, &after, 0, nullptr, 0, nullptr);
  device_->check(vk.vkEndCommandBuffer(slice.commands), "recording a copy");
  slice.ticket = device_->submit_copy({&slice.commands, 1});
}

void Transfer::whole(const std::function<void()>& transfer) {
  const std::lock_guard lock(mutex_);
  open();
  try {
    transfer();
    for (std::size_t i = 0; i < kSlices; ++i) next_slice();
  } catch (...) {
    for (Slice& slice : slices_) {
      device_->settle_copy(slice.ticket);
      slice.arrived = nullptr;
    }
    throw;
  }
}

void Transfer::upload(const Piece& to, std::uint64_t offset, const void* from, std::size_t bytes) {
  whole([&] {
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t part = std::min(bytes - done, part_bytes(bytes));
      Slice& slice = next_slice();
      std::memcpy(slice.mapped, static_cast<const std::byte*>(from) + done, part);
      copy(slice, staging_.buffer, slice.offset, to.buffer, to.offset + offset + done, part);
      done += part;
    }
  });
}

void Transfer::download(const Piece& from, std::uint64_t offset, void* to, std::size_t bytes) {
  whole([&] {
    for (std::size_t done = 0; done < bytes;) {
      const std::size_t part = std::min(bytes - done, part_bytes(bytes));
      Slice& slice = next_slice();
      copy(slice, from.buffer, from.offset + offset + done, staging_.buffer, slice.offset, part);
      std::byte* const target = static_cast<std::byte*>(to) + done;
      slice.arrived = [&slice, target, part] { std::memcpy(target, slice.mapped, part); };
      done += part;
    }
  });
}

}  // namespace caldera::vulkan
