// Pipelines: made once for all who ask, side by side, and kept within a bound.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/vulkan/steps/context.h"
#include "tests/support/devices.h"
#include "tests/support/scoped_variable.h"

namespace caldera::testing {
namespace {

using vulkan::Context;
using vulkan::PipelinePtr;

/// What stands between the engine and the driver: it counts, and lasts as long as the test wants.
struct Maker {
  std::mutex mutex;
  std::condition_variable changed;
  int made = 0, inside = 0, most = 0;
  int wanted = 0;  // calls leave once so many are inside
  PFN_vkCreateComputePipelines create = nullptr;
};
Maker maker;

VKAPI_ATTR VkResult VKAPI_CALL counted(VkDevice device, VkPipelineCache cache, std::uint32_t count,
                                       const VkComputePipelineCreateInfo* infos,
                                       const VkAllocationCallbacks* allocator, VkPipeline* pipelines) {
  {
    std::unique_lock lock(maker.mutex);
    ++maker.made;
    maker.most = std::max(maker.most, ++maker.inside);
    maker.changed.notify_all();
    maker.changed.wait_for(lock, std::chrono::seconds(5), [] { return maker.most >= maker.wanted; });
  }
  const VkResult result = maker.create(device, cache, count, infos, allocator, pipelines);
  const std::lock_guard lock(maker.mutex);
  --maker.inside;
  return result;
}

class VulkanPipelines : public ::testing::Test {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    vulkan::set_table_hook([](VolkDeviceTable& table) {
      maker.create = table.vkCreateComputePipelines;
      table.vkCreateComputePipelines = counted;
    });
    context_ = std::make_unique<Context>(vulkan::physical_devices().at(0));
    vulkan::set_table_hook(nullptr);
    maker.made = maker.inside = maker.most = maker.wanted = 0;
  }
  static std::string text(int number) {
    return "#version 460\nlayout(local_size_x = 1) in;\nshared float x[4];\nvoid main() { x[0] = " +
           std::to_string(number) + ".0; }\n";
  }
  PipelinePtr ask(int number) {
    Hash128 key;
    key.mix(static_cast<std::uint64_t>(number));
    return context_->pipelines.generated(key, "test", false, [&] { return text(number); });
  }

  const ScopedVariable nothing_on_disk_{"CALDERA_CACHE_DIR", ""};
  std::unique_ptr<Context> context_;
};

TEST_F(VulkanPipelines, ThreadsThatAskForTheSameGetOne) {
  std::vector<std::thread> threads;
  std::vector<VkPipeline> handles(4);
  for (std::size_t t = 0; t < handles.size(); ++t)
    threads.emplace_back([&, t] { handles[t] = ask(1)->handle(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(maker.made, 1);
  for (const VkPipeline handle : handles) EXPECT_EQ(handle, handles[0]);
}

TEST_F(VulkanPipelines, OneThatIsBeingMadeKeepsNobodyFromAnother) {
  maker.wanted = 2;
  std::thread other([&] { ask(1)->handle(); });
  ask(2)->handle();
  other.join();
  EXPECT_EQ(maker.most, 2) << "both were at it at once";
}

TEST_F(VulkanPipelines, ThoseOfAPlanAreMadeSideBySide) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core";
  maker.wanted = 2;
  std::vector<PipelinePtr> all;
  for (int i = 0; i < 6; ++i) all.push_back(ask(i));
  EXPECT_EQ(maker.made, 0) << "asking makes nothing";
  context_->pipelines.make(all);
  EXPECT_EQ(maker.made, 6);
  EXPECT_GE(maker.most, 2);
  EXPECT_LE(maker.most, static_cast<int>(std::thread::hardware_concurrency()));
}

TEST_F(VulkanPipelines, TheirBoundHoldsAndWhoHasOneKeepsIt) {
  context_->pipelines.set_limit(16 << 10);
  const PipelinePtr held = ask(0);
  const VkPipeline handle = held->handle();
  for (int i = 1; i < 40; ++i) ask(i)->handle();
  const CacheStats stats = context_->pipelines.stats();
  EXPECT_LE(stats.bytes, 16U << 10);
  EXPECT_GT(stats.evictions, 20U);
  EXPECT_EQ(held->handle(), handle);
  EXPECT_NE(ask(0), held) << "it is made anew";
}

}  // namespace
}  // namespace caldera::testing
