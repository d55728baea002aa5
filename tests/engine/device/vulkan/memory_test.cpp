// Memory of the Vulkan device: pieces of blocks, reuse, limits, running out, staging.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/memory/arena.h"
#include "engine/device/vulkan/memory/memory_pool.h"
#include "engine/device/vulkan/open/device.h"
#include "engine/device/vulkan/open/physical_device.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"

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
    step.as<RegionStep>().kernel = one_op_kernel(ScalarOp::neg, DType::f32, DType::f32);
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

/// All of them live at once. The bound is over everything asked for; the small ones alone come close to it.
TEST_F(VulkanMemory, AGigabyteAndAHundredThousandSmallTensorsCostSixPercent) {
  const std::uint64_t before = backend_->counters().reserved_bytes;
  const StoragePtr large = backend_->allocate(std::size_t{1} << 30);
  const std::uint64_t with_large = backend_->counters().reserved_bytes;
  std::mt19937 random(11);
  std::vector<StoragePtr> small(100000);
  std::uint64_t asked = 0;
  for (StoragePtr& tensor : small) {
    const std::size_t bytes = 16 + random() % 4081;
    tensor = backend_->allocate(bytes);
    asked += bytes;
    const auto address = reinterpret_cast<std::uintptr_t>(tensor->host_data());
    ASSERT_EQ(address % 64, 0U);
  }
  const DeviceCounters now = backend_->counters();
  const auto taken = static_cast<double>(now.reserved_bytes - before);
  const auto taken_for_small = static_cast<double>(now.reserved_bytes - with_large);
  EXPECT_LE(taken, 1.06 * static_cast<double>(asked + large->bytes()));
  EXPECT_LE(taken_for_small, 1.10 * static_cast<double>(asked)) << "padding, and the last block";
  EXPECT_LE(now.allocations, 64U);
  RecordProperty("overhead_percent",
                 std::to_string(100 * (taken / static_cast<double>(asked + large->bytes()) - 1)));

  std::ranges::shuffle(small, random);
  small.clear();
  EXPECT_EQ(backend_->counters().live_bytes, large->bytes());
  backend_->set_memory_limit(0);
  EXPECT_EQ(backend_->counters().reserved_bytes, with_large) << "unused blocks go back";
}

/// Each size that the pool pads most: one byte more than a step.
TEST_F(VulkanMemory, SmallTensorsHoldTheirValues) {
  std::vector<StoragePtr> tensors;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    tensors.push_back(backend_->allocate(4 + i % 5000));
    const std::vector<std::uint8_t> values(tensors.back()->bytes(), static_cast<std::uint8_t>(i));
    backend_->upload(*tensors.back(), 0, values.data(), values.size());
    if (i % 3 == 1) tensors[i / 2].reset();
  }
  for (std::uint32_t i = 0; i < 20000; ++i) {
    if (tensors[i] == nullptr) continue;
    std::vector<std::uint8_t> found(tensors[i]->bytes());
    backend_->download(*tensors[i], 0, found.data(), found.size());
    ASSERT_EQ(found, std::vector<std::uint8_t>(found.size(), static_cast<std::uint8_t>(i))) << i;
  }
}

TEST_F(VulkanMemory, UnifiedMemoryIsWrittenAndReadWithoutCopies) {
  const auto& memory = vulkan::physical_devices()[0].memory;
  if (memory.memoryTypeCount > 1) GTEST_SKIP() << "not all of the device's memory is the host's";
  EXPECT_NE(backend_->allocate(100)->host_data(), nullptr);
  EXPECT_NE(backend_->allocate(std::size_t{100} << 20)->host_data(), nullptr);
}

