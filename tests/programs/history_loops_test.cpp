// Loops as they are written in PyTorch: the loss is read, then differentiated; nothing else is evaluated, and
// intermediates are looked at in functions that drop them.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/graph/histories.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class PlainLoops : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, PlainLoops, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(PlainLoops, ReadTheLossAndNothingElse) {
  const std::vector<LazyTensor> starts{LazyTensor::from_vector<float>({0, 0}, {2}, device()),
                                       zeros({2}, DType::f32, device())};
  for (LazyTensor w : starts) {
    std::uint64_t plans = 0;
    for (int step = 0; step < 40; ++step) {
      const LazyTensor loss = mean(square(w - 1.0));
      EXPECT_NEAR(loss.item<float>(), std::pow(0.9, 2 * step), 1e-4);
      w = w - 0.1 * grad(loss, w);
      EXPECT_LE(w.graph_size(), 64U);
      EXPECT_LE(history_stats().histories, 8U);
      if (step == 9) plans = plan_cache_stats().misses;
    }
    EXPECT_EQ(plan_cache_stats().misses, plans) << "every step is like the one before";
  }
}

TEST_P(PlainLoops, ReadTheLossAndEvaluateTheParameter) {
  LazyTensor w = zeros({64}, DType::f32, device()).eval();
  for (int step = 0; step < 40; ++step) {
    const LazyTensor loss = mean(square(w - 1.0));
    loss.item();
    const LazyTensor g = grad(loss, w);
    w = w - 6.4 * g;
    w.eval();
    EXPECT_LE(history_stats().histories, 4U);
  }
  EXPECT_NEAR(w.to_vector<float>()[0], 1 - std::pow(0.8, 40), 1e-4);
}

TEST_P(PlainLoops, LookAtIntermediatesThatNobodyKeeps) {
  const LazyTensor x = LazyTensor::from_vector<float>({1, 2, 3}, {3, 1}, device());
  const LazyTensor w = LazyTensor::from_vector<float>({0.5}, {1, 1}, device());
  const auto layer = [&](const LazyTensor& in) {
    const LazyTensor h = matmul(in, w);
    EXPECT_EQ(h.to_vector<float>().size(), 3U);
    return matmul(h, w);
  };
  const LazyTensor loss = sum(layer(x));
  EXPECT_EQ(loss.item<float>(), 1.5F);
  EXPECT_EQ(grad(loss, w).item<float>(), 6);  // of 6 w^2
}

}  // namespace
}  // namespace caldera::testing
