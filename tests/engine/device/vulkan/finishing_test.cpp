// Regions at the end of a dispatch, where another replay fails.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/open/device.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

std::atomic<bool> fails{false};
PFN_vkAllocateCommandBuffers allocate = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL allocating(VkDevice device, const VkCommandBufferAllocateInfo* info,
                                          VkCommandBuffer* commands) {
  return fails.exchange(false) ? VK_ERROR_OUT_OF_DEVICE_MEMORY : allocate(device, info, commands);
}

/// A product of ones, and a copy of its last row at the end of its dispatch.
std::shared_ptr<const Plan> plan_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  PlanCase c(Device::vulkan(0));
  const int a = c.input(DType::f32, m * k), b = c.input(DType::f32, n * k);
  const int h = c.output(DType::f32, m * n), last = c.output(DType::f32, n);
  c.contract(DType::f32, {m, n, k}, {view(a, {k, 0, 1}), view(b, {0, k, 1}), view(h, {n, 1, 0})});
  KernelBuilder copy("copy");
  c.region(copy.store(copy.load(DType::f32)).finish(), {n}, {view(h, {1}, (m - 1) * n), view(last, {1})});
  c.finish();
  return c.shared_plan();
}

/// The counters of dispatches in flight are not those of the replay that failed, though they are the same.
TEST(VulkanFinishing, AReplayThatFailsLeavesOthersTheirCount) {
  CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
  vulkan::set_table_hook([](VolkDeviceTable& table) {
    allocate = table.vkAllocateCommandBuffers;
    table.vkAllocateCommandBuffers = allocating;
  });
  const std::unique_ptr<Backend> backend = make_vulkan_backend(0);
  vulkan::set_table_hook(nullptr);
  constexpr std::int64_t kSize = 768, kDepth = 2048;  // some 300 ms on two cores
  const auto large = backend->prepare(plan_of(kSize, kSize, kDepth)),
             small = backend->prepare(plan_of(16, 64, 16));
  const std::vector<float> ones(static_cast<std::size_t>(kSize * kDepth), 1.0F);
  const auto filled = [&](std::int64_t elements) {
    StoragePtr memory = backend->allocate(4 * static_cast<std::size_t>(elements));
    backend->upload(*memory, 0, ones.data(), 4 * static_cast<std::size_t>(elements));
    return memory;
  };
  const StoragePtr a = filled(kSize * kDepth), b = filled(kSize * kDepth), h = filled(kSize * kSize);
  const StoragePtr other = filled(16 * 64), rest = filled(64);
  for (int run = 0; run < 3; ++run) {
    SCOPED_TRACE(run);
    const StoragePtr last = filled(kSize);
    const auto ticket =
        backend->submit(*large, {{{a.get(), 0}, {b.get(), 0}, {h.get(), 0}, {last.get(), 0}}, {}});
    if (run == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));  // some of the workgroups have counted
      fails = true;
      EXPECT_THROW(
          backend->submit(*small, {{{a.get(), 0}, {b.get(), 0}, {other.get(), 0}, {rest.get(), 0}}, {}}),
          Error);
    }
    backend->wait(ticket);
    std::vector<float> got(static_cast<std::size_t>(kSize));
    backend->download(*last, 0, got.data(), 4 * got.size());
    EXPECT_EQ(got, std::vector<float>(got.size(), static_cast<float>(kDepth)));
  }
}

}  // namespace
}  // namespace caldera::testing
