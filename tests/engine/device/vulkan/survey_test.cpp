// Surveys of plans: kernels are made and described, one that cannot be made keeps none of the others, and
// nothing is run or allocated. What modules say of themselves.
#include "engine/device/vulkan/survey/survey.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/vulkan/spirv/facts.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "engine/plan/cost.h"
#include "engine/runtime/evaluate.h"
#include "engine/survey/surveyor.h"
#include "tests/support/devices.h"
#include "tests/support/engine_setup.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/scoped_variable.h"

namespace caldera::testing {
namespace {

using vulkan::Context;
using vulkan::DeviceUse;

PFN_vkCreateComputePipelines create = nullptr;
std::atomic<int> calls{0};

/// The driver refuses the first pipeline.
VKAPI_ATTR VkResult VKAPI_CALL refusing(VkDevice device, VkPipelineCache cache, std::uint32_t count,
                                        const VkComputePipelineCreateInfo* infos,
                                        const VkAllocationCallbacks* allocator, VkPipeline* pipelines) {
  if (calls++ == 0) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  return create(device, cache, count, infos, allocator, pipelines);
}

class VulkanSurvey : public ::testing::Test {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(kDevice); }

  /// An element-wise kernel, a product, rows: planned where nothing is open, for this device.
  static std::shared_ptr<const Plan> plan() {
    const auto in = [](const Shape& shape) {
      return LazyTensor::zeros(shape, DType::f32, Device::null()).eval();
    };
    const LazyTensor x = in({256, 32}), w = in({32, 48});
    auto plan = std::make_shared<Plan>(*plan_for({exp(x), matmul(x, w), softmax(matmul(x + 1.0, w))}));
    plan->device = kDevice;
    return plan;
  }

  static constexpr Device kDevice = Device::vulkan(0);
  const ScopedVariable nothing_on_disk_{"CALDERA_CACHE_DIR", ""};
};

TEST_F(VulkanSurvey, ReportsEveryDispatchOfThePlan) {
  const auto surveyed = plan();
  Context context(vulkan::physical_devices().at(0), DeviceUse::survey);
  const std::vector<KernelReport> reports = vulkan::survey({&surveyed, 1}, context);
  std::size_t dispatches = 0;
  std::int64_t flops = 0, expected = 0;
  for (const KernelReport& report : reports) {
    SCOPED_TRACE(report.kernel);
    EXPECT_EQ(report.error, "");
    EXPECT_GT(report.workgroup_size, 0);
    dispatches += report.dispatches.size();
    for (const DispatchFacts& d : report.dispatches) flops += d.flops;
    if (!context.device->keeps_statistics()) {
      EXPECT_FALSE(report.statistics.registers.has_value());
      EXPECT_TRUE(report.statistics.others.empty());
    }
  }
  for (const Step& step : surveyed->steps) expected += cost_of(*surveyed, step).flops;
  EXPECT_EQ(dispatches, static_cast<std::size_t>(surveyed->dispatch_count()));
  EXPECT_EQ(flops, expected);
}

/// Joined products of two texts, as one adds a number and the others a matrix: a dispatch has the work of its
/// own products alone.
TEST_F(VulkanSurvey, DispatchesOfJoinedStepsHaveTheirOwnWork) {
  struct Product {
    std::int64_t m, n, k;
    bool adds_number;
    std::int64_t flops() const { return 2 * m * n * k + m * n; }
    std::int64_t bytes() const { return 4 * (m * k + k * n + m * n + (adds_number ? 1 : m * n)); }
  };
  const std::vector<Product> products = {{64, 64, 96, false}, {128, 64, 32, true}, {64, 128, 256, false}};
  KernelBuilder b("add");
  const auto product = b.load(DType::f32);
  const auto add = b.store(b.op(ScalarOp::add, product, b.load(DType::f32))).finish();
  PlanCase c(kDevice);
  std::vector<std::array<int, 3>> inputs;
  for (const auto& [m, n, k, adds_number] : products)
    inputs.push_back({c.input(DType::f32, m * k), c.input(DType::f32, k * n),
                      c.input(DType::f32, adds_number ? 1 : m * n)});
  for (std::size_t i = 0; i < products.size(); ++i) {
    const auto [m, n, k, adds_number] = products[i];
    const Operand added = adds_number ? view(inputs[i][2], {0, 0, 0}) : view(inputs[i][2], {n, 1, 0});
    c.contract(DType::f32, {m, n, k},
               {view(inputs[i][0], {k, 0, 1}), view(inputs[i][1], {0, 1, n}), added,
                view(c.output(DType::f32, m * n), {n, 1, 0})},
               add);
    if (i > 0) c.join();
  }
  const auto plan = c.shared_plan();
  Context context(vulkan::physical_devices().at(0), DeviceUse::survey);
  using Work = std::pair<std::int64_t, std::int64_t>;  // flops, bytes
  std::multiset<Work> seen;
  for (const KernelReport& report : vulkan::survey({&plan, 1}, context)) {
    EXPECT_EQ(report.error, "");
    for (const DispatchFacts& d : report.dispatches) seen.emplace(d.flops, d.bytes);
  }
  const std::multiset<Work> expected{
      {products[0].flops() + products[2].flops(), products[0].bytes() + products[2].bytes()},
      {products[1].flops(), products[1].bytes()}};
  EXPECT_EQ(seen, expected);
}

TEST_F(VulkanSurvey, OneThatCannotBeMadeKeepsNoneOfTheOthers) {
  const auto surveyed = plan();
  vulkan::set_table_hook([](VolkDeviceTable& table) {
    create = table.vkCreateComputePipelines;
    table.vkCreateComputePipelines = refusing;
  });
  Context context(vulkan::physical_devices().at(0), DeviceUse::survey);
  vulkan::set_table_hook(nullptr);
  calls = 0;
  const std::vector<KernelReport> reports = vulkan::survey({&surveyed, 1}, context);
  ASSERT_GE(reports.size(), 3U);
  EXPECT_EQ(calls, static_cast<int>(reports.size()));
  int failed = 0;
  for (const KernelReport& report : reports) {
    if (report.error.empty()) continue;
    ++failed;
    EXPECT_NE(report.error.find("creating its pipeline: VK_ERROR_OUT_OF_DEVICE_MEMORY"), std::string::npos)
        << report.error;
  }
  EXPECT_EQ(failed, 1);
}

TEST_F(VulkanSurvey, TensorsHaveASizeAndNoMemory) {
  const std::unique_ptr<Backend> backend = make_vulkan_surveyor(0);
  ASSERT_NE(dynamic_cast<Surveyor*>(backend.get()), nullptr);
  const StoragePtr large = backend->allocate(std::size_t{1} << 50);
  EXPECT_EQ(large->bytes(), std::size_t{1} << 50);
  EXPECT_EQ(backend->counters().reserved_bytes, 0U);
  std::vector<float> values(4, 1);
  backend->download(*large, std::size_t{1} << 49, values.data(), 16);
  EXPECT_EQ(values, std::vector<float>(4, 0));
  EXPECT_EQ(backend->counters().kernels_compiled, 0U);
}

/// A module by its words: `op(opcode, operands...)` after the header.
struct Module {
  std::vector<std::uint32_t> words{0x07230203, 0x00010500, 0, 100, 0};
  Module& op(std::uint32_t code, std::initializer_list<std::uint32_t> operands) {
    words.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | code);
    words.insert(words.end(), operands);
    return *this;
  }
};

