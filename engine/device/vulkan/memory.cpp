#include "engine/device/vulkan/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "engine/tensor/error.h"

namespace caldera::vulkan {

struct Block {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceAddress address = 0;
  std::byte* mapped = nullptr;
  std::uint64_t bytes = 0;
  std::map<std::uint64_t, std::uint64_t> free;  // offset -> bytes, coalesced
};

namespace {

constexpr std::uint64_t kAlignment = 256;
constexpr std::uint64_t kSmallestBlock = 4ULL << 20;
constexpr std::uint64_t kLargestBlock = 64ULL << 20;

constexpr VkMemoryPropertyFlags kHost =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

/// The first type with all of `flags`; of several, the one with the largest heap.
std::optional<std::uint32_t> find_type(const VkPhysicalDeviceMemoryProperties& memory,
                                       VkMemoryPropertyFlags flags) {
  std::optional<std::uint32_t> best;
  const auto heap = [&](std::uint32_t type) {
    return memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
  };
  for (std::uint32_t t = 0; t < memory.memoryTypeCount; ++t) {
    constexpr VkMemoryPropertyFlags kUnwanted = VK_MEMORY_PROPERTY_PROTECTED_BIT |
                                                VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
                                                VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD;
    const VkMemoryPropertyFlags has = memory.memoryTypes[t].propertyFlags;
    if ((has & flags) != flags || (has & kUnwanted) != 0) continue;
    if (!best || heap(t) > heap(*best)) best = t;
  }
  return best;
}

std::uint32_t choose_type(const VkPhysicalDeviceMemoryProperties& memory, MemoryUse use) {
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  std::vector<VkMemoryPropertyFlags> wishes;
  if (use == MemoryUse::tensors) {
    // The whole device-local heap: a small mapped window of it (no resizable BAR) would run out first.
    const std::optional<std::uint32_t> local = find_type(memory, kLocal);
    const std::optional<std::uint32_t> both = find_type(memory, kLocal | kHost);
    const auto heap = [&](std::uint32_t t) {
      return memory.memoryHeaps[memory.memoryTypes[t].heapIndex].size;
    };
    if (local && both && heap(*both) >= heap(*local)) {
      if (const auto cached = find_type(memory, kLocal | kHost | kCached);
          cached && heap(*cached) >= heap(*local))
        return *cached;
      return *both;
    }
    wishes = {kLocal, 0};
  } else if (use == MemoryUse::tables) {
    wishes = {kLocal | kHost, kHost};
  } else {
    wishes = {kHost | kCached, kHost};
  }
  for (VkMemoryPropertyFlags wish : wishes) {
    if (const auto type = find_type(memory, wish)) return *type;
  }
  throw DeviceError("no usable memory type");
}

std::uint64_t round_up(std::uint64_t bytes) {
  return (std::max<std::uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

MemoryPool::MemoryPool(DevicePtr device, MemoryUse use, bool force_unmapped) : device_(std::move(device)) {
  const VkPhysicalDeviceMemoryProperties& memory = device_->physical().memory;
  type_ = choose_type(memory, use);
  heap_bytes_ = memory.memoryHeaps[memory.memoryTypes[type_].heapIndex].size;
  const VkMemoryPropertyFlags flags = memory.memoryTypes[type_].propertyFlags;
  mapped_ = (flags & kHost) == kHost && !force_unmapped;
  // The host reads uncached memory at a crawl; tensors in such memory go through staging instead.
  if (use == MemoryUse::tensors && (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) == 0 &&
      !device_->capabilities().software)
    mapped_ = false;
}

MemoryPool::~MemoryPool() {
  try {
    device_->wait(device_->submitted());
  } catch (const Error&) {
    // The device is lost: nothing uses the memory any more.
  }
  for (const auto& block : blocks_) destroy(block.get());
}

Piece MemoryPool::allocate(std::uint64_t bytes) {
  const std::uint64_t wanted = round_up(bytes);
  const std::lock_guard lock(mutex_);
  reclaim(false);
  Piece piece;
  VkResult result = VK_SUCCESS;
  bool found = take(wanted, piece);
  if (!found) {
    result = add_block(wanted);
    if (result != VK_SUCCESS) {  // make room: what is in flight ends, what is unused goes back
      reclaim(true);
      trim();
      found = take(wanted, piece);
      if (!found) result = add_block(wanted);
    }
    found = found || take(wanted, piece);
  }
  if (!found) {
    throw DeviceError(fmt::format(
        "{} ({}): out of memory: {} bytes wanted, {} in use by tensors, {} held of a heap of {} ({})",
        device_->name(), device_->physical().info.name, bytes, counters_.live_bytes, block_bytes_,
        heap_bytes_, result_name(result)));
  }
  counters_.live_bytes += piece.bytes;
  counters_.peak_bytes = std::max(counters_.peak_bytes, counters_.live_bytes);
  return piece;
}

void MemoryPool::release(const Piece& piece, std::uint64_t last_use) {
  const std::lock_guard lock(mutex_);
  counters_.live_bytes -= piece.bytes;
  if (last_use > device_->completed())
    pending_.push_back({piece, last_use});
  else
    insert_free(piece.block, piece.offset, piece.bytes);
}

MemoryCounters MemoryPool::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

bool MemoryPool::take(std::uint64_t bytes, Piece& piece) {
  const auto fit = free_.lower_bound({bytes, nullptr, 0});
  if (fit == free_.end()) return false;
  const auto [size, block, offset] = *fit;
  // A block made for one large tensor is not broken up for a small one: it would keep the next large one out.
  if (size > kLargestBlock && bytes < size / 2) return false;
  free_.erase(fit);
  block->free.erase(offset);
  if (size > bytes) {
    block->free.emplace(offset + bytes, size - bytes);
    free_.emplace(size - bytes, block, offset + bytes);
  }
  piece = {block,
           offset,
           bytes,
           block->buffer,
           block->address + offset,
           block->mapped != nullptr ? block->mapped + offset : nullptr};
  return true;
}

/// Gives a range back, joined with its free neighbours.
void MemoryPool::insert_free(Block* block, std::uint64_t offset, std::uint64_t bytes) {
  auto next = block->free.lower_bound(offset);
  if (next != block->free.end() && next->first == offset + bytes) {
    bytes += next->second;
    free_.erase({next->second, block, next->first});
    next = block->free.erase(next);
  }
  if (next != block->free.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      free_.erase({before->second, block, before->first});
      block->free.erase(before);
    }
  }
  block->free.emplace(offset, bytes);
  free_.emplace(bytes, block, offset);
}

void MemoryPool::reclaim(bool everything) {
  if (pending_.empty()) return;
  if (everything) device_->wait(device_->submitted());
  const std::uint64_t done = device_->completed();
  std::erase_if(pending_, [&](const Pending& p) {
    if (p.last_use > done) return false;
    insert_free(p.piece.block, p.piece.offset, p.piece.bytes);
    return true;
  });
}

/// Returns blocks that nothing lies in to the driver.
void MemoryPool::trim() {
  std::erase_if(blocks_, [&](const std::unique_ptr<Block>& block) {
    if (block->free.size() != 1 || block->free.begin()->second != block->bytes) return false;
    free_.erase({block->bytes, block.get(), 0});
    block_bytes_ -= block->bytes;
    destroy(block.get());
    return true;
  });
}

VkResult MemoryPool::add_block(std::uint64_t bytes) {
  // Blocks grow with use; what is larger than a block gets its own.
  std::uint64_t size = std::clamp(block_bytes_, kSmallestBlock, kLargestBlock);
  size = std::max((size + kAlignment - 1) / kAlignment * kAlignment, bytes);
  if (size > device_->capabilities().max_allocation) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VolkDeviceTable& vk = device_->vk();
  auto block = std::make_unique<Block>();
  block->bytes = size;

  const std::span<const std::uint32_t> families = device_->families();
  const VkBufferCreateInfo buffer{
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .size = size,
      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
      .sharingMode = families.size() > 1 ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
      .queueFamilyIndexCount = static_cast<std::uint32_t>(families.size()),
      .pQueueFamilyIndices = families.data()};
  VkResult result = vk.vkCreateBuffer(device_->handle(), &buffer, nullptr, &block->buffer);
  if (result == VK_SUCCESS) {
    VkMemoryRequirements needs{};
    vk.vkGetBufferMemoryRequirements(device_->handle(), block->buffer, &needs);
    const VkMemoryAllocateFlagsInfo flags{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                          .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                    .pNext = &flags,
                                    .allocationSize = needs.size,
                                    .memoryTypeIndex = type_};
    result = vk.vkAllocateMemory(device_->handle(), &info, nullptr, &block->memory);
  }
  if (result == VK_SUCCESS)
    result = vk.vkBindBufferMemory(device_->handle(), block->buffer, block->memory, 0);
  if (result == VK_SUCCESS && mapped_) {
    void* mapped = nullptr;
    result = vk.vkMapMemory(device_->handle(), block->memory, 0, VK_WHOLE_SIZE, 0, &mapped);
    block->mapped = static_cast<std::byte*>(mapped);
  }
  if (result != VK_SUCCESS) {
    destroy(block.get());
    return result;
  }
  const VkBufferDeviceAddressInfo address{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                          .buffer = block->buffer};
  block->address = vk.vkGetBufferDeviceAddress(device_->handle(), &address);
  ++counters_.allocations;
  block_bytes_ += size;
  block->free.emplace(0, size);
  free_.emplace(size, block.get(), 0);
  blocks_.push_back(std::move(block));
  return VK_SUCCESS;
}

void MemoryPool::destroy(Block* block) {
  const VolkDeviceTable& vk = device_->vk();
  vk.vkDestroyBuffer(device_->handle(), block->buffer, nullptr);
  vk.vkFreeMemory(device_->handle(), block->memory, nullptr);
}

}  // namespace caldera::vulkan
