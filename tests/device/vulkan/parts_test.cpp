// First runs in parts, later runs whole: how many submits, what they compute, and what recording costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/vulkan/replay/executable.h"
#include "engine/device/vulkan/replay/parts.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

/// y = x + 1 + ... + 1, a dispatch an addition, each behind a barrier; or, where `chained` is not set, the
/// additions side by side, each x[i] + 1 for elements of its own.
std::shared_ptr<Plan> additions(std::int64_t count, std::int64_t n, bool chained) {
  auto plan = std::make_shared<Plan>();
  plan->device = Device::vulkan(0);
  const std::int64_t elements = chained ? n : n * count;
  plan->buffers = {{BufferRole::input, DType::f32, 4 * elements, 0},
                   {BufferRole::output, DType::f32, 4 * elements, 0}};
  plan->input_count = plan->output_count = 1;
  plan->scalars = {DType::f32};
  auto kernel = std::make_shared<Kernel>();
  kernel->name = "add_one";
  kernel->inputs = {DType::f32};
  kernel->scalars = {DType::f32};
  kernel->code = {
      {ScalarOp::load, DType::f32, 0}, {ScalarOp::scalar, DType::f32, 0}, {ScalarOp::add, DType::f32, 0, 1}};
  kernel->outputs = {{2, DType::f32}};
  kernel->finish();
  for (std::int64_t i = 0; i < count; ++i) {
    Step step;
    step.as<RegionStep>().kernel = kernel;
    step.dims = Shape{n};
    const std::int64_t offset = chained ? 0 : i * n;
    step.operands = {view(chained && i > 0 ? 1 : 0, {1}, offset), view(1, {1}, offset)};
    step.scalars = {0};
    step.barrier_before = chained && i > 0;
    plan->steps.push_back(std::move(step));
  }
  return plan;
}

/// A recording of a plan as far as parts are concerned: a dispatch a step.
vulkan::Recording one_each(const Plan& plan) {
  vulkan::Recording recording;
  recording.dispatches.resize(plan.steps.size());
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) recording.steps.push_back({i, 1});
  return recording;
}

std::vector<std::size_t> part_ends(const std::shared_ptr<Plan>& plan) {
  return vulkan::first_run_parts(*plan, one_each(*plan));
}

TEST(VulkanParts, AFewSmallDispatchesAreOnePart) {
  EXPECT_EQ(part_ends(additions(1, 4, true)), (std::vector<std::size_t>{1}));
  EXPECT_EQ(part_ends(additions(16, 4, true)), (std::vector<std::size_t>{16}));
}

TEST(VulkanParts, PartsGrow) {
  EXPECT_EQ(part_ends(additions(500, 4, true)), (std::vector<std::size_t>{16, 48, 112, 240, 496, 500}));
  const std::vector<std::size_t> ends = part_ends(additions(10000, 4, false));
  EXPECT_LT(ends.size(), 20U);
  EXPECT_EQ(ends.back(), 10000U);
  EXPECT_TRUE(std::ranges::is_sorted(ends));
}

TEST(VulkanParts, LargeStepsCountByTheirBytes) {
  // 8 MiB each: 4 MiB read, 4 MiB written. 16 MiB are the first part's, 32 the second's.
  const std::vector<std::size_t> ends = part_ends(additions(20, 1 << 20, true));
  EXPECT_EQ(ends, (std::vector<std::size_t>{2, 6, 14, 20}));
}

class VulkanFirstRun : public ::testing::Test {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    backend_ = make_vulkan_backend(0);
  }
  static Bindings bind(const StoragePtr& x, const StoragePtr& y) {
    return {{{x.get(), 0}, {y.get(), 0}}, {std::bit_cast<std::uint32_t>(1.0F)}};
  }
  std::unique_ptr<Backend> backend_;
};

TEST_F(VulkanFirstRun, IsSubmittedInPartsAndLaterRunsWhole) {
  constexpr std::int64_t kSteps = 500, kSize = 33;
  const auto plan = additions(kSteps, kSize, true);
  const auto executable = backend_->prepare(plan);
  std::vector<float> values(kSize), back(kSize);
  std::iota(values.begin(), values.end(), -3.0F);
  const StoragePtr x = backend_->allocate(4 * kSize), y = backend_->allocate(4 * kSize);
  backend_->upload(*x, 0, values.data(), 4 * kSize);
  for (float& v : values) v += kSteps;
  for (const std::size_t expected :
       {part_ends(plan).size(), std::size_t{1}, std::size_t{1}, std::size_t{1}}) {
    const std::uint64_t before = backend_->counters().queue_submits;
    backend_->wait(backend_->submit(*executable, bind(x, y)));
    EXPECT_EQ(backend_->counters().queue_submits - before, expected);
    backend_->download(*y, 0, back.data(), 4 * kSize);
    EXPECT_EQ(back, values);
  }
  EXPECT_EQ(backend_->counters().submits, 4U);
  EXPECT_EQ(backend_->counters().dispatches, 4U * kSteps);
}

TEST_F(VulkanFirstRun, TenThousandDispatchesWithoutHazards) {
  constexpr std::int64_t kSteps = 10000, kSize = 3;
  const auto executable = backend_->prepare(additions(kSteps, kSize, false));
  const auto& recorded = dynamic_cast<const vulkan::VulkanExecutable&>(*executable).recording();
  EXPECT_EQ(recorded.dispatches.size(), static_cast<std::size_t>(kSteps));
  EXPECT_EQ(recorded.barriers, 0U);
  std::vector<float> values(kSteps * kSize), back(values.size());
  std::iota(values.begin(), values.end(), 1.0F);
  const StoragePtr x = backend_->allocate(4 * values.size()), y = backend_->allocate(4 * values.size());
  backend_->upload(*x, 0, values.data(), 4 * values.size());
  backend_->wait(backend_->submit(*executable, bind(x, y)));
  backend_->download(*y, 0, back.data(), 4 * values.size());
  for (float& v : values) v += 1;
  EXPECT_EQ(back, values);
}

/// Processor time of this thread, which records: others may use the machine.
double thread_seconds() {
  timespec now{};
  EXPECT_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

TEST_F(VulkanFirstRun, RecordingGrowsLinearly) {
  // A quadratic walk would take 100 times as long.
  const auto seconds = [&](std::int64_t steps) {
    const auto plan = additions(steps, 3, false);
    const StoragePtr x = backend_->allocate(static_cast<std::size_t>(12 * steps));
    const StoragePtr y = backend_->allocate(static_cast<std::size_t>(12 * steps));
    double least = std::numeric_limits<double>::infinity();
    for (int turn = 0; turn < 5; ++turn) {
      const double begin = thread_seconds();
      const auto executable = backend_->prepare(plan);
      const Ticket ticket = backend_->submit(*executable, bind(x, y));
      least = std::min(least, thread_seconds() - begin);
      backend_->wait(ticket);
    }
    return least;
  };
  const double few = seconds(1000), many = seconds(10000);
  RecordProperty("us_a_dispatch", std::to_string(many / 10000 * 1e6));
  EXPECT_LT(many / few, 30) << few << " s for 1,000 and " << many << " s for 10,000 dispatches";
}

}  // namespace
}  // namespace caldera::testing
