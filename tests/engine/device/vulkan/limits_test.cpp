// Limits that drivers have and the machine at hand may not: 16 KiB of shared memory, and addresses beyond 4
// GiB.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/device/vulkan/memory/storage.h"
#include "engine/device/vulkan/open/device.h"
#include "engine/device/vulkan/open/physical_device.h"
#include "engine/device/vulkan/steps/attention_step.h"
#include "engine/device/vulkan/steps/encode.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/attention_case.h"
#include "tests/support/plans/row_kernels.h"
#include "tests/support/scoped_variable.h"

namespace caldera::testing {
namespace {

constexpr std::uint32_t kLeast = 16384;  // bytes of shared memory that every Vulkan device has

/// Bytes that a module declares in the Workgroup storage class: arrays of numbers and vectors.
std::uint32_t shared_bytes(std::span<const std::uint32_t> words) {
  constexpr std::uint32_t kTypeInt = 21, kTypeFloat = 22, kTypeVector = 23, kTypeArray = 28,
                          kTypePointer = 32, kConstant = 43, kVariable = 59, kWorkgroup = 4;
  std::map<std::uint32_t, std::uint32_t> bytes, constants, pointees;  // by result
  std::uint32_t sum = 0;
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const auto word = [&](std::size_t i) { return words[at + i]; };
    switch (words[at] & 0xffff) {
      case kTypeInt:
      case kTypeFloat:
        bytes[word(1)] = word(2) / 8;
        break;
      case kConstant:
        constants[word(2)] = word(3);
        break;
      case kTypeVector:
        bytes[word(1)] = bytes[word(2)] * word(3);
        break;
      case kTypeArray:
        bytes[word(1)] = bytes[word(2)] * constants[word(3)];
        break;
      case kTypePointer:
        pointees[word(1)] = word(3);
        break;
      case kVariable:
        if (word(3) == kWorkgroup) sum += bytes[pointees[word(1)]];
        break;
      default:
        break;
    }
  }
  return sum;
}

/// Shader modules that reach the driver; pipelines do not, which would take long to compile.
struct Modules {
  static inline std::mutex mutex;
  static inline std::vector<std::uint32_t> shared;  // bytes of each
  static inline PFN_vkCreateShaderModule create = nullptr;

  static void hook(VolkDeviceTable& table) {
    create = table.vkCreateShaderModule;
    table.vkCreateShaderModule = [](VkDevice device, const VkShaderModuleCreateInfo* info,
                                    const VkAllocationCallbacks* host, VkShaderModule* module) {
      const std::lock_guard lock(mutex);
      shared.push_back(shared_bytes({info->pCode, info->codeSize / 4}));
      return create(device, info, host, module);
    };
    table.vkCreateComputePipelines = [](VkDevice, VkPipelineCache, std::uint32_t,
                                        const VkComputePipelineCreateInfo*, const VkAllocationCallbacks*,
                                        VkPipeline* made) {
      *made = VK_NULL_HANDLE;
      return VK_SUCCESS;
    };
  }
};

class VulkanLimits : public ::testing::Test {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(Device::vulkan(0)); }

  /// The device as one that has so little shared memory; like a GPU unless `few_cores`.
  std::unique_ptr<vulkan::Context> small_device(bool few_cores, bool subgroups = true) {
    const ScopedVariable wide("CALDERA_VULKAN_WIDE", few_cores ? "0" : "1");
    physical_ = vulkan::physical_devices()[0];
    physical_.capabilities.shared_memory = kLeast;
    physical_.capabilities.loop_limit = 0;
    if (!subgroups) physical_.capabilities.subgroup_arithmetic = false;
    vulkan::set_table_hook(Modules::hook);
    auto context = std::make_unique<vulkan::Context>(physical_);
    vulkan::set_table_hook(nullptr);
    Modules::shared.clear();
    return context;
  }

  /// What the plan's shaders declare, in any order.
  static std::vector<std::uint32_t> shared_of(const Plan& plan, vulkan::Context& context) {
    Modules::shared.clear();
    const vulkan::Recording recording = vulkan::encode(plan, context);
    for (const vulkan::Dispatch& dispatch : recording.dispatches) dispatch.pipeline->handle();
    return Modules::shared;
  }

 private:
  vulkan::PhysicalDevice physical_;  // that the last of them refers to
};

TEST_F(VulkanLimits, AttentionOfEveryHeadSizeFitsIntoLittleSharedMemory) {
  for (const bool few_cores : {false, true}) {
    const auto context = small_device(few_cores);
    for (const AttentionPass pass : {AttentionPass::forward, AttentionPass::grad_q, AttentionPass::grad_kv}) {
      for (std::int64_t head = 1; head <= kMaxHeadSize; ++head) {
        for (const std::int64_t queries : {1, 7, 1000}) {
          Step step;
          step.work = AttentionStep{.pass = pass, .score = nullptr, .gradient = nullptr, .causal = {}};
          step.dims = Shape{queries, 1000, head, head};
          const vulkan::AttentionSpace space(step);
          const auto& attention = step.as<AttentionStep>();
          const vulkan::AttentionBlocking b = blocking_of(*context, attention, space, DType::f32);
          ASSERT_LE(b.family->shared_bytes(b, attention), kLeast)
              << "heads of " << head << ", queries " << queries;
          ASSERT_GE(b.tile_rows, 1);
        }
      }
    }
  }
}

