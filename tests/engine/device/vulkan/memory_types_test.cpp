// Which memory is taken for what, on the layouts of memory that drivers show, and where it goes on when a
// heap is full.
#include "engine/device/vulkan/memory/memory_types.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/vulkan/memory/memory_pool.h"
#include "engine/device/vulkan/open/device.h"
#include "engine/device/vulkan/open/physical_device.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

using vulkan::MemoryUse;
using Chosen = std::vector<std::uint32_t>;

constexpr std::uint32_t kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr std::uint32_t kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr std::uint32_t kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
constexpr std::uint64_t kMiB = 1 << 20;

VkPhysicalDeviceMemoryProperties layout(
    std::initializer_list<std::uint64_t> heaps,
    std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> types) {
  VkPhysicalDeviceMemoryProperties memory{};
  for (const std::uint64_t bytes : heaps) memory.memoryHeaps[memory.memoryHeapCount++].size = bytes;
  for (const auto& [heap, flags] : types)
    memory.memoryTypes[memory.memoryTypeCount++] = {.propertyFlags = flags, .heapIndex = heap};
  return memory;
}

/// A discrete GPU of which the host sees a window of 256 MiB.
const VkPhysicalDeviceMemoryProperties kWindow =
    layout({8192 * kMiB, 32768 * kMiB, 256 * kMiB},
           {{1, 0}, {0, kLocal}, {1, kHost}, {1, kHost | kCached}, {2, kLocal | kHost}});
/// The same with a resizable BAR.
const VkPhysicalDeviceMemoryProperties kResizable =
    layout({8192 * kMiB, 32768 * kMiB}, {{0, kLocal}, {1, kHost}, {0, kLocal | kHost}, {1, kHost | kCached}});
/// An integrated GPU with a part of the memory set aside for it, and one without.
const VkPhysicalDeviceMemoryProperties kCarved =
    layout({512 * kMiB, 16384 * kMiB}, {{0, kLocal}, {1, kHost}, {0, kLocal | kHost}, {1, kHost | kCached}});
const VkPhysicalDeviceMemoryProperties kUnified =
    layout({16384 * kMiB}, {{0, kLocal | kHost}, {0, kLocal | kHost | kCached}});

TEST(VulkanMemoryTypes, AreWhatTheLayoutCallsFor) {
  struct Case {
    const char* what;
    const VkPhysicalDeviceMemoryProperties& memory;
    bool unified;
    Chosen tensors, tables, staging;
  };
  for (const Case& c : {Case{"window", kWindow, false, {1}, {4, 2}, {3, 4}},
                        Case{"resizable", kResizable, false, {2}, {2, 1}, {3, 2}},
                        Case{"carved out", kCarved, true, {2, 1}, {2, 1}, {3, 2}},
                        Case{"unified", kUnified, true, {1}, {0}, {1}}}) {
    SCOPED_TRACE(c.what);
    EXPECT_EQ(choose_memory_types(c.memory, MemoryUse::tensors, c.unified), c.tensors);
    EXPECT_EQ(choose_memory_types(c.memory, MemoryUse::tables, c.unified), c.tables);
    EXPECT_EQ(choose_memory_types(c.memory, MemoryUse::staging, c.unified), c.staging);
  }
}

TEST(VulkanMemoryTypes, TablesAndStagingAreAlwaysTheHosts) {
  for (const auto* memory : {&kWindow, &kResizable, &kCarved, &kUnified}) {
    for (const MemoryUse use : {MemoryUse::tables, MemoryUse::staging}) {
      for (const std::uint32_t type : choose_memory_types(*memory, use, true))
        EXPECT_EQ(memory->memoryTypes[type].propertyFlags & kHost, kHost);
    }
  }
  const auto none = layout({kMiB}, {{0, kLocal}});
  EXPECT_THROW(choose_memory_types(none, MemoryUse::tables, true), DeviceError);
}

/// A driver with the layout of a test, of which every type is the machine's own.
struct Layout {
  static inline PFN_vkAllocateMemory allocate = nullptr;
  static inline PFN_vkGetBufferMemoryRequirements requirements = nullptr;
  static inline std::uint32_t allowed = ~0U;  // memoryTypeBits of every buffer
  static inline std::vector<std::uint32_t> asked;

