// Windows over a computed tensor: it is computed once, however many windows read it and however they overlap.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/plan/plan.h"
#include "engine/runtime/inspect/explain.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class ProgramWindows : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, ProgramWindows, ::testing::ValuesIn(engine_setups()), engine_setup_name);

LazyTensor ramp(std::int64_t n) { return arange(n, DType::f32, EngineTest::GetParam().device).eval(); }

TEST_P(ProgramWindows, RepeatedDifferencesAreOneStepEach) {
  LazyTensor y = square(ramp(60)) * 0.5;  // second differences are 1, further ones 0
  for (int order = 0; order < 20; ++order) y = slice(y, 0, 1, {}) - slice(y, 0, 0, -1);
  EXPECT_LE(explain({y}).plan->steps.size(), 62U);  // with fusion 21 or fewer
  for (const float value : y.to_vector<float>()) EXPECT_NEAR(value, 0, 1e-3F);
}

TEST_P(ProgramWindows, AMovingSumReadsWhatWasComputed) {
  const LazyTensor f = tanh(ramp(40) * 0.05);
  LazyTensor moving = slice(f, 0, 0, 31);
  for (int k = 1; k < 10; ++k) moving = moving + slice(f, 0, k, k + 31);
  std::int64_t work = 0;
  const auto plan = explain({moving}).plan;
  for (const Step& step : plan->steps) work += step.dims.numel();
  EXPECT_LE(work, 2 * 40 + 10 * 31);
  const auto got = moving.to_vector<float>();
  const auto all = f.to_vector<float>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    float wanted = 0;
    for (std::size_t k = 0; k < 10; ++k) wanted += all[i + k];
    EXPECT_NEAR(got[i], wanted, 1e-5F);
  }
}

TEST_P(ProgramWindows, AStencilIsAppliedAsOftenAsItIsWritten) {
  LazyTensor u = ramp(80);
  for (int t = 0; t < 12; ++t)
    u = 0.25 * slice(u, 0, 0, -2) + 0.5 * slice(u, 0, 1, -1) + 0.25 * slice(u, 0, 2, {});
  EXPECT_LE(explain({u}).plan->steps.size(), 12U * (GetParam().fusion ? 1 : 5));
  const auto got = u.to_vector<float>();  // a straight line stays one
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], static_cast<float>(i) + 12, 1e-3F);
}

}  // namespace
}  // namespace caldera::testing
