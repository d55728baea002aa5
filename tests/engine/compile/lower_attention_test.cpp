// What the lowering pass makes of graphs with attention, by the traits of the device.
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/compile/compile.h"
#include "engine/plan/verify.h"
#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/plan_cache.h"
#include "tests/support/plans/named_programs.h"

namespace caldera::testing {
namespace {

std::shared_ptr<const Plan> plan_of(const std::vector<LazyTensor>& outputs, int units) {
  const std::scoped_lock lock(graph_mutex());
  GraphKey key;
  key.reset(Device::null());
  for (const LazyTensor& output : outputs) key.outputs.push_back(&output.node());
  key.fill();
  auto plan = compile(key.program(), {.traits = {.compute_units = units}});
  EXPECT_NO_THROW(verify_plan(*plan)) << plan->to_string();
  return plan;
}

/// A token's attention: 8 heads over 2 of the keys, whose cache has room for `capacity`.
LazyTensor decoded(const LazyTensor& q, std::int64_t capacity) {
  const Device n = Device::null();
  const Shape shape{1, 2, capacity, 16};
  return scaled_dot_product_attention(
      q, program_input(shape, n, 1), program_input(shape, n, 2),
      {.mask = causal_mask(q.shape(2), capacity, capacity / 2, n), .enable_gqa = true});
}

LazyTensor token() { return program_input({1, 8, 1, 16}, Device::null()); }

TEST(LowerAttention, SplitsTheKeysByTheDevicesUnits) {
  for (const auto& [units, parts] : {std::pair{4, 4}, {16, 16}, {64, 16}}) {
    const auto plan = plan_of({decoded(token(), 1024)}, units);
    ASSERT_EQ(plan->steps.size(), 2U) << plan->to_string();
    // 64 keys is the least that a part has. The heads of a group are the queries of one.
    EXPECT_EQ(plan->steps[0].dims, (Shape{parts, 2, 4, 1024 / parts, 16, 16}));
    EXPECT_EQ(plan->steps[0].kind(), "attention");
    EXPECT_EQ(plan->steps[1].form(), "row");
    EXPECT_EQ(plan->dispatch_count(), 2);
    EXPECT_EQ(plan->barrier_count(), 1);
  }
}

TEST(LowerAttention, LeavesAloneWhatNeedsNoParts) {
  EXPECT_EQ(plan_of({decoded(token(), 1024)}, 0)->steps.size(), 1U);
  EXPECT_EQ(plan_of({decoded(token(), 1024)}, 1)->steps.size(), 1U);
  EXPECT_EQ(plan_of({decoded(token(), 128)}, 64)->steps.size(), 1U);
  const LazyTensor prompt = program_input({1, 8, 96, 16}, Device::null());
  EXPECT_EQ(plan_of({decoded(prompt, 1024)}, 64)->steps.size(), 1U);
  EXPECT_EQ(plan_of({decoded(token(), 1024)}, 0)->steps[0].dims, (Shape{2, 4, 1, 1024, 16, 16}));
}

/// Gradients read what the forward step says of each row.
TEST(LowerAttention, KeepsTheRowsThatGradientsRead) {
  const LazyTensor q = token();
  const LazyTensor o = decoded(q, 1024);
  const auto plan = plan_of({o, grad(sum(o * o), {q})[0]}, 64);
  int forward = 0;
  for (const Step& step : plan->steps) {
    if (step.kind() != "attention") continue;
    ++forward;
    EXPECT_EQ(step.dims[step.dims.rank() - 3], 1024);
  }
  EXPECT_EQ(forward, 1);
}

TEST(LowerAttention, TraitsArePartOfWhatAPlanIsFoundBy) {
  const Hash128 structure;
  EXPECT_EQ(plan_key(structure, {.compute_units = 4}, 1), plan_key(structure, {.compute_units = 4}, 1));
  EXPECT_NE(plan_key(structure, {.compute_units = 4}, 1), plan_key(structure, {.compute_units = 5}, 1));
}

}  // namespace
}  // namespace caldera::testing
