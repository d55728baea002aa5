// First runs in parts, later runs whole: how many submits, what they compute, and what recording costs.
#include "engine/device/vulkan/replay/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/record/pace.h"
#include "engine/device/vulkan/replay/executable.h"
#include "engine/device/vulkan/replay/schedule.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/scoped_variable.h"

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
  return vulkan::first_run_parts(vulkan::work_of(*plan, one_each(*plan)));
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

// ---- Cutting and packing by time -------------------------------------------------------------------------

using vulkan::Part;

std::vector<vulkan::Dispatch> dispatches_of(std::initializer_list<std::uint32_t> groups) {
  std::vector<vulkan::Dispatch> list;
  for (const std::uint32_t g : groups) list.push_back({.pipeline = nullptr, .groups = g});
  return list;
}

TEST(VulkanParts, WhatKeepsToTheBudgetIsOnePartAndOneSubmit) {
  const auto dispatches = dispatches_of({8, 8, 8});
  const std::vector<double> seconds{0.03, 0.05, 0.02};
  const std::vector<Part> parts = vulkan::cut(dispatches, seconds, 0.1);
  EXPECT_EQ(parts, (std::vector<Part>{{0, 3}}));
  EXPECT_EQ(vulkan::pack(parts, seconds, 0.1), (std::vector<std::size_t>{1}));
  // The cuts of a first run stand besides.
  const std::size_t ends[] = {1, 3};
  EXPECT_EQ(vulkan::cut(dispatches, seconds, 0.1, ends), (std::vector<Part>{{0, 1}, {1, 3}}));
}

TEST(VulkanParts, LongPlansAreCutFineAndPackedFull) {
  const std::vector<vulkan::Dispatch> dispatches(100, vulkan::Dispatch{.pipeline = nullptr, .groups = 4});
  const std::vector<double> seconds(100, 0.01);  // a second in all
  const std::vector<Part> parts = vulkan::cut(dispatches, seconds, 0.1);
  std::size_t next = 0;
  for (const Part& part : parts) {
    EXPECT_EQ(part.first, next);
    EXPECT_LE(vulkan::seconds_of(part, seconds), 0.025);
    next = part.last;
  }
  EXPECT_EQ(next, 100U);
  std::size_t packed = 0;
  for (const std::size_t count : vulkan::pack(parts, seconds, 0.1)) {
    double sum = 0;
    for (std::size_t p = packed; p < packed + count; ++p) sum += vulkan::seconds_of(parts[p], seconds);
    packed += count;
    EXPECT_LE(sum, 0.1 + 1e-9);
    EXPECT_GT(sum, packed < parts.size() ? 0.07 : 0);
  }
  EXPECT_EQ(packed, parts.size());
}

TEST(VulkanParts, ALongDispatchIsSlicedAsFarAsItHasWorkgroups) {
  const auto dispatches = dispatches_of({8, 1000, 3, 1});
  const std::vector<double> seconds{0.01, 0.55, 0.9, 5.0};
  const std::vector<Part> parts = vulkan::cut(dispatches, seconds, 0.1);
  std::map<std::size_t, std::uint32_t> slices;
  for (const Part& part : parts) slices[part.first] = part.slices;
  EXPECT_EQ(slices, (std::map<std::size_t, std::uint32_t>{{0, 1}, {1, 6}, {2, 3}, {3, 1}}));
  EXPECT_EQ(parts.size(), 11U);
  EXPECT_FALSE(vulkan::is_stale(parts, dispatches, seconds, 0.1)) << "it cannot be cut any further";
}

TEST(VulkanParts, SlicesHaveEveryWorkgroupOnce) {
  for (const auto& [groups, instances] : {std::pair{1000U, 3U}, {7U, 2U}, {2U, 9U}, {5U, 5U}}) {
    const vulkan::Dispatch dispatch{.pipeline = nullptr, .groups = groups, .instances = instances};
    for (const std::uint32_t slices : {1U, 2U, 5U}) {
      std::vector<int> seen(std::size_t{groups} * instances);
      for (std::uint32_t s = 0; s < slices; ++s) {
        const vulkan::GroupRange range = vulkan::groups_of(dispatch, s, slices);
        EXPECT_GT(range.x * range.y, 0U);
        for (std::uint32_t y = range.first_y; y < range.first_y + range.y; ++y) {
          for (std::uint32_t x = range.first_x; x < range.first_x + range.x; ++x) ++seen[y * groups + x];
        }
      }
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
    }
  }
}

TEST(VulkanParts, AreStaleWhereTheyTakeTooLongOrAreTooFine) {
  const auto dispatches = dispatches_of({100, 100, 100});
  const std::vector<double> short_times{0.01, 0.01, 0.01}, long_times{0.1, 0.1, 0.1},
      one_long{0.01, 0.9, 0.01};
  const std::vector<Part> whole = vulkan::cut(dispatches, short_times, 0.1);
  EXPECT_FALSE(vulkan::is_stale(whole, dispatches, short_times, 0.1));
  EXPECT_TRUE(vulkan::is_stale(whole, dispatches, long_times, 0.1));
  const std::vector<Part> sliced = vulkan::cut(dispatches, one_long, 0.1);
  EXPECT_FALSE(vulkan::is_stale(sliced, dispatches, one_long, 0.1));
  EXPECT_TRUE(vulkan::is_stale(sliced, dispatches, short_times, 0.1)) << "sliced for nothing";
}

