// Copies through staging: slices in flight, beside computations on a queue of their own and among them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
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

/// Submits that copies are still to be let through; negative: all.
int copies_left = -1;
PFN_vkQueueSubmit real_submit = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL submit_few(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos,
                                          VkFence fence) {
  if (copies_left == 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  if (copies_left > 0) --copies_left;
  return real_submit(queue, count, infos, fence);
}

void plant(VolkDeviceTable& table) {
  real_submit = table.vkQueueSubmit;
  table.vkQueueSubmit = submit_few;
}

/// The parameter: copies have a timeline of their own.
class VulkanCopies : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    ASSERT_EQ(::setenv("CALDERA_VULKAN_STAGING", "1", 1), 0);
    if (GetParam()) {
      ASSERT_EQ(::setenv("CALDERA_VULKAN_COPY_QUEUE", "1", 1), 0);
    }
    vulkan::set_table_hook(plant);
    backend_ = make_vulkan_backend(0);
    vulkan::set_table_hook(nullptr);
    ::unsetenv("CALDERA_VULKAN_STAGING");
    ::unsetenv("CALDERA_VULKAN_COPY_QUEUE");
  }
  void TearDown() override { copies_left = -1; }

  /// y = -x over n elements.
  static std::shared_ptr<Plan> negation(std::int64_t n) {
    auto plan = std::make_shared<Plan>();
    plan->device = Device::vulkan(0);
    plan->buffers = {{BufferRole::input, DType::f32, 4 * n, 0}, {BufferRole::output, DType::f32, 4 * n, 0}};
    plan->input_count = plan->output_count = 1;
    Step step;
    step.as<RegionStep>().kernel = one_op_kernel(ScalarOp::neg, DType::f32, DType::f32);
    step.dims = Shape{n};
    step.operands = {view(0, {1}), view(1, {1})};
    plan->steps = {step};
    return plan;
  }

  std::unique_ptr<Backend> backend_;
};
std::string queue_name(const ::testing::TestParamInfo<bool>& of) { return of.param ? "own" : "shared"; }
INSTANTIATE_TEST_SUITE_P(Queues, VulkanCopies, ::testing::Bool(), queue_name);

TEST_P(VulkanCopies, UploadsComputationsAndDownloadsSeeEachOther) {
  constexpr std::size_t kCount = (std::size_t{9} << 18) + 7;  // 9 MiB and a bit: slices are used in turns
  const auto executable = backend_->prepare(negation(kCount));
  const StoragePtr x = backend_->allocate(4 * kCount), y = backend_->allocate(4 * kCount);
  ASSERT_EQ(x->host_data(), nullptr);
  std::vector<float> values(kCount), back(kCount);
  for (int turn = 0; turn < 4; ++turn) {
    std::iota(values.begin(), values.end(), static_cast<float>(turn + 1));
    backend_->upload(*x, 0, values.data(), 4 * kCount);
    backend_->wait(backend_->submit(*executable, {{{x.get(), 0}, {y.get(), 0}}, {}}));
    backend_->download(*y, 0, back.data(), 4 * kCount);
    for (float& v : back) v = -v;
    ASSERT_EQ(back, values) << turn;
  }
}

TEST_P(VulkanCopies, ManyThreadsCopyWhileOthersCompute) {
  constexpr std::size_t kCount = 300'001;
  const auto executable = backend_->prepare(negation(kCount));
  const StoragePtr x = backend_->allocate(4 * kCount), y = backend_->allocate(4 * kCount);
  const std::vector<float> ones(kCount, 1);
  backend_->upload(*x, 0, ones.data(), 4 * kCount);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const std::vector<float> mine(kCount, static_cast<float>(t));
      std::vector<float> back(kCount);
      const StoragePtr z = backend_->allocate(4 * kCount);
      for (int turn = 0; turn < 5; ++turn) {
        backend_->upload(*z, 0, mine.data(), 4 * kCount);
        backend_->download(*z, 0, back.data(), 4 * kCount);
        EXPECT_EQ(back, mine);
      }
    });
  }
  Ticket last = 0;
  for (int i = 0; i < 30; ++i) last = backend_->submit(*executable, {{{x.get(), 0}, {y.get(), 0}}, {}});
  backend_->wait(last);
  for (std::thread& thread : threads) thread.join();
  std::vector<float> back(kCount);
  backend_->download(*y, 0, back.data(), 4 * kCount);
  EXPECT_EQ(back, std::vector<float>(kCount, -1));
}

TEST_P(VulkanCopies, ACopyThatFailsHalfWayLeavesTransfersUsable) {
  constexpr std::size_t kCount = std::size_t{6} << 18;  // goes in four parts
  const StoragePtr x = backend_->allocate(4 * kCount);
  std::vector<float> values(kCount), back(kCount);
  std::iota(values.begin(), values.end(), 1.0F);
  for (int let_through = 0; let_through < 4; ++let_through) {
    copies_left = let_through;
    EXPECT_THROW(backend_->upload(*x, 0, values.data(), 4 * kCount), DeviceError);
    copies_left = -1;
    backend_->upload(*x, 0, values.data(), 4 * kCount);
    copies_left = let_through;
    EXPECT_THROW(backend_->download(*x, 0, back.data(), 4 * kCount), DeviceError);
    copies_left = -1;
    std::ranges::fill(back, 0.0F);
    backend_->download(*x, 0, back.data(), 4 * kCount);
    ASSERT_EQ(back, values) << let_through;
  }
}

}  // namespace
}  // namespace caldera::testing
