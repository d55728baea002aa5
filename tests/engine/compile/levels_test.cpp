// Barriers against the depth of the dispatches, which the tests derive element by element on their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/compile/order/order_and_place.h"
#include "engine/plan/dependencies.h"
#include "engine/plan/verify.h"
#include "engine/runtime/evaluate.h"
#include "tests/engine/compile/unit_plans.h"
#include "tests/support/engine_setup.h"
#include "tests/support/plans/dispatch_depth.h"
#include "tests/support/plans/named_programs.h"
#include "tests/support/plans/random_graph.h"

namespace caldera::testing {
namespace {

void expect_least_barriers(const Plan& plan) {
  const int depth = depth_by_elements(plan);
  // A plan whose outputs are all empty has no dispatch at all.
  EXPECT_EQ(plan.barrier_count(), std::max(depth - 1, 0)) << plan.to_string();
  EXPECT_EQ(depth_of(plan), depth) << plan.to_string();
}

TEST(Levels, ProgramsHaveNoBarrierTooMany) {
  for (const NamedProgram& program : named_programs()) {
    for (bool fusion : {true, false}) {
      SCOPED_TRACE(std::string(program.name) + (fusion ? " fused" : " plain"));
      const ScopedSettings scope(fusion);
      expect_least_barriers(*plan_for(program.build(Device::null())));
    }
  }
}

TEST(Levels, RandomGraphsHaveNoBarrierTooMany) {
  for (std::uint32_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    const RandomGraph graph(seed, DType::f32);
    for (bool fusion : {true, false}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + (fusion ? " fused" : " plain"));
      const ScopedSettings scope(fusion);  // proves the plan
      if (const auto plan = plan_for(graph.build(Device::null()))) expect_least_barriers(*plan);
    }
  }
}

/// `branches` chains of `length` steps from the input, summed into the output.
Plan comb_of_chains(int branches, int length, std::int64_t units) {
  Plan plan = empty_plan(branches * length, units);
  std::vector<int> ends;
  for (int b = 0; b < branches; ++b) {
    int from = 0;
    for (int i = 0; i < length; ++i) {
      const int to = 2 + b * length + i;
      plan.steps.push_back(pointwise_step({from}, {to}, units));
      from = to;
    }
    ends.push_back(from);
  }
  plan.steps.push_back(pointwise_step(ends, {1}, units));
  return plan;
}

TEST(Levels, BranchesRunSideBySide) {
  Plan plan = comb_of_chains(5, 7, 1);
  plan_whole(plan);
  EXPECT_GT(plan.barrier_count(), 4 * 7) << "one branch after the other";
  order_and_place(plan);
  EXPECT_EQ(plan.barrier_count(), 7);
  EXPECT_EQ(depth_by_elements(plan), 8);
  EXPECT_NO_THROW(verify_plan(plan));
  EXPECT_EQ(plan.arena_bytes, 5 * kArenaAlignment) << "each step in the place of the one before";
}

TEST(Levels, MemoryIsNotSpentWithoutLimit) {
  // Every branch makes something large of nothing and reduces it to something small. Side by side they would
  // need the memory of all of them.
  constexpr int kBranches = 12;
  constexpr std::int64_t kUnits = 4096;  // a MiB
  Plan plan = empty_plan(0);
  std::vector<int> totals;
  const auto add = [&](std::int64_t units) {
    plan.buffers.push_back({BufferRole::arena, DType::f32, units * kUnit * 4, 0});
    return static_cast<int>(plan.buffers.size()) - 1;
  };
  for (int b = 0; b < kBranches; ++b) {
    const int large = add(kUnits);
    totals.push_back(add(1));
    plan.steps.push_back(region_step(sum_of(1, 1), {kUnits * kUnit}, {{0, 0, {0}}, {large, 0, {1}}}));
    Step total =
        region_step(row_total(), {kUnit, kUnits}, {{large, 0, {kUnits, 1}}, {totals.back(), 0, {1, 0}}});
    total.as<RegionStep>().reduce_rank = 1;
    plan.steps.push_back(std::move(total));
  }
  plan.steps.push_back(pointwise_step(totals, {1}));
  plan_whole(plan);
  const std::int64_t before = plan.arena_bytes;
  const int barriers = plan.barrier_count();
  order_and_place(plan);
  EXPECT_EQ(depth_of(plan), 3);
  EXPECT_EQ(plan.arena_bytes, before);
  EXPECT_EQ(plan.barrier_count(), barriers);
  EXPECT_NO_THROW(verify_plan(plan));
}

TEST(Levels, JoinedStepsMoveTogether) {
  Plan plan = comb_of_chains(2, 3, 1);
  std::rotate(plan.steps.begin() + 1, plan.steps.begin() + 3,
              plan.steps.begin() + 4);  // both first steps first
  plan.steps[1].joined = true;
  plan.steps[1].as<RegionStep>().kernel = plan.steps[0].as<RegionStep>().kernel;
  order_and_place(plan);
  EXPECT_TRUE(plan.steps[1].joined);
  EXPECT_EQ(plan.barrier_count(), 3);
  expect_least_barriers(plan);
  EXPECT_NO_THROW(verify_plan(plan));
}

TEST(Levels, TheOracleCountsByHand) {
  Plan chain = empty_plan(1);
  chain.steps.push_back(pointwise_step({0}, {2}));
  chain.steps.push_back(pointwise_step({2}, {1}));
  EXPECT_EQ(depth_by_reads(chain), 2);
  EXPECT_EQ(depth_by_elements(chain), 2);
  // Two halves of one buffer wait for nobody; what overwrites one of them waits, though it reads nothing of
  // it.
  Plan halves = empty_plan(0);
  halves.steps.push_back(region_step(sum_of(1, 1), {kUnit / 2}, {{0, 0, {1}}, {1, 0, {1}}}));
  halves.steps.push_back(region_step(sum_of(1, 1), {kUnit / 2}, {{0, 0, {1}}, {1, kUnit / 2, {1}}}));
  EXPECT_EQ(depth_by_elements(halves), 1);
  halves.steps.push_back(region_step(sum_of(1, 1), {kUnit / 2}, {{0, 0, {1}}, {1, 1, {1}}}));
  EXPECT_EQ(depth_by_elements(halves), 2);
  EXPECT_EQ(depth_by_reads(halves), 1);
}

}  // namespace
}  // namespace caldera::testing
