// Losses may be kept and added up: what they were computed from goes with the update.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/graph/histories.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class KeptLosses : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, KeptLosses, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(KeptLosses, CostNoHistory) {
  LazyTensor w = zeros({4}, DType::f32, device());
  const LazyTensor wanted = LazyTensor::from_vector<float>({1, 2, 3, 4}, {4}, device());
  std::vector<LazyTensor> losses;
  LazyTensor total = zeros({}, DType::f32, device());
  for (int step = 0; step < 200; ++step) {
    losses.push_back(sum(square(w - wanted)));
    total += losses.back();
    w = w - 0.1 * grad(losses.back(), w);
    eval({w, losses.back()});
    EXPECT_LE(history_stats().histories, 4U);
  }
  float sum = 0;
  for (const LazyTensor& loss : losses) sum += loss.item<float>();
  EXPECT_NEAR(total.item<float>(), sum, 1e-3F);
}

}  // namespace
}  // namespace caldera::testing
