// The cache of compiled shaders on disk: never trusted, never in the way.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/pipelines/disk_cache.h"
#include "engine/device/vulkan/pipelines/pipeline_file.h"
#include "engine/device/vulkan/steps/context.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/scoped_variable.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

namespace fs = std::filesystem;
using vulkan::DiskCache;

class VulkanDiskCache : public ::testing::Test {
 protected:
  TempFolder folder_;
  const fs::path directory_ = folder_ / "cache";
  const std::vector<std::uint32_t> words_{0x07230203, 0x00010500, 1, 2, 3};
  const Hash128 key_ = DiskCache::key("text of a shader");
};

TEST_F(VulkanDiskCache, KeepsWhatItIsGiven) {
  const DiskCache cache(directory_ / "made" / "on demand");
  EXPECT_EQ(cache.load(key_), std::nullopt);
  cache.store(key_, words_);
  EXPECT_EQ(cache.load(key_), words_);
  EXPECT_EQ(cache.load(DiskCache::key("another text")), std::nullopt);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory_ / "made" / "on demand"))
    ++files;
  EXPECT_EQ(files, 1U);  // no temporary left
}

TEST_F(VulkanDiskCache, IgnoresDamagedEntries) {
  const DiskCache cache(directory_);
  cache.store(key_, words_);
  const fs::path file = cache.path(key_);
  std::string content;
  {
    std::ifstream in(file, std::ios::binary);
    content.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto write = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  };
  for (std::size_t keep = 0; keep < content.size(); ++keep) {
    write(content.substr(0, keep));
    EXPECT_EQ(cache.load(key_), std::nullopt) << keep;
  }
  for (std::size_t at = 0; at < content.size(); ++at) {
    std::string altered = content;
    altered[at] = static_cast<char>(altered[at] ^ 0x40);
    write(altered);
    EXPECT_EQ(cache.load(key_), std::nullopt) << at;
  }
  write(content);
  EXPECT_EQ(cache.load(key_), words_);
}

TEST_F(VulkanDiskCache, WorksWithoutADirectory) {
  const DiskCache nowhere{fs::path()};
  nowhere.store(key_, words_);
  EXPECT_EQ(nowhere.load(key_), std::nullopt);
  const DiskCache impossible(fs::path("/dev/null/caldera"));
  impossible.store(key_, words_);
  EXPECT_EQ(impossible.load(key_), std::nullopt);
}

TEST_F(VulkanDiskCache, ADeviceStartsFromItAndSurvivesItsDamage) {
  CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
  const ScopedVariable cache("CALDERA_CACHE_DIR", directory_.string());
  const auto run = [] {
    const auto backend = make_vulkan_backend(0);
    auto plan = std::make_shared<Plan>();
    plan->device = Device::vulkan(0);
    plan->buffers = {{BufferRole::input, DType::f32, 12, 0}, {BufferRole::output, DType::f32, 12, 0}};
    plan->input_count = plan->output_count = 1;
    Step step;
    step.as<RegionStep>().kernel = one_op_kernel(ScalarOp::neg, DType::f32, DType::f32);
    step.dims = Shape{3};
    step.operands = {view(0, {1}), view(1, {1})};
    plan->steps = {step};
    const auto executable = backend->prepare(plan);
    const StoragePtr x = backend->allocate(12), y = backend->allocate(12);
    const float values[] = {1, -2, 3};
    backend->upload(*x, 0, values, 12);
    backend->wait(backend->submit(*executable, {{{x.get(), 0}, {y.get(), 0}}, {}}));
    std::vector<float> result(3);
    backend->download(*y, 0, result.data(), 12);
    return result;
  };
  const std::vector<float> expected{-1, 2, -3};
  EXPECT_EQ(run(), expected);
  ASSERT_FALSE(fs::is_empty(directory_));
  EXPECT_EQ(run(), expected);
  for (const auto& entry : fs::directory_iterator(directory_)) fs::resize_file(entry.path(), 60);
  EXPECT_EQ(run(), expected);
}

