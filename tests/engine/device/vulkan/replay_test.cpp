// Recording and replay on the Vulkan device: one recording, one submit a replay, new inputs through the
// table.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/replay/executable.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

class VulkanReplay : public ::testing::Test {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    backend_ = make_vulkan_backend(0);
  }

  StoragePtr upload(const std::vector<float>& values) {
    StoragePtr storage = backend_->allocate(4 * values.size());
    backend_->upload(*storage, 0, values.data(), 4 * values.size());
    return storage;
  }
  std::vector<float> download(Storage& storage) {
    std::vector<float> values(storage.bytes() / 4);
    backend_->download(storage, 0, values.data(), storage.bytes());
    return values;
  }

  std::unique_ptr<Backend> backend_;
};

/// t = x * s in the arena, then y = t + x, both over n elements.
std::shared_ptr<Plan> two_step_plan(std::int64_t n) {
  auto plan = std::make_shared<Plan>();
  plan->device = Device::vulkan(0);
  plan->buffers = {{BufferRole::input, DType::f32, 4 * n, 0},
                   {BufferRole::output, DType::f32, 4 * n, 0},
                   {BufferRole::arena, DType::f32, 4 * n, 0}};
  plan->input_count = plan->output_count = 1;
  plan->scalars = {DType::f32};
  plan->arena_bytes = 4 * n;
  auto scale = std::make_shared<Kernel>();
  scale->name = "scale";
  scale->inputs = {DType::f32};
  scale->scalars = {DType::f32};
  scale->code = {
      {ScalarOp::load, DType::f32, 0}, {ScalarOp::scalar, DType::f32, 0}, {ScalarOp::mul, DType::f32, 0, 1}};
  scale->outputs = {{2, DType::f32}};
  scale->finish();
  Step first;
  first.as<RegionStep>().kernel = scale;
  first.dims = Shape{n};
  first.operands = {view(0, {1}), view(2, {1})};
  first.scalars = {0};
  Step second;
  second.as<RegionStep>().kernel = one_op_kernel(ScalarOp::add, DType::f32, DType::f32);
  second.dims = Shape{n};
  second.operands = {view(2, {1}), view(0, {1}), view(1, {1})};
  second.barrier_before = true;
  plan->steps = {first, second};
  return plan;
}

