#include "engine/device/vulkan/memory/memory_pool.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "engine/base/error.h"

namespace caldera::vulkan {

struct Block {
  std::uint32_t number = 0;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceAddress address = 0;
  std::byte* mapped = nullptr;
  std::uint64_t bytes = 0;     // that are handed out
  std::uint64_t reserved = 0;  // that the driver took for them
  bool readable = false;       // see Piece
  bool is_needed = true;       // something was taken from it since the last age()

  Range whole() const { return {number, 0, bytes}; }
};

namespace {

constexpr std::uint64_t kAlignment = 256;  // of ranges; pieces of slabs have less
constexpr std::uint64_t kSmallestBlock = 4ULL << 20;
constexpr std::uint64_t kLargestBlock = 64ULL << 20;
/// Of what is held already, or of the limit: a new block may stand empty but for one piece.
constexpr std::uint64_t kBlockShare = 32;
/// Unused large blocks are kept up to this, or up to a quarter of what is in use.
constexpr std::uint64_t kIdleLargeBytes = 256ULL << 20;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t multiple) {
  return (std::max<std::uint64_t>(bytes, 1) + multiple - 1) / multiple * multiple;
}

HeapQuery driver_query(const PhysicalDevice& physical) {
  if (!physical.capabilities.memory_budget) return {};
  return [handle = physical.handle](std::uint32_t heap) -> std::optional<std::uint64_t> {
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties{
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    vkGetPhysicalDeviceMemoryProperties2(handle, &properties);
    const std::uint64_t all = budget.heapBudget[heap];
    return all - std::min(all, budget.heapUsage[heap]);
  };
}

}  // namespace

MemoryPool::MemoryPool(DevicePtr device, MemoryUse use, bool force_unmapped, HeapQuery heap_left)
    : device_(std::move(device)),
      use_(use),
      heap_left_(heap_left ? std::move(heap_left) : driver_query(device_->physical())),
      free_(kLargestBlock) {
  const VkPhysicalDeviceMemoryProperties& memory = device_->physical().memory;
  const bool software = device_->capabilities().software;
  const bool unified = device_->physical().profile.unified_memory;
  for (const std::uint32_t index : choose_memory_types(memory, use, unified)) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[index].propertyFlags;
    const bool mapped = (flags & kHostMemory) == kHostMemory && !force_unmapped;
    const bool cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0 || software;
    types_.push_back({index, memory.memoryTypes[index].heapIndex, mapped, mapped && cached});
  }
  reclaimer_.emplace(device_->memory(), Pressure::light, [this] { give_back(); });
}

MemoryPool::~MemoryPool() {
  reclaimer_.reset();
  try {
    device_->wait(device_->submitted());
  } catch (const Error&) {
    // The device is lost: nothing uses the memory any more.
  }
  for (const auto& [number, block] : blocks_) destroy(*block);
}

Piece MemoryPool::allocate(std::uint64_t bytes) {
  Piece piece;
  VkResult result = VK_SUCCESS;
  if (try_allocate(bytes, piece, result)) return piece;
  for (const Pressure pressure : {Pressure::light, Pressure::heavy}) {
    device_->memory().relieve(pressure);
    if (try_allocate(bytes, piece, result)) return piece;
  }
  throw OutOfMemoryError(fmt::format("{} ({}): {} ({})", device_->name(), device_->physical().info.name,
                                     device_->memory().out_of_memory(bytes, what_there_is(bytes)),
                                     result_name(result)));
}

std::string MemoryPool::what_there_is(std::uint64_t wanted) const {
  std::string there;
  for (const Type& type : types_) {
    if (!there.empty()) there += " and ";
    there += fmt::format("a heap of {}", device_->physical().memory.memoryHeaps[type.heap].size);
    if (!heap_left_) continue;
    if (const auto left = heap_left_(type.heap))
      there += fmt::format(" of which the driver has {} left for this process", *left);
  }
  if (const std::uint64_t most = device_->capabilities().max_allocation; wanted > most)
    there += fmt::format(", where the driver allows {} in one piece", most);
  return there;
}

