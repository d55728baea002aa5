// What explain says of plans, and what the profiler records.
#include "engine/runtime/inspect/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "engine/caldera.h"
#include "engine/explain/explained_plan.h"
#include "engine/explain/records.h"
#include "engine/runtime/profiler.h"
#include "tests/support/engine_setup.h"

namespace caldera {
namespace {

LazyTensor leaf(const Shape& shape, Device device) {
  return LazyTensor::from_vector(std::vector<float>(static_cast<std::size_t>(shape.numel()), 0.5F), shape,
                                 device);
}

TEST(Explain, CostsOfAProduct) {
  const LazyTensor a = leaf({7, 33}, Device::null());
  const LazyTensor b = leaf({33, 5}, Device::null());
  const Explanation e = explain({matmul(a, b)});
  ASSERT_EQ(e.plan->steps.size(), 1U);
  EXPECT_EQ(costs_of(*e.plan)[0].flops, 2 * 7 * 33 * 5);
  EXPECT_EQ(costs_of(*e.plan)[0].read_bytes, 4 * (7 * 33 + 33 * 5));
  EXPECT_EQ(costs_of(*e.plan)[0].written_bytes, 4 * 7 * 5);
  EXPECT_EQ(costs_of(*e.plan)[0].scratch_bytes, 0);  // its result is an output
  EXPECT_EQ(costs_of(*e.plan)[0].ops, 1);
}

TEST(Explain, BroadcastOperandsCountByWhatTheyHold) {
  const testing::ScopedSettings scope;
  const LazyTensor row = leaf({1, 33}, Device::null());
  const LazyTensor x = leaf({7, 33}, Device::null());
  const Explanation e = explain({x * x + row});
  ASSERT_EQ(e.plan->steps.size(), 1U);
  EXPECT_EQ(costs_of(*e.plan)[0].flops, 2 * 7 * 33);
  EXPECT_EQ(costs_of(*e.plan)[0].read_bytes, 4 * (7 * 33 + 33));
  EXPECT_EQ(costs_of(*e.plan)[0].written_bytes, 4 * 7 * 33);
}

/// Buffers of f32 in the given roles.
Plan plan_with(const std::vector<std::pair<BufferRole, std::int64_t>>& buffers) {
  Plan plan;
  plan.device = Device::null();
  for (const auto& [role, elements] : buffers)
    plan.buffers.push_back({.role = role, .dtype = DType::f32, .bytes = 4 * elements});
  return plan;
}

std::shared_ptr<const Kernel> finished(Kernel kernel) {
  kernel.finish();
  return std::make_shared<const Kernel>(std::move(kernel));
}

TEST(Explain, ValuesOfARowCountOncePerRow) {
  // exp(x) / (sum(exp(x)) + 1), 3 rows of 10.
  Kernel kernel{.name = "rows", .inputs = {DType::f32}, .scalars = {DType::f32}};
  kernel.code = {{ScalarOp::load, DType::f32, 0},    {ScalarOp::exp, DType::f32, 0},
                 {ScalarOp::row_sum, DType::f32, 1}, {ScalarOp::scalar, DType::f32, 0},
                 {ScalarOp::add, DType::f32, 2, 3},  {ScalarOp::div, DType::f32, 1, 4}};
  kernel.outputs = {{5, DType::f32}};
  Plan plan = plan_with({{BufferRole::input, 30}, {BufferRole::arena, 30}});
  Step step;
  step.as<RegionStep>().kernel = finished(kernel);
  step.dims = {3, 10};
  step.as<RegionStep>().reduce_rank = 1;
  step.operands = {{0, 0, {10, 1}}, {1, 0, {10, 1}}};
  const StepCost cost = cost_of(plan, step);
  EXPECT_EQ(cost.flops, 30 + 30 + 3 + 30);  // exp, sum, add, divide
  EXPECT_EQ(cost.scratch_bytes, 120);
  EXPECT_EQ(step.form(), "row");
}

TEST(Explain, IndicesAreNoFloatingPointWork) {
  const testing::ScopedSettings scope;
  const LazyTensor i = arange(50, DType::i32, Device::null());
  const Explanation e = explain({where(less(i + i * 3, 20), leaf({50}, Device::null()), 0.0)});
  ASSERT_EQ(e.plan->steps.size(), 1U);
  EXPECT_EQ(costs_of(*e.plan)[0].flops, 0);
  EXPECT_GT(costs_of(*e.plan)[0].ops, 0);
}

TEST(Explain, AttentionCountsWhatTheMaskLeaves) {
  Kernel score{.name = "score", .inputs = {DType::f32}};
  score.code = {{ScalarOp::load, DType::f32, 0}};
  score.outputs = {{0, DType::f32}};
  const std::int64_t m = 6, n = 9, d = 4, v = 5;
  Plan plan = plan_with({{BufferRole::input, m * d},
                         {BufferRole::input, n * d},
                         {BufferRole::input, n * v},
                         {BufferRole::output, m * v},
                         {BufferRole::output, m},
                         {BufferRole::output, m}});
  Step step;
  step.work = AttentionStep{.score = finished(score), .gradient = {}, .causal = {}};
  step.dims = {m, n, d, v};
  step.operands = {{0, 0, {d, 0, 1, 0}}, {1, 0, {0, d, 1, 0}}, {2, 0, {0, v, 0, 1}},
                   {3, 0, {v, 0, 0, 1}}, {4, 0, {1, 0, 0, 0}}, {5, 0, {1, 0, 0, 0}}};
  const std::int64_t each = 2 * d + 2 * v + 3;
  EXPECT_EQ(cost_of(plan, step).flops, m * n * each);
  EXPECT_EQ(cost_of(plan, step).read_bytes, 4 * (m * d + n * d + n * v));
  EXPECT_EQ(cost_of(plan, step).written_bytes, 4 * (m * v + 2 * m));

  step.as<AttentionStep>().causal = {.fill = 0, .offset = 2};
  std::int64_t seen = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) seen += j <= i + 2 ? 1 : 0;
  EXPECT_EQ(cost_of(plan, step).flops, seen * each);
}

TEST(Explain, LivesAndLiveBytesOfTheArena) {
  // in -> a -> b -> out, where b is in the memory of a; c lives beside b.
  Plan plan = plan_with({{BufferRole::input, 64},
                         {BufferRole::output, 64},
                         {BufferRole::arena, 64},
                         {BufferRole::arena, 64},
                         {BufferRole::arena, 64}});
  plan.input_count = plan.output_count = 1;
  plan.buffers[4].arena_offset = 256;
  plan.arena_bytes = 512;
  Kernel one{.name = "neg", .inputs = {DType::f32}};
  one.code = {{ScalarOp::load, DType::f32, 0}, {ScalarOp::neg, DType::f32, 0}};
  one.outputs = {{1, DType::f32}};
  Kernel two{.name = "add", .inputs = {DType::f32, DType::f32}};
  two.code = {
      {ScalarOp::load, DType::f32, 0}, {ScalarOp::load, DType::f32, 1}, {ScalarOp::add, DType::f32, 0, 1}};
  two.outputs = {{2, DType::f32}};
  const auto step = [&](const Kernel& kernel, const std::vector<std::int32_t>& buffers) {
    Step s;
    s.as<RegionStep>().kernel = finished(kernel);
    s.dims = {64};
    for (const std::int32_t b : buffers) s.operands.push_back({b, 0, {1}});
    plan.steps.push_back(s);
  };
  step(one, {0, 2});
  step(one, {0, 4});
  step(one, {2, 3});
  step(two, {3, 4, 1});

  const std::vector<BufferLife> lives = arena_lives(plan);
  ASSERT_EQ(lives.size(), 3U);
  EXPECT_EQ(lives[0].buffer, 2U);
  EXPECT_EQ(lives[0].first, 0U);
  EXPECT_EQ(lives[0].last, 2U);
  EXPECT_EQ(lives[1].buffer, 4U);
  EXPECT_EQ(lives[1].last, 3U);
  EXPECT_EQ(lives[2].first, 2U);
  EXPECT_EQ(lives[2].writer, 2U);
  EXPECT_EQ(lives[2].shape, Shape{64});
  EXPECT_EQ(live_bytes(plan, lives), (std::vector<std::int64_t>{256, 512, 512, 512}));
  EXPECT_EQ(step_dependencies(plan), (std::vector<std::vector<std::uint32_t>>{{}, {}, {0}, {1, 2}}));
}

TEST(Explain, PlanBeforeARun) {
  const LazyTensor x = leaf({8, 16}, Device::null());
  const LazyTensor y = softmax(x);
  const Explanation e = explain({y});
  EXPECT_FALSE(y.is_evaluated());
  EXPECT_FALSE(e.executed);
  EXPECT_EQ(static_cast<std::int64_t>(e.graph.nodes.size()), e.plan->node_count);
  const auto json = nlohmann::json::parse(to_json(e));
  EXPECT_EQ(json.at("steps").size(), e.plan->steps.size());
  EXPECT_EQ(json.at("nodes"), e.plan->node_count);
  EXPECT_TRUE(json.at("cache").is_null());
  for (const Step& step : e.plan->steps)
    for (const std::uint32_t node : step.nodes) EXPECT_LT(node, e.graph.nodes.size());
  const std::string dot = to_dot(e);
  EXPECT_NE(dot.find("subgraph cluster_0"), std::string::npos);
  EXPECT_NE(dot.find("output 0"), std::string::npos);
}

TEST(Explain, NothingLeftToCompute) { EXPECT_THROW(explain({leaf({3}, Device::cpu())}), ValueError); }

TEST(Explain, ThePageStandsAlone) {
  Explanation e = explain({softmax(leaf({8, 16}, Device::cpu()))});
  e.title = "</script><script>alert(1)</script>";
  std::string page = to_html(e);
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  const std::string svg = "http://www.w3.org/2000/svg";
  for (std::size_t at = page.find(svg); at != std::string::npos; at = page.find(svg))
    page.erase(at, svg.size());
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
}

TEST(Profiler, RecordsRunsAndHostTime) {
  const testing::ScopedSettings scope;
  settings().plan_cache = true;
  clear_plan_cache();
  const LazyTensor x = leaf({8, 16}, Device::cpu());
  const Profiler profiler;
  EXPECT_THROW(Profiler(), Error);
  softmax(x).eval();
  softmax(x).eval();
  const auto runs = profiler.runs();
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_FALSE(runs[0]->cache_hit);
  EXPECT_TRUE(runs[1]->cache_hit);
  for (const auto& run : runs) {
    EXPECT_EQ(run->steps.size(), run->plan->steps.size());
    EXPECT_EQ(run->submits, 1U);
    EXPECT_LE(run->begin, run->steps.front().begin);
    EXPECT_LE(run->steps.back().end, run->done);
    EXPECT_EQ(static_cast<std::int64_t>(run->graph.nodes.size()), run->plan->node_count);
  }
  const auto spans = profiler.spans();
  const auto named = [&](const char* name) {
    return std::count_if(spans.begin(), spans.end(), [&](const HostSpan& s) { return s.name == name; });
  };
  EXPECT_EQ(named("schedule"), 2);
  EXPECT_EQ(named("compile"), 1);
  const auto trace = nlohmann::json::parse(to_trace(runs, spans));
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_GE(event.at("dur").get<double>(), 0);
  }
  const Explanation e = explain(*runs[1]);
  EXPECT_TRUE(e.executed);
  EXPECT_EQ(e.step_seconds.size(), e.plan->steps.size());
}

TEST(Profiler, EndsWithItsScope) {
  { const Profiler profiler; }
  const Profiler next;
  std::thread([] { softmax(leaf({2, 2}, Device::cpu())).eval(); }).join();
  EXPECT_EQ(next.runs().size(), 1U);
}

}  // namespace
}  // namespace caldera
