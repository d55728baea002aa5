// Memory of the Vulkan device: pieces of blocks, reuse, running out, staging.
#ifndef CALDERA_HAS_VULKAN
#define CALDERA_HAS_VULKAN 0
#endif
#if CALDERA_HAS_VULKAN
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "engine/device/vulkan/vulkan_backend.h"
#include "engine/tensor/error.h"
#include "tests/support/devices.h"
#include "tests/support/plan_case.h"

namespace caldera::testing {
namespace {

class VulkanMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    backend_ = make_vulkan_backend(0);
  }
  std::unique_ptr<Backend> backend_;
};

TEST_F(VulkanMemory, ManySmallTensorsLieInFewBlocks) {
  std::vector<StoragePtr> tensors;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    tensors.push_back(backend_->allocate(100));
    backend_->upload(*tensors.back(), 0, &i, 4);
  }
  for (std::uint32_t i = 0; i < 20000; ++i) {
    std::uint32_t found = 0;
    backend_->download(*tensors[i], 0, &found, 4);
    ASSERT_EQ(found, i);
  }
  EXPECT_LE(backend_->counters().allocations, 4U);
  EXPECT_GE(backend_->counters().live_bytes, 20000U * 100);
  tensors.clear();
  EXPECT_EQ(backend_->counters().live_bytes, 0U);
}

TEST_F(VulkanMemory, GivenBackMemoryIsUsedAgain) {
  std::mt19937 random(7);
  std::vector<StoragePtr> tensors(64);
  for (int i = 0; i < 20000; ++i) tensors[random() % 64] = backend_->allocate(1 + random() % 300000);
  EXPECT_LE(backend_->counters().allocations, 8U);
  tensors.clear();
  const std::uint64_t blocks = backend_->counters().allocations;
  for (int i = 0; i < 20; ++i) backend_->allocate(150 << 20);  // large ones keep their block, too
  EXPECT_LE(backend_->counters().allocations, blocks + 1);
}

TEST_F(VulkanMemory, RunningOutSaysHowMuchAndIsSurvived) {
  try {
    backend_->allocate(std::size_t{1} << 50);
    FAIL() << "no exception";
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find(std::to_string(std::uint64_t{1} << 50)), std::string::npos)
        << e.what();
  }
  EXPECT_NE(backend_->allocate(1024), nullptr);
}

TEST_F(VulkanMemory, TensorsMayOutliveTheBackend) {
  const StoragePtr tensor = backend_->allocate(1000);
  backend_.reset();
  EXPECT_EQ(tensor->bytes(), 1000U);
}

TEST_F(VulkanMemory, TransfersOutsideOfABlockAreRefused) {
  const StoragePtr tensor = backend_->allocate(16);
  std::uint64_t word = 0;
  EXPECT_THROW(backend_->upload(*tensor, 12, &word, 8), DeviceError);
  EXPECT_THROW(backend_->download(*tensor, 17, &word, 1), DeviceError);
}

/// As on a GPU whose memory the host cannot reach.
TEST_F(VulkanMemory, StagingCarriesTensorsOfAnySize) {
  ASSERT_EQ(::setenv("CALDERA_VULKAN_STAGING", "1", 1), 0);
  const auto backend = make_vulkan_backend(0);
  ::unsetenv("CALDERA_VULKAN_STAGING");
  for (std::size_t count : {std::size_t{1}, std::size_t{1025}, std::size_t{3} << 20}) {
    std::vector<float> values(count), back(count);
    std::iota(values.begin(), values.end(), 1.0F);
    const StoragePtr x = backend->allocate(4 * count + 4), y = backend->allocate(4 * count);
    EXPECT_EQ(x->host_data(), nullptr);
    backend->upload(*x, 4, values.data(), 4 * count);
    const auto n = static_cast<std::int64_t>(count);
    auto plan = std::make_shared<Plan>();
    plan->device = Device::vulkan(0);
    plan->buffers = {{BufferRole::input, DType::f32, 4 * n + 4, 0},
                     {BufferRole::output, DType::f32, 4 * n, 0}};
    plan->input_count = plan->output_count = 1;
    Step step;
    step.kernel = one_op_kernel(ScalarOp::neg, DType::f32, DType::f32);
    step.dims = Shape{n};
    step.operands = {view(0, {1}, 1), view(1, {1})};
    plan->steps = {step};
    const auto executable = backend->prepare(plan);
    backend->wait(backend->submit(*executable, {{{x.get(), 0}, {y.get(), 0}}, {}}));
    backend->download(*y, 0, back.data(), 4 * count);
    for (float& v : back) v = -v;
    EXPECT_EQ(back, values);
  }
}

}  // namespace
}  // namespace caldera::testing
#endif