bool MemoryPool::try_allocate(std::uint64_t bytes, Piece& piece, VkResult& result) {
  const std::lock_guard lock(mutex_);
  reclaim();
  const bool small = Slabs::is_small(bytes);
  const std::uint64_t range = round_up(bytes, kAlignment);
  bool found = small ? take_small(bytes, piece) : take(range, piece);
  if (!found) {
    result = add_block(small ? Slabs::slab_bytes(bytes) : range);
    if (result == VK_SUCCESS) found = small ? take_small(bytes, piece) : take(range, piece);
  }
  if (!found) found = take(range, piece, true);  // no room for a slab, or in the way of a larger one
  if (!found && small) {
    result = add_block(range);
    found = take(range, piece);
  }
  if (!found) return false;
  counters_.live_bytes += piece.bytes;
  if (use_ == MemoryUse::tensors) device_->memory().count_tensors(static_cast<std::int64_t>(piece.bytes));
  counters_.peak_bytes = std::max(counters_.peak_bytes, counters_.live_bytes);
  return true;
}

bool MemoryPool::take(std::uint64_t bytes, Piece& piece, bool in_need) {
  const std::optional<Range> range = free_.take(bytes, in_need);
  if (range) set_piece(*range, nullptr, piece);
  return range.has_value();
}

bool MemoryPool::take_small(std::uint64_t bytes, Piece& piece) {
  std::optional<Slabs::Piece> small = slabs_.take(bytes);
  if (!small) {
    const std::optional<Range> range = free_.take(Slabs::slab_bytes(bytes));
    if (!range) return false;
    small = slabs_.take_from(*range, bytes);
  }
  set_piece(small->range, small->slab, piece);
  return true;
}

void MemoryPool::set_piece(const Range& range, Slab* slab, Piece& piece) {
  Block& block = *blocks_.at(range.block);
  block.is_needed = true;
  piece = {&block,
           slab,
           range.offset,
           range.bytes,
           block.buffer,
           block.address + range.offset,
           block.mapped != nullptr ? block.mapped + range.offset : nullptr,
           block.readable};
}

void MemoryPool::release(const Piece& piece, std::uint64_t last_use) {
  const std::lock_guard lock(mutex_);
  counters_.live_bytes -= piece.bytes;
  if (use_ == MemoryUse::tensors) device_->memory().count_tensors(-static_cast<std::int64_t>(piece.bytes));
  if (last_use > device_->completed())
    pending_.emplace(last_use, piece);
  else
    put_back(piece);
}

MemoryCounters MemoryPool::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void MemoryPool::put_back(const Piece& piece) {
  if (piece.slab == nullptr) {
    free_.give({piece.block->number, piece.offset, piece.bytes});
  } else if (const std::optional<Range> range = slabs_.give(piece.slab, piece.offset)) {
    free_.give(*range);
  }
  if (device_->memory().reserved() > device_->memory().bound()) drop_unused();
}

/// Puts back what the timeline has passed.
void MemoryPool::reclaim() {
  if (pending_.empty()) return;
  const std::uint64_t done = device_->completed();
  while (!pending_.empty() && pending_.begin()->first <= done) {
    put_back(pending_.begin()->second);
    pending_.erase(pending_.begin());
  }
}

/// Returns to the driver all blocks that nothing is in once the work in flight has ended.
void MemoryPool::give_back() {
  device_->wait(device_->submitted());
  const std::lock_guard lock(mutex_);
  reclaim();
  drop_unused();
}

void MemoryPool::age() {
  const std::lock_guard lock(mutex_);
  if (block_bytes_ <= kSmallestBlock) return;
  reclaim();
  for (const Range& range : slabs_.trim()) free_.give(range);
  std::erase_if(blocks_, [this](const auto& entry) {
    Block& block = *entry.second;
    const bool is_needed = std::exchange(block.is_needed, false);
    return !is_needed && block.bytes > kSmallestBlock && drop_if_unused(block);
  });
}

void MemoryPool::drop_unused() {
  for (const Range& range : slabs_.trim()) free_.give(range);
  std::erase_if(blocks_, [this](const auto& entry) { return drop_if_unused(*entry.second); });
}

/// A large block that no longer fits what is asked for, such as the arena of the longest sequence so far, is
/// no use to anyone.
void MemoryPool::drop_idle_large_blocks() {
  std::uint64_t idle = 0;
  for (const auto& [number, block] : blocks_) {
    if (block->bytes > kLargestBlock && free_.is_whole(block->whole())) idle += block->bytes;
  }
  if (idle <= std::max(kIdleLargeBytes, counters_.live_bytes / 4)) return;
  std::erase_if(blocks_, [this](const auto& entry) {
    return entry.second->bytes > kLargestBlock && drop_if_unused(*entry.second);
  });
}

bool MemoryPool::drop_if_unused(Block& block) {
  if (!free_.remove_whole(block.whole())) return false;
  block_bytes_ -= block.bytes;
  destroy(block);
  return true;
}