TEST_F(VulkanLimits, AttentionDeclaresTheSharedMemoryThatItSays) {
  const auto context = small_device(false);
  // Heads of 64 took 16,640 and 16,896 bytes.
  for (const std::int64_t head : {16, 64}) {
    AttentionCase c(Device::vulkan(0), {.m = 130, .n = 130, .d = head, .e = head});
    c.add_all();
    const Plan& plan = c.plan().plan();
    std::vector<std::uint32_t> declared = shared_of(plan, *context), said;
    for (const Step& step : plan.steps) {
      const auto& attention = step.as<AttentionStep>();
      const vulkan::AttentionBlocking b =
          blocking_of(*context, attention, vulkan::AttentionSpace(step), DType::f32);
      said.push_back(static_cast<std::uint32_t>(b.family->shared_bytes(b, attention)));
    }
    std::ranges::sort(declared);  // threads make pipelines side by side
    std::ranges::sort(said);
    EXPECT_EQ(declared, said);
    EXPECT_LE(declared.back(), kLeast);
    EXPECT_GT(declared.front(), kLeast / 4) << "makes no use of what there is";
  }
}

/// A sum of as many row sums. Each has a part in shared memory where there are no subgroups.
std::shared_ptr<const Kernel> many_sums(int count) {
  KernelBuilder b("sums");
  const auto x = b.load(DType::f32);
  auto sum = b.op(ScalarOp::row_sum, x);
  for (int i = 1; i < count; ++i) sum = b.op(ScalarOp::row_sum, b.op(ScalarOp::mul, x, sum));
  return b.store(b.op(ScalarOp::sub, x, sum)).finish();
}

TEST_F(VulkanLimits, RowsFitIntoLittleSharedMemory) {
  const auto context = small_device(false, false);
  for (const int sums : {1, 2, 16, 60, 200}) {
    PlanCase c(Device::vulkan(0));
    const int x = c.input(DType::f32, 5 * 3000), y = c.output(DType::f32, 5 * 3000);
    Step step;
    step.as<RegionStep>().kernel = many_sums(sums);
    step.dims = Shape{5, 3000};
    step.as<RegionStep>().reduce_rank = 1;
    step.operands = {view(x, {3000, 1}), view(y, {3000, 1})};
    c.plan().steps = {step};
    for (const std::uint32_t bytes : shared_of(c.plan(), *context))
      EXPECT_LE(bytes, kLeast) << sums << " sums";
  }
}

/// Two keys that lie 2^30 elements apart, and values of one: their bytes are beyond what 32 bits count.
TEST_F(VulkanLimits, AttentionReachesKeysBeyondFourGibibytes) {
  const ScopedVariable wide("CALDERA_VULKAN_WIDE", "1");  // loads vectors
  const auto backend = make_vulkan_backend(0);
  const StoragePtr near = backend->allocate(4096), out = backend->allocate(4096);
  const VkDeviceAddress base = static_cast<const vulkan::VulkanStorage&>(*near).address();
  if (base != reinterpret_cast<std::uintptr_t>(near->host_data()))
    GTEST_SKIP() << "only a software device reads memory that was not allocated from it";
  constexpr std::int64_t kApart = (std::int64_t{1} << 30) + 64;  // elements
  constexpr std::size_t kBytes = 4 * static_cast<std::size_t>(kApart + 64);
  void* const mapped =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) GTEST_SKIP() << "no address space for " << kBytes << " bytes";
  const std::unique_ptr<void, void (*)(void*)> unmap(mapped, [](void* p) { ::munmap(p, kBytes); });
  auto* const keys = static_cast<float*>(mapped);
  for (int d = 0; d < 4; ++d) {
    keys[d] = 0.5F;
    keys[kApart + d] = -0.25F;
    keys[64 + d] = 100;  // what an address that lost its upper half finds
  }
  const std::vector<float> data = {1, 1, 1, 1, 3, 3, 3, 3, 5, 5, 5, 5};  // q, then v of both keys
  backend->upload(*near, 0, data.data(), 4 * data.size());

  AttentionCase c(Device::vulkan(0), {.m = 1, .n = 2, .d = 4, .e = 4});
  c.add_forward();
  Plan plan = c.plan().plan();
  Step& step = plan.steps[0];
  const std::int32_t q = step.operands[0].buffer, k = step.operands[1].buffer, v = step.operands[2].buffer;
  step.operands[1].strides[4] = kApart;  // batch, head, group, M, N, D, E
  plan.buffers[static_cast<std::size_t>(k)].bytes = kBytes;
  Bindings bindings;
  bindings.scalars = c.plan().expected().scalars;
  bindings.slots.assign(plan.buffers.size(), {out.get(), 1024});
  bindings.slots[static_cast<std::size_t>(q)] = {near.get(), 0};
  bindings.slots[static_cast<std::size_t>(v)] = {near.get(), 16};
  bindings.slots[static_cast<std::size_t>(k)] = {
      near.get(), static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(keys) - base)};
  const std::int32_t o = step.operands[step.first_output()].buffer;
  bindings.slots[static_cast<std::size_t>(o)] = {out.get(), 0};
  const auto executable = backend->prepare(std::make_shared<Plan>(plan));
  backend->wait(backend->submit(*executable, bindings));
  std::vector<float> got(4);
  backend->download(*out, 0, got.data(), 16);
  // Scores scale * 2 and scale * -1: the share of the second is 1 / (1 + exp(3 scale)).
  float scale = 0;
  std::memcpy(&scale, &bindings.scalars[static_cast<std::size_t>(step.scalars[0])], 4);
  const float want = 3 + 2 / (1 + std::exp(3 * scale));
  for (const float value : got) EXPECT_NEAR(value, want, 1e-4) << "scale " << scale;
}

}  // namespace
}  // namespace caldera::testing