TEST_F(VulkanMemory, ALimitIsNeverExceeded) {
  constexpr std::uint64_t kLimit = 8 << 20;
  backend_->set_memory_limit(kLimit);
  std::mt19937 random(2);
  std::vector<StoragePtr> tensors;
  std::uint64_t live = 0;
  const auto fill = [&] {
    try {
      while (true) {
        const std::size_t bytes = random() % 4 == 0 ? 1 + random() % 500000 : 1 + random() % 3000;
        tensors.push_back(backend_->allocate(bytes));
        live += bytes;
      }
    } catch (const OutOfMemoryError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("of a limit of 8388608"), std::string::npos) << text;
      EXPECT_NE(text.find("bytes wanted"), std::string::npos) << text;
    }
  };
  for (int round = 0; round < 20; ++round) {
    fill();
    EXPECT_GT(live, round == 0 ? kLimit / 2 : kLimit / 3) << "the limit can be used";
    ASSERT_LE(backend_->counters().reserved_peak_bytes, kLimit);
    for (StoragePtr& tensor : tensors) {
      if (random() % 2 == 0) tensor.reset();
    }
    std::erase(tensors, nullptr);
    live = 0;
    for (const StoragePtr& tensor : tensors) live += tensor->bytes();
  }
  EXPECT_EQ(backend_->counters().limit_bytes, kLimit);
  EXPECT_GT(backend_->counters().trims, 0U);
  tensors.clear();
  // What the small ones held serves a large one: their blocks went back to the driver.
  EXPECT_EQ(backend_->allocate(7 << 20)->bytes(), std::size_t{7} << 20);
  backend_->set_memory_limit(0);
  EXPECT_EQ(backend_->counters().reserved_bytes, 0U);
  EXPECT_NE(backend_->allocate(20 << 20), nullptr);
}

/// The rest of a block that was made for a large tensor is kept for large ones, but not from those in need.
TEST_F(VulkanMemory, UnderALimitARestOfALargeBlockServesAnyone) {
  backend_->set_memory_limit(256 << 20);
  StoragePtr whole = backend_->allocate(250 << 20);
  whole.reset();
  const StoragePtr part = backend_->allocate(130 << 20);
  std::vector<StoragePtr> tensors;
  tensors.reserve(1110);
  for (int i = 0; i < 110; ++i) tensors.push_back(backend_->allocate(1 << 20));
  for (int i = 0; i < 1000; ++i) tensors.push_back(backend_->allocate(1000));
  EXPECT_LE(backend_->counters().reserved_peak_bytes, 256U << 20);
}

TEST_F(VulkanMemory, ALimitBelowWhatIsInUseHoldsFromThenOn) {
  StoragePtr tensor = backend_->allocate(4 << 20);
  backend_->set_memory_limit(1 << 20);
  EXPECT_THROW(backend_->allocate(100), OutOfMemoryError);
  tensor.reset();
  EXPECT_NE(backend_->allocate(100), nullptr) << "the block of the large one went back first";
  EXPECT_LE(backend_->counters().reserved_bytes, 1U << 20);
}

/// The driver as it is, but for what a test denies. One device at a time.
struct Driver {
  static inline PFN_vkAllocateMemory allocate = nullptr;
  static inline PFN_vkFreeMemory free = nullptr;
  static inline int live = 0;
  static inline int deny = 0;                     // calls to refuse
  static inline std::uint64_t most = UINT64_MAX;  // bytes of a call

  static void hook(VolkDeviceTable& table) {
    allocate = table.vkAllocateMemory;
    free = table.vkFreeMemory;
    table.vkAllocateMemory = [](VkDevice device, const VkMemoryAllocateInfo* info,
                                const VkAllocationCallbacks* host, VkDeviceMemory* memory) {
      if (deny > 0 || info->allocationSize > most) {
        deny = std::max(0, deny - 1);
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
      }
      const VkResult result = allocate(device, info, host, memory);
      live += result == VK_SUCCESS ? 1 : 0;
      return result;
    };
    table.vkFreeMemory = [](VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* host) {
      if (memory != VK_NULL_HANDLE) --live;
      free(device, memory, host);
    };
  }
};

class VulkanDriverMemory : public VulkanMemory {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    vulkan::set_table_hook(Driver::hook);
    backend_ = make_vulkan_backend(0);
    vulkan::set_table_hook(nullptr);
    Driver::live = Driver::deny = 0;
    Driver::most = UINT64_MAX;
  }
  void TearDown() override {
    backend_.reset();
    EXPECT_EQ(Driver::live, 0) << "blocks leak";
  }
};

TEST_F(VulkanDriverMemory, UnusedBlocksGoBackBeforeTheDriverIsAskedAgain) {
  backend_->allocate(10 << 20);
  backend_->allocate(100 << 20);
  ASSERT_EQ(Driver::live, 2);
  Driver::deny = 2;  // the block that it would like, and the one that it needs
  const StoragePtr tensor = backend_->allocate(200 << 20);
  EXPECT_EQ(Driver::live, 1);
  EXPECT_EQ(backend_->counters().reserved_bytes, std::uint64_t{200} << 20);
}