std::uint64_t bit_pattern(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST_F(VulkanReplay, NewInputsWithoutNewRecordings) {
  constexpr int kReplays = 20;
  constexpr std::int64_t kSize = 1025;
  const auto executable = backend_->prepare(two_step_plan(kSize));
  const auto& recorded = dynamic_cast<const vulkan::VulkanExecutable&>(*executable);
  const DeviceCounters before = backend_->counters();

  std::vector<StoragePtr> inputs, outputs;
  Ticket last = 0;
  for (int i = 0; i < kReplays; ++i) {  // many in flight at once
    inputs.push_back(upload(std::vector<float>(kSize, static_cast<float>(i + 1))));
    outputs.push_back(backend_->allocate(4 * kSize));
    const Ticket ticket = backend_->submit(
        *executable,
        {{{inputs.back().get(), 0}, {outputs.back().get(), 0}}, {bit_pattern(static_cast<float>(i))}});
    EXPECT_GT(ticket, last);
    last = ticket;
  }
  backend_->wait(last);
  for (int i = 0; i < kReplays; ++i) {
    const auto expected = static_cast<float>((i + 1) * i + (i + 1));
    EXPECT_EQ(download(*outputs[static_cast<std::size_t>(i)]), std::vector<float>(kSize, expected)) << i;
  }
  const DeviceCounters after = backend_->counters();
  EXPECT_EQ(after.kernels_compiled, before.kernels_compiled);
  EXPECT_EQ(after.submits - before.submits, static_cast<std::uint64_t>(kReplays));
  EXPECT_EQ(after.dispatches - before.dispatches, 2U * kReplays);
  EXPECT_EQ(after.barriers - before.barriers, 1U * kReplays);
  EXPECT_LE(recorded.instances(), 3U);
}

TEST_F(VulkanReplay, ByteOffsetsOfSlotsCount) {
  const auto executable = backend_->prepare(two_step_plan(4));
  const StoragePtr x = upload({9, 9, 9, 1, 2, 3, 4, 9});
  const StoragePtr y = upload({0, 0, 0, 0, 0, 0});
  backend_->wait(backend_->submit(*executable, {{{x.get(), 12}, {y.get(), 4}}, {bit_pattern(2)}}));
  EXPECT_EQ(download(*y), (std::vector<float>{0, 3, 6, 9, 12, 0}));
}

TEST_F(VulkanReplay, PlansShareOneArenaInTurn) {
  const auto small = backend_->prepare(two_step_plan(100));
  const auto large = backend_->prepare(two_step_plan(100000));
  const StoragePtr xs = upload(std::vector<float>(100, 1)), xl = upload(std::vector<float>(100000, 2));
  const StoragePtr ys = backend_->allocate(400), yl = backend_->allocate(400000);
  Ticket last = 0;
  for (int i = 0; i < 5; ++i) {
    backend_->submit(*small, {{{xs.get(), 0}, {ys.get(), 0}}, {bit_pattern(1)}});
    last = backend_->submit(*large, {{{xl.get(), 0}, {yl.get(), 0}}, {bit_pattern(1)}});
  }
  backend_->wait(last);
  EXPECT_EQ(download(*ys), std::vector<float>(100, 2));
  EXPECT_EQ(download(*yl), std::vector<float>(100000, 4));
}

TEST_F(VulkanReplay, KernelsAreSharedByPlans) {
  const auto first = backend_->prepare(two_step_plan(64));
  const std::uint64_t compiled = backend_->counters().kernels_compiled;
  EXPECT_EQ(compiled, 2U);
  const auto second = backend_->prepare(two_step_plan(4096));  // other extents, the same shaders
  EXPECT_EQ(backend_->counters().kernels_compiled, compiled);
}

/// y_i = x_i * s_i over each of `extents`, one after the other in x and y, the steps joined to the first.
/// Every other step is transposed.
std::shared_ptr<Plan> joined_plan(const std::vector<Shape>& extents) {
  auto plan = std::make_shared<Plan>(*two_step_plan(1));
  const auto kernel = plan->steps[0].as<RegionStep>().kernel;
  plan->steps.clear();
  plan->scalars.clear();
  plan->arena_bytes = 0;
  std::int64_t elements = 0;
  for (const Shape& shape : extents) {
    Step s;
    s.as<RegionStep>().kernel = kernel;
    s.dims = shape;
    const bool transposed = plan->steps.size() % 2 == 1;
    const Operand dense = view(0, {shape[1], 1}, elements), turned = view(0, {1, shape[0]}, elements);
    s.operands = {transposed ? turned : dense, dense};
    s.operands[1].buffer = 1;
    s.joined = !plan->steps.empty();
    s.scalars = {static_cast<std::int32_t>(plan->scalars.size())};
    plan->scalars.push_back(DType::f32);
    plan->steps.push_back(std::move(s));
    elements += shape.numel();
  }
  plan->buffers = {{BufferRole::input, DType::f32, 4 * elements, 0},
                   {BufferRole::output, DType::f32, 4 * elements, 0}};
  return plan;
}

TEST_F(VulkanReplay, JoinedStepsAreOneDispatch) {
  const std::vector<Shape> extents{{3, 5}, {70, 41}, {0, 4}, {1, 1}, {129, 2}, {1, 33}};
  const auto executable = backend_->prepare(joined_plan(extents));
  std::vector<float> x, expected;
  Bindings bindings;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::int64_t rows = extents[i][0], columns = extents[i][1];
    const auto scale = static_cast<float>(i + 2);
    const auto first = static_cast<std::int64_t>(x.size());
    for (std::int64_t p = 0; p < rows * columns; ++p) {
      x.push_back(static_cast<float>(first + p));
      const std::int64_t read = i % 2 == 1 ? p / columns + p % columns * rows : p;
      expected.push_back(static_cast<float>(first + read) * scale);
    }
    bindings.scalars.push_back(bit_pattern(scale));
  }
  const StoragePtr in = upload(x), out = backend_->allocate(4 * x.size());
  bindings.slots = {{in.get(), 0}, {out.get(), 0}};
  backend_->wait(backend_->submit(*executable, bindings));
  EXPECT_EQ(download(*out), expected);
  EXPECT_EQ(backend_->counters().dispatches, 1U);
  EXPECT_EQ(backend_->counters().kernels_compiled, 1U);
}

TEST_F(VulkanReplay, ABarrierBeforeAnEmptyStepStands) {
  auto plan = two_step_plan(64);
  Step empty = plan->steps[1];
  empty.dims = Shape{0};
  plan->steps[1].barrier_before = false;
  plan->steps[1].joined = false;
  plan->steps.insert(plan->steps.begin() + 1, empty);
  const auto executable = backend_->prepare(plan);
  const auto& recorded = dynamic_cast<const vulkan::VulkanExecutable&>(*executable).recording();
  ASSERT_EQ(recorded.dispatches.size(), 2U);
  EXPECT_FALSE(recorded.dispatches[0].barrier_before);
  EXPECT_TRUE(recorded.dispatches[1].barrier_before);
  EXPECT_EQ(recorded.barriers, 1U);
}

TEST_F(VulkanReplay, MeasuredReplaysHaveATimeForEveryStep) {
  constexpr std::int64_t kSize = 1 << 20;
  constexpr std::size_t kReplays = 4;
  using Clock = std::chrono::steady_clock;
  const auto executable = backend_->prepare(two_step_plan(kSize));
  const StoragePtr x = upload(std::vector<float>(kSize, 2)), y = backend_->allocate(4 * kSize);
  std::vector<StepTime> times[kReplays];
  const auto before = Clock::now();
  Ticket last = 0;
  for (std::size_t i = 0; i < kReplays; ++i) {  // all in flight before any is read
    Bindings bindings{{{x.get(), 0}, {y.get(), 0}}, {bit_pattern(1)}};
    bindings.step_times = &times[i];
    last = backend_->submit(*executable, bindings);
  }
  backend_->wait(last);
  const auto after = Clock::now();
  EXPECT_EQ(download(*y), std::vector<float>(kSize, 4));
  Clock::time_point reached = before;
  for (const std::vector<StepTime>& steps : times) {
    ASSERT_EQ(steps.size(), 2U);
    for (const StepTime& step : steps) {
      EXPECT_GE(step.begin, reached) << "steps with a barrier between them run one after the other";
      EXPECT_GT(step.end, step.begin) << "a million additions take time";
      reached = step.end;
    }
  }
  EXPECT_LE(reached, after);
  const auto& recorded = dynamic_cast<const vulkan::VulkanExecutable&>(*executable);
  EXPECT_LE(recorded.instances(), 1U) << "measuring has its own recordings";
}

