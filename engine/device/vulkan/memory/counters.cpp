#include "engine/device/vulkan/memory/counters.h"

#include <cstring>

namespace caldera::vulkan {

Counters::~Counters() {
  if (memory_.block != nullptr) pool_->release(memory_, pool_->device()->submitted());
}

void Counters::reserve() {
  const std::lock_guard lock(mutex_);
  if (memory_.block != nullptr) return;
  memory_ = pool_->allocate(kMost * kBytes);
  clear();
}

VkDeviceAddress Counters::address(std::int32_t number) const {
  return memory_.address + static_cast<std::uint64_t>(number) * kBytes;
}

void Counters::clear() {
  if (memory_.block != nullptr) std::memset(memory_.mapped, 0, kMost * kBytes);
}

}  // namespace caldera::vulkan
