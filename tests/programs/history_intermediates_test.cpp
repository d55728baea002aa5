// What is computed on the way to a loss and stored is there for whoever holds it: it is not computed again.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class Intermediates : public EngineTest {
 protected:
  LazyTensor x = random_normal({8, 16}, 1, DType::f32, device()).eval();
  LazyTensor w1 = random_normal({16, 32}, 2, DType::f32, device()).eval();
  LazyTensor w2 = random_normal({32, 4}, 3, DType::f32, device()).eval();

  LazyTensor hidden() const { return relu(matmul(x, w1)); }
  static std::uint64_t computed() { return backend(device()).counters().dispatches; }
};
INSTANTIATE_TEST_SUITE_P(Setups, Intermediates, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(Intermediates, AreReadAfterTheLossWithoutComputingAnything) {
  const LazyTensor h = hidden();
  const LazyTensor loss = mean(square(matmul(h, w2)));
  loss.item();
  const std::uint64_t before = computed();
  const Floats got = h.to_vector<float>();
  EXPECT_EQ(computed(), before);
  const Floats wanted = hidden().to_vector<float>();
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-5F);
}

TEST_P(Intermediates, AreNoLessDifferentiable) {
  const Floats wanted = grad(mean(square(matmul(hidden(), w2))), w1).to_vector<float>();
  const LazyTensor h = hidden();
  const LazyTensor loss = mean(square(matmul(h, w2)));
  loss.item();
  const Floats got = grad(loss, w1).to_vector<float>();
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-5F);
}

TEST_P(Intermediates, TakeMemoryAsLongAsTheyAreHeld) {
  std::vector<LazyTensor> losses;  // whose histories lead to what was h
  std::uint64_t live = 0;
  for (int step = 0; step < 20; ++step) {
    const LazyTensor h = hidden();
    losses.push_back(mean(square(matmul(h, w2) + 1.0 * step)));
    losses.back().item();
    if (step == 10) live = backend(device()).counters().live_bytes;
  }
  EXPECT_LT(backend(device()).counters().live_bytes, live + 9 * 8 * 32 * sizeof(float));
}

}  // namespace
}  // namespace caldera::testing