TEST_F(VulkanDriverMemory, ADriverThatHasNoMoreIsAnErrorAndNothingIsLost) {
  const StoragePtr kept = backend_->allocate(1000);
  const std::uint64_t reserved = backend_->counters().reserved_bytes;
  Driver::most = 1 << 20;
  for (int i = 0; i < 3; ++i) {
    try {
      backend_->allocate(30 << 20);
      FAIL() << "no exception";
    } catch (const OutOfMemoryError& error) {
      EXPECT_NE(std::string(error.what()).find("31457280 bytes wanted"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("of a heap of"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(backend_->counters().reserved_bytes, reserved);
  EXPECT_EQ(Driver::live, 1);
  Driver::most = UINT64_MAX;
  EXPECT_NE(backend_->allocate(30 << 20), nullptr);
}

/// A driver that hands out little is used in little blocks.
TEST_F(VulkanDriverMemory, BlocksAreAsSmallAsTheyHaveToBe) {
  Driver::most = 100 << 10;
  std::vector<StoragePtr> tensors;
  for (std::size_t i = 0; i < 1000; ++i) tensors.push_back(backend_->allocate(1 + 90 * i));
  EXPECT_LE(backend_->counters().reserved_bytes, 2 * backend_->counters().live_bytes);
}

/// Segments of one plan after another: each is an allocation, the largest serves the largest.
TEST_F(VulkanMemory, TheArenaHasAStorageForEachSegment) {
  const auto device = std::make_shared<vulkan::LogicalDevice>(vulkan::physical_devices()[0]);
  const auto pool = std::make_shared<vulkan::MemoryPool>(device, vulkan::MemoryUse::tensors);
  vulkan::SharedArena arena(pool);
  constexpr std::int64_t kMiB = 1 << 20;
  const auto take = [&](std::vector<std::int64_t> sizes, std::uint64_t now) {
    std::vector<ArenaSegment> segments;
    std::int64_t end = 0;
    for (const std::int64_t size : sizes) segments.push_back({end, end += size * kMiB});
    std::vector<VkDeviceAddress> addresses;
    for (const auto& storage : arena.take(segments, now)) addresses.push_back(storage->address());
    return addresses;
  };
  const auto live = [&] { return static_cast<std::int64_t>(pool->counters().live_bytes) / kMiB; };
  EXPECT_TRUE(take({}, 1).empty());
  const auto first = take({1, 3}, 1);
  EXPECT_EQ(live(), 4);
  EXPECT_EQ(take({3, 1}, 2), (std::vector{first[1], first[0]}));
  EXPECT_EQ(take({2}, 3), (std::vector{first[1]}));
  EXPECT_EQ(take({2, 2}, 4)[0], first[1]) << "the other one grows";
  EXPECT_EQ(live(), 5);
  EXPECT_EQ(take({4, 2, 1}, 5).size(), 3U);
  EXPECT_EQ(live(), 7);
  take({1}, 6);
  arena.age(5);
  EXPECT_EQ(live(), 4) << "the two small ones were not needed since";
  device->memory().relieve(Pressure::heavy);
  EXPECT_EQ(live(), 0);
}

/// As with VK_EXT_memory_budget.
TEST_F(VulkanMemory, WhatTheDriverHasLeftInAHeapIsRespected) {
  const auto device = std::make_shared<vulkan::LogicalDevice>(vulkan::physical_devices()[0]);
  constexpr std::uint64_t kHeap = 50 << 20;
  std::uint64_t others = 0;  // bytes that other programs hold
  const auto left = [&](std::uint32_t) -> std::optional<std::uint64_t> {
    return kHeap - others - device->memory().reserved();
  };
  vulkan::MemoryPool pool(device, vulkan::MemoryUse::tensors, false, left);
  std::vector<vulkan::Piece> pieces;
  const auto fill = [&] {
    while (true) pieces.push_back(pool.allocate(3 << 20));
  };
  EXPECT_THROW(fill(), OutOfMemoryError);
  EXPECT_EQ(pieces.size(), 16U);
  EXPECT_LE(device->memory().reserved(), kHeap);
  pool.release(pieces.back(), 0);
  pieces.pop_back();
  others = kHeap - device->memory().reserved();
  EXPECT_EQ(pool.allocate(3 << 20).bytes, std::uint64_t{3} << 20) << "what is held already may be used";
  try {
    pool.allocate(3 << 20);
    FAIL() << "no exception";
  } catch (const OutOfMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("the driver has "), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace caldera::testing