std::uint64_t MemoryPool::next_block_bytes() const {
  const std::uint64_t bytes = std::clamp(block_bytes_ / kBlockShare, kSmallestBlock, kLargestBlock);
  const std::uint64_t limit = device_->memory().limit();
  return limit == 0 ? bytes : std::min(bytes, limit / kBlockShare);
}

/// A block that has room for `bytes`; no larger than that where there is no more.
VkResult MemoryPool::add_block(std::uint64_t bytes) {
  if (bytes > kLargestBlock) drop_idle_large_blocks();
  // Room for a whole number of such pieces: what a program makes many of leaves nothing over.
  const std::uint64_t wish = std::max<std::uint64_t>(next_block_bytes() / bytes, 1) * bytes;
  const auto [entry, is_new] = blocks_.emplace(next_number_, std::make_unique<Block>());
  Block& block = *entry->second;
  block.number = next_number_;
  VkResult result = make_block(block, wish);
  if (result != VK_SUCCESS && wish > bytes) result = make_block(block, bytes);
  if (result != VK_SUCCESS) {
    blocks_.erase(entry);
    return result;
  }
  ++next_number_;
  ++counters_.allocations;
  block_bytes_ += block.bytes;
  free_.give(block.whole());
  return VK_SUCCESS;
}

VkResult MemoryPool::make_block(Block& block, std::uint64_t bytes) {
  if (bytes > device_->capabilities().max_allocation) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VolkDeviceTable& vk = device_->vk();
  block.bytes = bytes;
  const std::span<const std::uint32_t> families = device_->families();
  const VkBufferCreateInfo buffer{
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .size = bytes,
      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
      .sharingMode = families.size() > 1 ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
      .queueFamilyIndexCount = static_cast<std::uint32_t>(families.size()),
      .pQueueFamilyIndices = families.data()};
  VkResult result = vk.vkCreateBuffer(device_->handle(), &buffer, nullptr, &block.buffer);
  if (result == VK_SUCCESS) {
    VkMemoryRequirements needs{};
    vk.vkGetBufferMemoryRequirements(device_->handle(), block.buffer, &needs);
    result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    for (const Type& type : types_) {
      if ((needs.memoryTypeBits >> type.index & 1) == 0) continue;
      result = allocate_from(type, block, needs.size);
      if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY && result != VK_ERROR_OUT_OF_HOST_MEMORY) break;
    }
  }
  if (result == VK_SUCCESS) result = vk.vkBindBufferMemory(device_->handle(), block.buffer, block.memory, 0);
  if (result != VK_SUCCESS) {
    destroy(block);
    block = {.number = block.number};
    return result;
  }
  const VkBufferDeviceAddressInfo address{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                          .buffer = block.buffer};
  block.address = vk.vkGetBufferDeviceAddress(device_->handle(), &address);
  return VK_SUCCESS;
}

/// Memory of the type for the block, mapped where it can be. Takes nothing where it fails.
VkResult MemoryPool::allocate_from(const Type& type, Block& block, std::uint64_t bytes) {
  const bool heap_has = !heap_left_ || heap_left_(type.heap).value_or(bytes) >= bytes;
  if (!heap_has || !device_->memory().reserve(bytes)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VolkDeviceTable& vk = device_->vk();
  const VkMemoryAllocateFlagsInfo flags{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                  .pNext = &flags,
                                  .allocationSize = bytes,
                                  .memoryTypeIndex = type.index};
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkResult result = vk.vkAllocateMemory(device_->handle(), &info, nullptr, &memory);
  void* mapped = nullptr;
  if (result == VK_SUCCESS && type.mapped)
    result = vk.vkMapMemory(device_->handle(), memory, 0, VK_WHOLE_SIZE, 0, &mapped);
  if (result != VK_SUCCESS) {
    vk.vkFreeMemory(device_->handle(), memory, nullptr);
    device_->memory().release(bytes);
    return result;
  }
  block.memory = memory;
  block.reserved = bytes;
  block.mapped = static_cast<std::byte*>(mapped);
  block.readable = type.readable;
  return VK_SUCCESS;
}

void MemoryPool::destroy(const Block& block) {
  const VolkDeviceTable& vk = device_->vk();
  vk.vkDestroyBuffer(device_->handle(), block.buffer, nullptr);
  vk.vkFreeMemory(device_->handle(), block.memory, nullptr);
  device_->memory().release(block.reserved);
}

}  // namespace caldera::vulkan