// ---- What is learned of times ----------------------------------------------------------------------------

vulkan::DeviceProfile slow_device() {
  return vulkan::profile_of({.type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU});
}

TEST(VulkanPace, FallsAtOnceAndRisesSlowly) {
  vulkan::Pace pace(slow_device());
  const vulkan::Work work{.bytes = 1 << 30, .flops = 0};
  const double first = pace.seconds(work, {});
  pace.learn(work, 3 * first);
  EXPECT_NEAR(pace.seconds(work, {}), 3 * first, 0.01 * first);
  pace.learn(work, first);
  EXPECT_GT(pace.seconds(work, {}), 2 * first);
  for (int i = 0; i < 50; ++i) pace.learn(work, first / 10);
  EXPECT_NEAR(pace.seconds(work, {}), first / 10, 0.01 * first);
  // Flops have a rate of their own, and a dispatch of one long loop takes long whatever it computes.
  const vulkan::Work product{.bytes = 0, .flops = std::int64_t{1} << 36};
  EXPECT_NEAR(pace.seconds(product, {}), vulkan::Pace(slow_device()).seconds(product, {}), 1e-9);
  EXPECT_GT(pace.seconds({}, {.pipeline = nullptr, .iterations = 10'000'000}), 1.0);
}

TEST(VulkanPace, TheVariableSaysHowLongASubmitMayTake) {
  const auto budget = [](const char* value) {
    const ScopedVariable variable("CALDERA_VULKAN_SUBMIT_MS", value);
    return vulkan::Pace(slow_device()).budget();
  };
  EXPECT_DOUBLE_EQ(budget(""), 0.1);
  EXPECT_DOUBLE_EQ(budget("250"), 0.25);
  EXPECT_DOUBLE_EQ(budget("0"), 0);
  EXPECT_THROW(budget("fast"), ValueError);
}

/// A plan of additions on a device without one, whose replays take `seconds` for every addition.
class ScheduledPlan {
 public:
  ScheduledPlan(std::int64_t steps, std::int64_t elements)
      : plan_(additions(steps, elements, true)), recording_(one_each(*plan_)) {
    for (vulkan::Dispatch& d : recording_.dispatches) d.groups = 1000;
  }
  void replay(double seconds) {
    if (parts_.empty() || schedule_.is_stale(parts_)) parts_ = schedule_.parts(false);
    std::vector<double> took;
    for (const Part& part : parts_)
      took.push_back(seconds * static_cast<double>(part.last - part.first) / part.slices);
    longest_ = 0;
    std::size_t first = 0;
    submits_ = schedule_.submits(parts_).size();
    for (const std::size_t count : schedule_.submits(parts_)) {
      double sum = 0;
      for (std::size_t p = first; p < first + count; ++p) sum += took[p];
      longest_ = std::max(longest_, sum);
      first += count;
    }
    schedule_.learn(parts_, took, {});
  }
  std::size_t submits() const { return submits_; }
  double longest() const { return longest_; }
  bool is_timed() const { return schedule_.is_timed(); }

 private:
  std::shared_ptr<Plan> plan_;
  vulkan::Recording recording_;
  vulkan::Pace pace_{slow_device()};
  vulkan::Schedule schedule_{*plan_, recording_, pace_};
  std::vector<Part> parts_;
  std::size_t submits_ = 0;
  double longest_ = 0;
};

TEST(VulkanSchedule, ASmallPlanIsOneSubmitAndNotTimed) {
  ScheduledPlan plan(20, 1000);
  plan.replay(1e-5);
  EXPECT_EQ(plan.submits(), 1U);
  EXPECT_FALSE(plan.is_timed());
}

TEST(VulkanSchedule, AFastDeviceGetsLongPlansWhole) {
  ScheduledPlan plan(200, 1 << 22);  // 32 MiB a step: assumed to take a second
  plan.replay(1e-4);
  EXPECT_GT(plan.submits(), 5U);
  EXPECT_TRUE(plan.is_timed());
  plan.replay(1e-4);
  EXPECT_EQ(plan.submits(), 1U);
}

TEST(VulkanSchedule, ASlowDeviceGetsShorterSubmits) {
  ScheduledPlan plan(50, 1 << 20);
  for (int i = 0; i < 3; ++i) plan.replay(0.03);  // 20 times as long as assumed
  EXPECT_LE(plan.longest(), 0.1 + 1e-9);
  EXPECT_GE(plan.submits(), 15U);
  for (int i = 0; i < 3; ++i) plan.replay(3.0);  // single dispatches, too
  EXPECT_LE(plan.longest(), 0.1 + 1e-9);
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
