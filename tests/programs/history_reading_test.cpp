// Reading a value takes nothing away from it: print the loss, look at an intermediate, then differentiate.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class Reading : public EngineTest {
 protected:
  LazyTensor w = LazyTensor::from_vector<float>({1, -2, 3, 4}, {2, 2}, device());

  /// A batch that nobody holds but the graph.
  static LazyTensor batch() { return LazyTensor::from_vector<float>({1, 2, 3, 4, 5, 6}, {3, 2}, device()); }
  LazyTensor hidden() const { return tanh(matmul(batch(), w) * 0.1); }
  Floats slope() const { return grad(mean(square(hidden())), w).to_vector<float>(); }
};
INSTANTIATE_TEST_SUITE_P(Setups, Reading, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(Reading, TheLossBeforeItsGradient) {
  const LazyTensor loss = mean(square(hidden()));
  EXPECT_GT(loss.item<float>(), 0.0F);
  const Floats first = grad(loss, w).to_vector<float>();
  EXPECT_EQ(first, slope());
  EXPECT_EQ(grad(loss, w).to_vector<float>(), first) << "as often as one likes";
}

TEST_P(Reading, AnIntermediateInADebugger) {
  const LazyTensor h = hidden();
  EXPECT_EQ(h.to_vector<float>().size(), 6U);
  const LazyTensor loss = mean(square(h));
  EXPECT_FALSE(loss.is_evaluated());
  loss.eval();
  const Floats got = grad(loss, w).to_vector<float>(), wanted = slope();
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6F);
}

TEST_P(Reading, WhatIsHeldIsComputedOnce) {
  const LazyTensor h = hidden();
  const LazyTensor loss = mean(square(h));
  loss.eval();
  EXPECT_TRUE(h.is_evaluated()) << "it was computed on the way, and is held";
  const std::uint64_t submits = backend(device()).counters().submits;
  static_cast<void>(h.to_vector<float>());
  EXPECT_EQ(backend(device()).counters().submits, submits);
}

}  // namespace
}  // namespace caldera::testing