  static void hook(VolkDeviceTable& table) {
    allocate = table.vkAllocateMemory;
    requirements = table.vkGetBufferMemoryRequirements;
    table.vkAllocateMemory = [](VkDevice device, const VkMemoryAllocateInfo* info,
                                const VkAllocationCallbacks* host, VkDeviceMemory* memory) {
      asked.push_back(info->memoryTypeIndex);
      VkMemoryAllocateInfo real = *info;
      real.memoryTypeIndex = 0;
      return allocate(device, &real, host, memory);
    };
    table.vkGetBufferMemoryRequirements = [](VkDevice device, VkBuffer buffer, VkMemoryRequirements* needs) {
      requirements(device, buffer, needs);
      needs->memoryTypeBits = allowed;
    };
  }
};

class VulkanHeaps : public ::testing::Test {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    if (vulkan::physical_devices()[0].memory.memoryTypeCount != 1)
      GTEST_SKIP() << "its layouts are made of a device's only memory type, and this device has several";
  }

  /// The device at hand with another layout; `room` bytes to a heap.
  std::unique_ptr<vulkan::MemoryPool> pool(const VkPhysicalDeviceMemoryProperties& memory, const char* type,
                                           std::vector<std::uint64_t> room,
                                           MemoryUse use = MemoryUse::tensors) {
    physical_ = vulkan::physical_devices()[0];
    physical_.memory = memory;
    physical_.info.type = type;
    physical_.profile.unified_memory = std::string_view(type) == "integrated-gpu";
    physical_.capabilities.software = false;
    vulkan::set_table_hook(Layout::hook);
    device_ = std::make_shared<vulkan::LogicalDevice>(physical_);
    vulkan::set_table_hook(nullptr);
    Layout::asked.clear();
    Layout::allowed = ~0U;
    room_ = std::move(room);
    return std::make_unique<vulkan::MemoryPool>(device_, use, false, [this](std::uint32_t heap) {
      return std::optional<std::uint64_t>(room_.at(heap));
    });
  }

  vulkan::PhysicalDevice physical_;
  vulkan::DevicePtr device_;
  std::vector<std::uint64_t> room_;
};

TEST_F(VulkanHeaps, TensorsOfAnIntegratedGpuGoOnInTheHostsMemory) {
  const auto tensors = pool(kCarved, "integrated-gpu", {100 * kMiB, 1000 * kMiB});
  const vulkan::Piece first = tensors->allocate(80 * kMiB);
  EXPECT_EQ(Layout::asked, Chosen{2});
  room_[0] = 20 * kMiB;
  const vulkan::Piece second = tensors->allocate(80 * kMiB);
  EXPECT_EQ(Layout::asked, (Chosen{2, 1}));
  EXPECT_NE(second.mapped, nullptr);
  EXPECT_FALSE(second.readable) << "the type that the host does not cache";
  room_[1] = 0;
  try {
    tensors->allocate(80 * kMiB);
    FAIL() << "no exception";
  } catch (const OutOfMemoryError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("a heap of 536870912 of which the driver has 20971520 left for this "
                        "process and a heap of 17179869184 of which the driver has 0 left"),
              std::string::npos)
        << error.what();
  }
  tensors->release(first, 0);
  tensors->release(second, 0);
}

TEST_F(VulkanHeaps, TensorsOfADiscreteGpuDoNot) {
  const auto tensors = pool(kWindow, "discrete-gpu", {100 * kMiB, 32000 * kMiB, 256 * kMiB});
  const vulkan::Piece first = tensors->allocate(80 * kMiB);
  EXPECT_EQ(first.mapped, nullptr);
  room_[0] = 20 * kMiB;
  EXPECT_THROW(tensors->allocate(80 * kMiB), OutOfMemoryError);
  tensors->release(first, 0);
}

TEST_F(VulkanHeaps, TablesLeaveAFullWindow) {
  const auto tables = pool(kWindow, "discrete-gpu", {0, 1000 * kMiB, 0}, MemoryUse::tables);
  const vulkan::Piece piece = tables->allocate(1000);
  EXPECT_EQ(Layout::asked, Chosen{2});
  EXPECT_NE(piece.mapped, nullptr);
  tables->release(piece, 0);
}

TEST_F(VulkanHeaps, ATypeThatTheDriverForbidsIsLeftOut) {
  const auto tensors = pool(kCarved, "integrated-gpu", {100 * kMiB, 1000 * kMiB});
  Layout::allowed = 1U << 1;
  const vulkan::Piece piece = tensors->allocate(kMiB);
  EXPECT_EQ(Layout::asked, Chosen{1});
  tensors->release(piece, 0);
}

}  // namespace
}  // namespace caldera::testing