// ---- The bound of the directory
// ----------------------------------------------------------------------------------

TEST_F(VulkanDiskCache, WhatWasUsedLongestAgoGoesFirst) {
  const std::vector<std::uint32_t> words(256, 0x07230203);  // a file of about 1 KiB
  const auto key = [](int i) { return DiskCache::key("shader " + std::to_string(i)); };
  const auto bytes_of_folder = [&] {
    std::uintmax_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(directory_)) bytes += entry.file_size();
    return bytes;
  };
  const DiskCache cache(directory_, 20 << 10), of_another_process(directory_, 20 << 10);
  fs::create_directories(directory_);
  std::ofstream(directory_ / "notes.txt") << std::string(100, 'x');
  for (int i = 0; i < 15; ++i) {
    cache.store(key(i), words);
    // Times of files are coarse, so they are set: each an hour younger than the one before.
    fs::last_write_time(cache.path(key(i)), fs::file_time_type::clock::now() - std::chrono::hours(48 - i));
  }
  EXPECT_TRUE(of_another_process.load(key(0))) << "a use makes it the youngest";
  for (int i = 15; i < 40; ++i) (i % 2 == 0 ? cache : of_another_process).store(key(i), words);
  EXPECT_LE(bytes_of_folder(), (20 << 10) + 2 * (20 << 10) / 8 + 100)
      << "each exceeds it by an eighth at most";
  EXPECT_FALSE(cache.load(key(1)));
  EXPECT_TRUE(cache.load(key(39)));
  EXPECT_TRUE(fs::exists(directory_ / "notes.txt")) << "what is not the cache's stays";
  EXPECT_GT(cache.folder().stats().evictions + of_another_process.folder().stats().evictions, 15U);

  cache.folder().set_limit(1);
  EXPECT_EQ(cache.folder().stats().entries, 1U) << "the newest stays";
  EXPECT_FALSE(of_another_process.load(key(20))) << "gone under its feet: it is a miss";
  of_another_process.store(key(20), words);
  EXPECT_TRUE(of_another_process.load(key(20)));
}

TEST_F(VulkanDiskCache, ItsBoundIsOfTheEnvironmentAndHalfWrittenFilesGo) {
  const ScopedVariable limit("CALDERA_CACHE_LIMIT", "3KiB");
  const DiskCache cache(directory_);
  EXPECT_EQ(cache.folder().stats().limit, 3072U);
  cache.store(key_, words_);
  const fs::path old = directory_ / "0123.spv.1.0.tmp", young = directory_ / "4567.spv.1.0.tmp";
  for (const fs::path& file : {old, young}) std::ofstream(file) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(3));
  EXPECT_EQ(cache.folder().stats().entries, 1U);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young)) << "somebody may be at it";
  const ScopedVariable wrong("CALDERA_CACHE_LIMIT", "much");
  EXPECT_THROW(DiskCache{directory_}, ValueError);
}

// ---- What the driver made of pipelines
// ---------------------------------------------------------------------

/// Bytes that the driver writes of a cache in which there is nothing yet: a header, by the specification.
std::size_t bytes_of_empty_cache(const vulkan::LogicalDevice& device) {
  const VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  VkPipelineCache cache = VK_NULL_HANDLE;
  EXPECT_EQ(device.vk().vkCreatePipelineCache(device.handle(), &info, nullptr, &cache), VK_SUCCESS);
  std::array<std::byte, 4096> data{};
  std::size_t bytes = data.size();
  EXPECT_EQ(device.vk().vkGetPipelineCacheData(device.handle(), cache, &bytes, data.data()), VK_SUCCESS);
  device.vk().vkDestroyPipelineCache(device.handle(), cache, nullptr);
  return bytes;
}

