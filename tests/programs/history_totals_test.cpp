// A running total may be left lazy while the parameters are evaluated: it keeps no step's parameters, and is
// computed once.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class LazyTotals : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, LazyTotals, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(LazyTotals, OfAnEpochAreReadAtItsEnd) {
  LazyTensor w = zeros({4}, DType::f32, device()).eval();
  LazyTensor total = zeros({}, DType::f32, device()), steps = zeros({}, DType::i32, device());
  float by_hand = 0, v = 0;
  for (int step = 0; step < 50; ++step) {
    const auto wanted = static_cast<float>(step % 3);
    const LazyTensor loss = mean(square(w - full({4}, wanted, DType::f32, device())));
    total += loss;
    steps += 1;
    w = w - 0.1 * grad(loss, w);
    eval({w});
    by_hand += (v - wanted) * (v - wanted);
    v -= 0.1F * 0.5F * (v - wanted);
    EXPECT_LE(total.graph_size(), 4U) << "what was computed in earlier steps is part of no graph";
  }
  EXPECT_NEAR(total.item<float>(), by_hand, 1e-3F);
  EXPECT_EQ(steps.item<std::int32_t>(), 50);
}

TEST_P(LazyTotals, DoNotKeepAReplacedParameter) {
  LazyTensor w = zeros({1 << 16}, DType::f32, device()), total = zeros({}, DType::f32, device());
  std::uint64_t early = 0;
  for (int step = 0; step < 60; ++step) {
    const LazyTensor loss = mean(square(w - 1.0));
    total += loss;
    w = w - 0.1 * grad(loss, w);
    eval({w});
    if (step == 9) early = backend(device()).counters().live_bytes;
  }
  EXPECT_LE(backend(device()).counters().live_bytes, early + (1 << 16));
  EXPECT_GT(total.item<float>(), 0);
}

TEST_P(LazyTotals, ThatTakeAProductOfTheirOwnWaitUntilTheyAreAskedFor) {
  const LazyTensor data = ones({8, 4}, DType::f32, device()).eval();
  LazyTensor w = ones({4, 1}, DType::f32, device()).eval();
  const LazyTensor rarely_read = sum(matmul(data, w));
  w = w - 0.5 * w;
  eval({w});
  EXPECT_FALSE(rarely_read.is_evaluated());
  EXPECT_EQ(rarely_read.item<float>(), 32);
}

}  // namespace
}  // namespace caldera::testing
