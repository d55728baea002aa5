// Where results may lie: over operands that die, never over what a dispatch still reads, and in inputs that
// are given away.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/plan/verify.h"
#include "tests/engine/compile/damage.h"
#include "tests/engine/compile/sound_plan.h"
#include "tests/engine/compile/unit_plans.h"

namespace caldera::testing {
namespace {

std::int64_t offset_of(const Plan& plan, int buffer) {
  return plan.buffers[static_cast<std::size_t>(buffer)].arena_offset;
}

/// Whether the middle step's output is stored over its operand. Buffer 2 is made, goes through the step to
/// buffer 3, and ends there.
bool goes_in_place(Step middle, DType type = DType::f32) {
  Plan plan = empty_plan(2);
  plan.buffers[3].dtype = type;
  plan.buffers[3].bytes = kUnit * static_cast<std::int64_t>(size_of(type));
  plan.steps = {pointwise_step({0}, {2}), std::move(middle)};
  Step last = pointwise_step({3}, {1});
  if (type != DType::f32) {
    last.as<RegionStep>().kernel =
        make_kernel({.name = "back",
                     .inputs = {type},
                     .code = {{ScalarOp::load, type, 0}, {ScalarOp::cast, DType::f32, 0}},
                     .outputs = {{1, DType::f32}}});
  }
  plan.steps.push_back(std::move(last));
  plan_whole(plan);
  EXPECT_NO_THROW(verify_plan(plan));
  return offset_of(plan, 2) == offset_of(plan, 3);
}

std::shared_ptr<const Kernel> cast_to(DType type) {
  return make_kernel({.name = "cast",
                      .inputs = {DType::f32},
                      .code = {{ScalarOp::load, DType::f32, 0}, {ScalarOp::cast, type, 0}},
                      .outputs = {{1, type}}});
}

TEST(MemoryPlan, PointwiseResultsTakeThePlaceOfDyingOperands) {
  EXPECT_TRUE(goes_in_place(pointwise_step({2}, {3})));
  EXPECT_TRUE(goes_in_place(pointwise_step({0, 2}, {3})));
  EXPECT_TRUE(goes_in_place(region_step(sum_of(1, 1), {8, 8}, {{2, 0, {1, 8}}, {3, 0, {1, 8}}})));
  EXPECT_TRUE(
      goes_in_place(region_step(cast_to(DType::i32), {kUnit}, {{2, 0, {1}}, {3, 0, {1}}}), DType::i32));
}

TEST(MemoryPlan, OthersDoNot) {
  EXPECT_FALSE(goes_in_place(region_step(sum_of(1, 1), {8, 8}, {{2, 0, {1, 8}}, {3, 0, {8, 1}}})))
      << "transposed";
  EXPECT_FALSE(goes_in_place(region_step(sum_of(1, 1), {kUnit}, {{2, kUnit - 1, {-1}}, {3, 0, {1}}})))
      << "reversed";
  EXPECT_FALSE(goes_in_place(pointwise_step({2, 2}, {3}))) << "seen twice";
  EXPECT_FALSE(goes_in_place(region_step(sum_of(1, 1), {kUnit}, {{2, 0, {0}}, {3, 0, {1}}}))) << "broadcast";
  EXPECT_FALSE(
      goes_in_place(region_step(cast_to(DType::f64), {kUnit}, {{2, 0, {1}}, {3, 0, {1}}}), DType::f64))
      << "wider elements";
  Step reduction = region_step(row_total(), {kUnit, 1}, {{2, 0, {1, 0}}, {3, 0, {1, 0}}});
  reduction.as<RegionStep>().reduce_rank = 1;
  EXPECT_FALSE(goes_in_place(std::move(reduction))) << "a reduction";
  Step product;
  product.dims = {8, 8, 8};
  product.work = ContractStep{.segments = {{.k = 8}}, .epilogue = {}};
  product.operands = {{2, 0, {8, 0, 1}}, {0, 0, {0, 1, 8}}, {3, 0, {8, 1, 0}}};
  EXPECT_FALSE(goes_in_place(std::move(product))) << "an operand of a product";
}

TEST(MemoryPlan, WhatIsReadLaterIsNotOverwritten) {
  Plan plan = empty_plan(3);
  plan.steps = {pointwise_step({0}, {2}), pointwise_step({2}, {3}), pointwise_step({3}, {4}),
                pointwise_step({2, 4}, {1})};
  plan_whole(plan);
  EXPECT_NO_THROW(verify_plan(plan));
  EXPECT_NE(offset_of(plan, 2), offset_of(plan, 3));
  EXPECT_EQ(offset_of(plan, 3), offset_of(plan, 4));
  EXPECT_EQ(plan.arena_bytes, 2 * kArenaAlignment);
}

TEST(MemoryPlan, JoinedStepsKeepTheirMemoryApart) {
  // Steps 2 and 3 are one dispatch, and so are 4 and 5. Each pair could share memory if it were two.
  Plan plan = empty_plan(6);
  plan.steps = {pointwise_step({0}, {2}),   pointwise_step({0}, {3}),    pointwise_step({2}, {4}),
                pointwise_step({3}, {5}),   pointwise_step({4, 5}, {6}), pointwise_step({5, 4}, {7}),
                pointwise_step({6, 7}, {1})};
  plan.steps[3].joined = true;
  plan.steps[5].joined = true;
  place_in_order(plan);
  EXPECT_EQ(offset_of(plan, 4), offset_of(plan, 2)) << "in place within a step";
  EXPECT_EQ(offset_of(plan, 5), offset_of(plan, 3));
  for (int written : {6, 7}) {
    for (int read : {4, 5})
      EXPECT_NE(offset_of(plan, written), offset_of(plan, read)) << "read by both steps";
  }
  EXPECT_NE(offset_of(plan, 6), offset_of(plan, 7));
  EXPECT_EQ(plan.arena_bytes, 4 * kArenaAlignment);
  const std::vector<bool> expected{false, false, true, false, true, false, true};
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    EXPECT_EQ(plan.steps[s].barrier_before, expected[s]) << "a barrier stands before whole dispatches: " << s;
  }
}

TEST(MemoryPlan, ABarrierBeforeADispatchCoversAllOfIt) {
  // The second step of the dispatch is the one with the hazard.
  Plan plan = empty_plan(2);
  plan.output_count = 1;
  plan.steps = {pointwise_step({0}, {2}), pointwise_step({0}, {3}), pointwise_step({2}, {1})};
  plan.steps[2].joined = true;
  place_in_order(plan);
  EXPECT_TRUE(plan.steps[1].barrier_before);
  EXPECT_FALSE(plan.steps[2].barrier_before);
  EXPECT_NE(offset_of(plan, 2), offset_of(plan, 3));
}

TEST(MemoryPlan, WindowsOfColumnsNeedNoBarrierBetweenThem) {
  // Rows of 40 elements in three windows: 16 + 8 + 16. The hulls of the windows overlap.
  Plan plan = empty_plan(0);
  plan.buffers[1].bytes = 8 * 40 * 4;
  const auto window = [](std::int64_t at, std::int64_t width) {
    return region_step(sum_of(1, 1), {8, width}, {{0, 0, {0, 0}}, {1, at, {40, 1}}});
  };
  plan.steps = {window(0, 16), window(16, 8), window(24, 16)};
  plan_whole(plan);
  EXPECT_EQ(plan.barrier_count(), 0);
  EXPECT_NO_THROW(verify_plan(plan));
  plan.steps[1] = window(15, 9);  // meets the last column of the first
  plan_whole(plan);
  EXPECT_EQ(plan.barrier_count(), 1);
  plan.steps[1] = window(16, 9);  // and now the first of the third
  plan_whole(plan);
  EXPECT_EQ(plan.barrier_count(), 1);
}

/// A plan of two inputs a and b and one output, with a step before it all that reads a.
Plan donating_plan(bool barrier) {
  Plan plan;
  plan.device = Device::null();
  plan.input_count = 2;
  plan.output_count = 2;
  for (int b = 0; b < 4; ++b) {
    plan.buffers.push_back({b < 2 ? BufferRole::input : BufferRole::output, DType::f32, kUnit * 4, 0});
  }
  // 3 = a; then 2 = a + b, or 2 = a + b + 3, which has to wait for the first step.
  plan.steps = {pointwise_step({0}, {3}),
                barrier ? pointwise_step({0, 1, 3}, {2}) : pointwise_step({0, 1}, {2})};
  plan_whole(plan);
  return plan;
}

std::vector<std::pair<int, int>> donations_of(const Plan& plan) {
  std::vector<std::pair<int, int>> list;
  for (const Donation& d : plan.donations) list.emplace_back(d.output, d.input);
  return list;
}

TEST(Donations, AreListedWhereTheyCostNoBarrier) {
  using List = std::vector<std::pair<int, int>>;
  EXPECT_EQ(donating_plan(true).barrier_count(), 1);
  EXPECT_EQ(donations_of(donating_plan(true)), (List{{2, 0}, {2, 1}}));
  EXPECT_EQ(donating_plan(false).barrier_count(), 0);
  EXPECT_EQ(donations_of(donating_plan(false)), (List{{2, 1}})) << "nothing separates the two readers of a";
  EXPECT_NO_THROW(verify_plan(donating_plan(true)));
  EXPECT_NO_THROW(verify_plan(donating_plan(false)));
}

TEST(Donations, WrongOnesAreRejected) {
  const Damage damages[] = {
      {"no barrier after an earlier reader", "which no barrier separates from an earlier reader",
       [](Plan& p) {
         p = donating_plan(false);
         p.donations = {{2, 0}};
       }},
      {"read again later", "is read after it was given",
       [](Plan& p) {
         p.donations = {{3, 0}};
       }},
      {"elements that other points read", "that other points read",
       [](Plan& p) {
         p.steps[1].operands[1] = {1, kUnit - 1, {-1}};
         p.donations = {{2, 1}};
       }},
      {"different sizes", "between different sizes",
       [](Plan& p) {
         p.buffers[1].bytes += 4;
         p.donations = {{2, 1}};
       }},
      {"from an output", "is not from an input",
       [](Plan& p) {
         p.donations = {{2, 3}};
       }},
      {"to an input", "is not from an input",
       [](Plan& p) {
         p.donations = {{1, 0}};
       }},
  };
  expect_all_rejected(donating_plan(true), damages);
}

}  // namespace
}  // namespace caldera::testing