TEST_F(VulkanDiskCache, KeepsTheDriversDataAndChecksIt) {
  CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
  const VkPhysicalDevice device = vulkan::physical_devices().at(0).handle;
  const vulkan::PipelineFile file(directory_, device);
  EXPECT_TRUE(file.load().empty());
  {
    const ScopedVariable cache("CALDERA_CACHE_DIR", directory_.string());
    vulkan::Context context(vulkan::physical_devices().at(0));
    if (bytes_of_empty_cache(*context.device) < sizeof(VkPipelineCacheHeaderVersionOne))
      GTEST_SKIP() << "the driver's data lack Vulkan's header (lavapipe of Mesa 26 writes 20 bytes of it)";
    context.pipelines.embedded("gather_32")->handle();
  }
  const std::vector<std::byte> data = file.load();
  ASSERT_GE(data.size(), sizeof(VkPipelineCacheHeaderVersionOne));
  std::string content;
  {
    std::ifstream in(file.path(), std::ios::binary);
    content.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto write = [&](const std::string& bytes) {
    std::ofstream(file.path(), std::ios::binary | std::ios::trunc) << bytes;
  };
  for (std::size_t at = 0; at < content.size(); ++at) {
    std::string altered = content;
    altered[at] = static_cast<char>(altered[at] ^ 0x40);
    write(altered);
    EXPECT_TRUE(file.load().empty()) << at;
    write(content.substr(0, at));
    EXPECT_TRUE(file.load().empty()) << at;
  }
  write(content + "x");
  EXPECT_TRUE(file.load().empty());
  write(content);
  EXPECT_EQ(file.load(), data);

  // A whole file of another driver: the digest is right, the header of Vulkan is not.
  for (std::size_t at : {4U, 8U, 12U, 16U, 31U}) {
    std::vector<std::byte> foreign = data;
    foreign[at] ^= std::byte{1};
    file.store(foreign);
    EXPECT_EQ(file.load(), data) << "was replaced by data that are not this device's: byte " << at;
  }
}

int failures_left = 0;

PFN_vkCreateComputePipelines create_pipelines = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL fail_pipelines(VkDevice device, VkPipelineCache cache, std::uint32_t count,
                                              const VkComputePipelineCreateInfo* infos,
                                              const VkAllocationCallbacks* allocator, VkPipeline* pipelines) {
  if (failures_left > 0) {
    --failures_left;
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  return create_pipelines(device, cache, count, infos, allocator, pipelines);
}

TEST_F(VulkanDiskCache, AFailedPipelineNamesItsKernelAndMayBeTriedAgain) {
  CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
  const ScopedVariable cache("CALDERA_CACHE_DIR", directory_.string());
  vulkan::set_table_hook([](VolkDeviceTable& table) {
    create_pipelines = table.vkCreateComputePipelines;
    table.vkCreateComputePipelines = fail_pipelines;
  });
  PlanCase c(Device::vulkan(0));
  const int x = c.input(DType::f32, 64);
  const int w = c.input(DType::f32, 64);
  const int z = c.output(DType::f32, 64);
  c.contract(DType::f32, {8, 8, 8}, {view(x, {8, 0, 1}), view(w, {0, 1, 8}), view(z, {8, 1, 0})});
  {
    const auto backend = make_vulkan_backend(0);
    vulkan::set_table_hook(nullptr);
    failures_left = 1;
    try {
      backend->prepare(c.shared_plan());
      ADD_FAILURE() << "no error";
    } catch (const DeviceError& e) {
      const std::string what = e.what();
      EXPECT_NE(what.find("matmul"), std::string::npos) << what;
      EXPECT_NE(what.find("VK_ERROR_OUT_OF_HOST_MEMORY"), std::string::npos) << what;
    }
    EXPECT_EQ(backend->counters().kernels_compiled, 0U);
    c.check_on(*backend, {1e-6, 1e-5});
    EXPECT_EQ(backend->counters().kernels_compiled, 1U);
  }
  failures_left = 0;
}

}  // namespace
}  // namespace caldera::testing