TEST_F(VulkanReplay, TimesOfJoinedAndEmptySteps) {
  auto plan = joined_plan({{3, 5}, {70, 41}, {0, 4}});
  Step empty = plan->steps[0];
  empty.dims = Shape{0, 3};
  plan->steps.push_back(empty);
  const auto executable = backend_->prepare(plan);
  const StoragePtr in = backend_->allocate(4 * 2885), out = backend_->allocate(4 * 2885);
  std::vector<StepTime> times;
  Bindings bindings{{{in.get(), 0}, {out.get(), 0}}, {bit_pattern(1), bit_pattern(1), bit_pattern(1)}};
  bindings.step_times = &times;
  backend_->wait(backend_->submit(*executable, bindings));
  ASSERT_EQ(times.size(), 4U);
  for (std::size_t joined : {1U, 2U}) {
    EXPECT_EQ(times[joined].begin, times[0].begin);
    EXPECT_EQ(times[joined].end, times[0].end);
  }
  EXPECT_EQ(times[3].begin, times[3].end) << "a step without work takes no time";
  EXPECT_GE(times[3].begin, times[0].end);
}

TEST(VulkanStamps, AClockOfFewBitsMayWrap) {
  vulkan::PhysicalDevice physical;
  EXPECT_FALSE(vulkan::has_timestamps(physical));
  physical.timestamp_bits = 36;
  physical.timestamp_period = 2.5;
  EXPECT_TRUE(vulkan::has_timestamps(physical));
  const std::uint64_t last = (std::uint64_t{1} << 36) - 1;
  EXPECT_EQ(vulkan::elapsed(physical, 100, 500).count(), 1000);
  EXPECT_EQ(vulkan::elapsed(physical, last, 3).count(), 10);
  physical.timestamp_bits = 64;
  EXPECT_EQ(vulkan::elapsed(physical, ~std::uint64_t{0}, 3).count(), 10);
}

TEST_F(VulkanReplay, APlanWithoutWorkIsDoneAtOnce) {
  const auto executable = backend_->prepare(two_step_plan(0));
  const StoragePtr x = backend_->allocate(0), y = backend_->allocate(0);
  backend_->wait(backend_->submit(*executable, {{{x.get(), 0}, {y.get(), 0}}, {bit_pattern(2)}}));
  EXPECT_EQ(backend_->counters().dispatches, 0U);
}

TEST_F(VulkanReplay, AnExecutableMayDieWhileItRuns) {
  const StoragePtr x = upload(std::vector<float>(1 << 16, 3));
  const StoragePtr y = backend_->allocate(4 << 16);
  Ticket ticket = 0;
  {
    const auto executable = backend_->prepare(two_step_plan(1 << 16));
    ticket = backend_->submit(*executable, {{{x.get(), 0}, {y.get(), 0}}, {bit_pattern(1)}});
  }
  backend_->wait(ticket);
  EXPECT_EQ(download(*y), std::vector<float>(1 << 16, 6));
}

TEST_F(VulkanReplay, ErrorsNameWhatIsWrong) {
  const auto executable = backend_->prepare(two_step_plan(4));
  EXPECT_THROW(backend_->submit(*executable, {}), PlanError);

  auto plan = two_step_plan(4);
  plan->steps[1].operands[0].strides = Dims{std::int64_t{1} << 40};
  try {
    backend_->prepare(plan);
    FAIL() << "no exception";
  } catch (const ShapeError& e) {
    EXPECT_NE(std::string(e.what()).find("step 1 (" + plan->steps[1].name() + ")"), std::string::npos)
        << e.what();
  }
}

TEST(VulkanDevices, AMissingIndexSaysWhatThereIs) {
  try {
    make_vulkan_backend(77);
    FAIL() << "no exception";
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find("vulkan:77"), std::string::npos) << e.what();
  }
}

TEST(VulkanDevices, TheListIsStable) {
  const std::vector<DeviceInfo> devices = list_vulkan_devices();
  const std::vector<DeviceInfo> again = list_vulkan_devices();
  ASSERT_EQ(devices.size(), again.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    EXPECT_EQ(devices[i].device, Device::vulkan(static_cast<int>(i)));
    EXPECT_EQ(devices[i].name, again[i].name);
    EXPECT_GT(devices[i].memory_bytes, 0U);
  }
}

}  // namespace
}  // namespace caldera::testing