TEST(SpirvFacts, SizesFollowSpecialisationConstants) {
  Module m;
  m.op(17, {1});                   // OpCapability Shader
  m.op(16, {4, 17, 8, 2, 1});      // OpExecutionMode LocalSize: not what counts
  m.op(71, {10, 1, 0});            // OpDecorate 10 SpecId 0
  m.op(71, {11, 1, 3});            // OpDecorate 11 SpecId 3: beyond what is given
  m.op(71, {20, 11, 25});          // OpDecorate 20 BuiltIn WorkgroupSize
  m.op(21, {1, 32, 0});            // uint
  m.op(22, {2, 32});               // float
  m.op(23, {3, 2, 4});             // vec4
  m.op(50, {1, 10, 64});           // spec constant 0 = 64
  m.op(50, {1, 11, 3});            // spec constant 3 = 3
  m.op(43, {1, 12, 2});            // 2
  m.op(51, {5, 20, 10, 12, 12});   // uvec3(spec 0, 2, 2)
  m.op(52, {1, 15, 81, 20, 0});    // gl_WorkGroupSize.x
  m.op(52, {1, 13, 132, 15, 11});  // that * spec 3
  m.op(52, {1, 14, 128, 13, 12});  // + 2
  m.op(28, {6, 3, 14});            // vec4[...]
  m.op(32, {7, 4, 6});             // pointer to it, shared
  m.op(59, {7, 30, 4});            // the variable
  m.op(32, {8, 6, 2});             // pointer to a float, private
  m.op(59, {8, 31, 6});            // not shared
  const std::vector<std::int32_t> given{128};
  const vulkan::spirv::ModuleFacts facts = vulkan::spirv::facts_of(m.words, given, "tested");
  EXPECT_EQ(facts.workgroup_size, 128 * 2 * 2);
  EXPECT_EQ(facts.shared_bytes, (128 * 3 + 2) * 16);
  EXPECT_FALSE(facts.uses_matrices);
  EXPECT_EQ(vulkan::spirv::facts_of(m.words, {}, "tested").shared_bytes, (64 * 3 + 2) * 16);

  Module plain;
  plain.op(17, {6022});            // OpCapability CooperativeMatrixKHR
  plain.op(16, {4, 17, 8, 2, 3});  // OpExecutionMode LocalSize
  EXPECT_TRUE(vulkan::spirv::facts_of(plain.words, {}, "tested").uses_matrices);
  EXPECT_EQ(vulkan::spirv::facts_of(plain.words, {}, "tested").workgroup_size, 48);
  plain.words.push_back(0x00090011);  // longer than what is left
  EXPECT_THROW(vulkan::spirv::facts_of(plain.words, {}, "tested"), DeviceError);
}

}  // namespace
}  // namespace caldera::testing
