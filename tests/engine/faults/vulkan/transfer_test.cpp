// Copies through staging memory when the driver says no.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/vulkan/faults.h"

namespace caldera::testing {
namespace {

class FailedTransfer : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    VulkanFaults::install();
    ASSERT_EQ(::setenv("CALDERA_VULKAN_STAGING", "1", 1), 0);
    backend_ = make_vulkan_backend(0);
    ::unsetenv("CALDERA_VULKAN_STAGING");
    VulkanFaults::reset();
  }
  void TearDown() override { VulkanFaults::reset(); }

  std::unique_ptr<Backend> backend_;
};

INSTANTIATE_TEST_SUITE_P(Sites, FailedTransfer,
                         ::testing::Values("vkBeginCommandBuffer", "vkEndCommandBuffer", "vkQueueSubmit",
                                           "vkWaitSemaphores"),
                         [](const auto& tested) { return std::string(tested.param); });

/// Above all a copy that nobody could wait for: it still runs, out of the memory that the next one fills.
TEST_P(FailedTransfer, LeavesTheNextOneRight) {
  constexpr std::size_t kWords = std::size_t{1} << 20;
  std::vector<std::uint32_t> values(kWords), back(kWords);
  const StoragePtr first = backend_->allocate(4 * kWords), second = backend_->allocate(4 * kWords);
  for (std::uint32_t round = 1; round <= 20; ++round) {
    for (std::uint32_t i = 0; i < kWords; ++i) values[i] = round * 0x01000193U ^ i;
    VulkanFaults::fail(GetParam(), 1, VK_ERROR_OUT_OF_HOST_MEMORY);
    EXPECT_THROW(backend_->upload(*first, 0, back.data(), 4 * kWords), DeviceError);
    backend_->upload(*second, 0, values.data(), 4 * kWords);
    VulkanFaults::fail(GetParam(), 1, VK_ERROR_OUT_OF_HOST_MEMORY);
    EXPECT_THROW(backend_->download(*first, 0, back.data(), 4 * kWords), DeviceError);
    backend_->download(*second, 0, back.data(), 4 * kWords);
    ASSERT_EQ(back, values) << "round " << round;
  }
}

TEST_P(FailedTransfer, MayBeTheLastThingADeviceDoes) {
  const std::vector<std::uint32_t> values(std::size_t{1} << 20, 7);
  const StoragePtr tensor = backend_->allocate(4 * values.size());
  VulkanFaults::fail(GetParam(), 1, VK_ERROR_OUT_OF_HOST_MEMORY);
  EXPECT_THROW(backend_->upload(*tensor, 0, values.data(), 4 * values.size()), DeviceError);
  backend_.reset();
}

}  // namespace
}  // namespace caldera::testing
