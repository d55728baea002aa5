// Large graphs of every form become plans whose steps grow as the graph does, and evaluate.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/plan/plan.h"
#include "engine/runtime/inspect/explain.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class ProgramSize : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, ProgramSize, ::testing::ValuesIn(engine_setups()), engine_setup_name);

LazyTensor ones() { return LazyTensor::ones({2, 2}, DType::f32, EngineTest::GetParam().device).eval(); }

TEST_P(ProgramSize, ATreeOfSums) {
  std::vector<LazyTensor> level(512, ones());
  for (LazyTensor& leaf : level) leaf = leaf + ones();  // 512 tensors of their own
  while (level.size() > 1) {
    std::vector<LazyTensor> next;
    for (std::size_t i = 0; i < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    level = std::move(next);
  }
  EXPECT_LE(explain(level).plan->steps.size(), GetParam().fusion ? 300U : 1100U);
  EXPECT_EQ(level[0].to_vector<float>(), std::vector<float>(4, 1024));
}

TEST_P(ProgramSize, EveryValueReadByMany) {
  std::vector<LazyTensor> seen{ones(), ones()};
  for (int i = 0; i < 300; ++i) {
    LazyTensor mean = seen[seen.size() - 1] * 0.125;
    for (std::size_t back = 2; back <= std::min<std::size_t>(8, seen.size()); ++back)
      mean = mean + seen[seen.size() - back] * 0.125;
    seen.push_back(seen.size() < 8 ? ones() : mean);
  }
  // A value is computed once: seven additions and eight factors each.
  EXPECT_LE(explain({seen.back()}).plan->steps.size(), GetParam().fusion ? 300U : 15U * 300U);
  for (const float value : seen.back().to_vector<float>()) EXPECT_NEAR(value, 1, 1e-3F);
}

TEST_P(ProgramSize, AStepOverTime) {
  const LazyTensor w = ones() * 0.25, bias = ones() * 0.5;
  LazyTensor h = ones();
  for (int t = 0; t < 100; ++t) h = matmul(h, w) + bias;  // its fixed point is 1
  const std::vector<LazyTensor> outputs{h, grad(sum(h), bias)};
  EXPECT_LE(explain(outputs).plan->steps.size(), 700U);
  for (const float value : outputs[0].to_vector<float>()) EXPECT_NEAR(value, 1, 1e-4F);
  for (const float value : outputs[1].to_vector<float>()) EXPECT_NEAR(value, 2, 1e-3F);
}

}  // namespace
}  // namespace caldera::testing
