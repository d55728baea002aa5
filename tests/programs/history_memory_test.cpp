// Long runs keep as much as short ones: replaced parameters go, and so does what was computed from them.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/graph/histories.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class LongRuns : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, LongRuns, ::testing::ValuesIn(engine_setups()), engine_setup_name);

LazyTensor target(Device device) { return LazyTensor::from_vector<float>({1, 2, 3, 4}, {4}, device); }

TEST_P(LongRuns, TrainingWithoutDetach) {
  LazyTensor w = zeros({4}, DType::f32, device());
  const LazyTensor wanted = target(device());
  std::uint64_t live = 0;
  for (int step = 0; step < 1000; ++step) {
    const LazyTensor loss = sum(square(w - wanted));
    w = w - 0.1 * grad(loss, w);
    eval({w, loss});
    EXPECT_LE(history_stats().histories, 4U);
    if (step == 200) live = backend(device()).counters().live_bytes;
    if (step == 999) {
      EXPECT_EQ(backend(device()).counters().live_bytes, live);
    }
  }
  EXPECT_NEAR(w.to_vector<float>()[3], 4.0F, 1e-3F);
}

TEST_P(LongRuns, MomentumThatIsNeverAskedFor) {
  LazyTensor w = zeros({4}, DType::f32, device()), m = zeros({4}, DType::f32, device());
  const LazyTensor wanted = target(device());
  std::size_t nodes = 0;
  for (int step = 0; step < 100; ++step) {
    m = 0.9 * m + grad(sum(square(w - wanted)), w);
    w = w - 0.01 * m;
    if (step == 5) nodes = w.graph_size();
    if (step > 5) {
      EXPECT_EQ(w.graph_size(), nodes) << "a step is a step";
    }
    w.eval();  // and m, which is held and was computed on the way
  }
  EXPECT_TRUE(m.is_evaluated());
}

}  // namespace
}  // namespace caldera::testing
