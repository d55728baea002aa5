#include "engine/device/vulkan/memory/counters.h"

#include <cstddef>
#include <cstring>
#include <vector>

#include "engine/device/vulkan/memory/transfer.h"

namespace caldera::vulkan {

Counters::~Counters() {
  if (memory_.block != nullptr) pool_->release(memory_, pool_->device()->submitted());
}

VkDeviceAddress Counters::address(std::int32_t number) {
  if (memory_.block == nullptr) {
    memory_ = pool_->allocate(kMost * kBytes);
    clear();
  }
  return memory_.address + static_cast<std::uint64_t>(number) * kBytes;
}

void Counters::clear() {
  if (memory_.block == nullptr) return;
  if (memory_.mapped != nullptr) {
    std::memset(memory_.mapped, 0, kMost * kBytes);
  } else {
    const std::vector<std::byte> zeros(kMost * kBytes);
    Transfer(pool_->device()).upload(memory_, 0, zeros.data(), zeros.size());
  }
}

}  // namespace caldera::vulkan
