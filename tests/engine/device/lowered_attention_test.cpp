// Attention in parts of the keys, as the compiler splits it, beside the reference of the step that was split.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/compile/lower/lower.h"
#include "engine/compile/order/order_and_place.h"
#include "engine/plan/verify.h"
#include "tests/support/devices.h"
#include "tests/support/plans/attention_case.h"
#include "tests/support/scoped_variable.h"

namespace caldera::testing {
namespace {

constexpr double kHidden = std::numeric_limits<double>::infinity();

class LoweredAttention : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }

  /// `steps`: what the step is to become for a device of `units`.
  void check(const AttentionSetting& s, int units, std::size_t steps) const {
    SCOPED_TRACE(s.text() + " for " + std::to_string(units) + " units");
    AttentionCase c(GetParam(), s);
    c.add_forward_alone();
    check_plan(c, units, steps);
  }
  static void check_plan(AttentionCase& c, int units, std::size_t steps, Backend* other = nullptr,
                         Tolerance tolerance = {3e-5, 2e-5}) {
    const reference::PlanMemory want = c.plan().expected();
    Plan& plan = c.plan().plan();
    lower(plan, {.compute_units = units});
    order_and_place(plan);
    ASSERT_EQ(plan.steps.size(), steps) << plan.to_string();
    ASSERT_NO_THROW(verify_plan(plan)) << plan.to_string();
    Backend& backend = other != nullptr ? *other : shared_backend(c.plan().device());
    const reference::DeviceRun run = c.plan().run_on(backend);
    EXPECT_TRUE(run.damage.empty());
    for (const std::string& complaint : c.plan().compare_output(run, want, 0, tolerance).complaints)
      ADD_FAILURE() << complaint;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, LoweredAttention, ::testing::ValuesIn(tested_devices()), device_test_name);

constexpr AttentionSetting kDecoding{.batch = 1, .heads = 2, .group = 4, .m = 1, .n = 512, .d = 64, .e = 32};

TEST_P(LoweredAttention, OneQueryOfGroupedHeads) {
  check(kDecoding, 8, 2);
  AttentionSetting half = kDecoding;
  half.score = ScoreKind::causal;
  half.heads_inside = true;
  for (double fill : {-1e30, -kHidden}) {
    half.fill = fill;
    for (std::int64_t position : {0, 63, 64, 300, 511}) {
      half.offset = position;
      check(half, 8, 2);
    }
  }
}

TEST_P(LoweredAttention, PositionsThatAreArguments) {
  AttentionSetting s = kDecoding;
  s.score = ScoreKind::causal;
  s.offset_scalar = 100;
  check(s, 8, 2);
  s.offset = 3;
  check(s, 8, 2);
}

/// Masked keys that weigh as much as those that are seen: no part of them may be left out.
TEST_P(LoweredAttention, MasksThatHideLittle) {
  AttentionSetting s = kDecoding;
  s.score = ScoreKind::causal;
  s.fill = -0.5;
  s.offset = 70;
  check(s, 8, 2);
  s.offset = -1;  // all keys are masked: they weigh alike
  s.fill = -1e30;
  check(s, 8, 2);
  s.fill = -kHidden;  // not a number
  check(s, 8, 2);
}

TEST_P(LoweredAttention, FewQueriesAndKeysThatDoNotDivide) {
  for (std::int64_t n : {521, 612}) {
    AttentionSetting s{.batch = 2, .heads = 2, .m = 7, .n = n, .d = 16, .e = 33, .score = ScoreKind::causal};
    s.offset = n - 200;
    check(s, 8, n == 521 ? 3 : 2);
    if (n == 521) check(s, 4, 3);  // one whole part and a rest
    s.score = ScoreKind::bias;
    check(s, 8, n == 521 ? 3 : 2);
    s.score = ScoreKind::full_mask;
    s.fill = -kHidden;
    check(s, 8, n == 521 ? 3 : 2);
  }
}

TEST_P(LoweredAttention, WhatIsLargeEnoughStaysWhole) {
  check(kDecoding, 1, 1);
  AttentionSetting s = kDecoding;
  s.n = 130;
  check(s, 64, 1);
  s.n = 512;
  s.heads = 16;
  check(s, 8, 1);
}

/// Values that are not numbers count where their keys are seen, and the parts that a mask hides are not read.
TEST_P(LoweredAttention, ValuesThatAreNotNumbers) {
  AttentionSetting s = kDecoding;
  s.score = ScoreKind::causal;
  s.offset = 255;
  for (std::int64_t key : {10, 200}) {
    AttentionCase c(GetParam(), s);
    c.plan().set(c.values(), key * s.e, floating(std::numeric_limits<double>::quiet_NaN()));
    c.add_forward_alone();
    check_plan(c, 8, 2);
  }
}

/// Every way in which a GPU computes attention, whatever the device takes by itself.
TEST_P(LoweredAttention, EveryVariant) {
  if (GetParam().kind != DeviceKind::vulkan) GTEST_SKIP() << "the CPU has one way";
  for (const AttentionVariantInfo& variant : shared_backend(GetParam()).attention_variants()) {
    if (!variant.why_not.empty()) continue;
    const ScopedVariable pinned("CALDERA_VULKAN_ATTENTION", variant.name);
    const auto backend = make_backend(GetParam());
    const bool halves = variant.rounds_weights;
    AttentionSetting s = kDecoding;
    s.group = 20;
    s.score = ScoreKind::causal;
    s.memory = halves ? DType::f16 : DType::f32;
    for (const auto& [position, fill] : {std::pair{300, -1e30}, {60, -kHidden}, {-1, -1e30}}) {
      s.offset = position;
      s.fill = fill;
      SCOPED_TRACE(variant.name + ": " + s.text());
      AttentionCase c(GetParam(), s);
      c.add_forward_alone();
      check_plan(c, 8, 2, backend.get(), halves ? Tolerance{1e-3, 5e-4} : Tolerance{3e-5, 2e-5});
    }
  }
}

TEST_P(LoweredAttention, AVariantThatThereIsNotIsRefused) {
  if (GetParam().kind != DeviceKind::vulkan) GTEST_SKIP() << "the CPU has one way";
  const ScopedVariable pinned("CALDERA_VULKAN_ATTENTION", "stage");
  EXPECT_THROW(make_backend(GetParam()), ValueError);
}

}  // namespace
}  // namespace caldera::testing
