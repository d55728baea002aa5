// compiled(f) computes the bits that f does; after the first call it makes no plans, and no nodes but
// results.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Tensors = std::vector<LazyTensor>;

class HostCompiled : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, HostCompiled, ::testing::ValuesIn(engine_setups()), engine_setup_name);

/// The new weights, and the loss. The arguments: weights, rows, what they should give, rate.
Tensors step(std::span<const LazyTensor> a) {
  const LazyTensor loss = mean(square(tanh(matmul(a[1], a[0])) - a[2]));
  return {a[0] - a[3] * grad(loss, a[0]), loss};
}

TEST_P(HostCompiled, ATrainingLoopGivesTheBitsOfThePlainOne) {
  const LazyTensor x = random_normal({32, 5}, 1, DType::f32, device()), y = slice(x, 1, 0, 1);
  const VectorFunction fast = compiled(VectorFunction(step));
  LazyTensor w = zeros({5, 1}, DType::f32, device()), plain = w;
  std::uint64_t plans = 0;
  for (int i = 0; i < 20; ++i) {
    const double rate = 0.5 / (1 + i);  // a schedule: an argument, like all numbers
    const std::uint64_t before = plan_cache_stats().misses;
    const Tensors next = fast(Tensors{w, x, y, rate});
    plans += i == 0 ? 0 : plan_cache_stats().misses - before;
    const Tensors slow = step(Tensors{plain, x, y, rate});
    eval(slow);
    EXPECT_EQ(next[1].item<float>(), slow[1].item<float>()) << i;
    w = next[0], plain = slow[0];
  }
  EXPECT_EQ(w.to_vector<float>(), plain.to_vector<float>());
  EXPECT_EQ(plans, 0U);
}

TEST_P(HostCompiled, TheLengthOfTheFunctionCostsNothing) {
  const UnaryFunction longer = compiled(UnaryFunction([](const LazyTensor& x) {
    LazyTensor y = x;
    for (int i = 0; i < 500; ++i) y = y * 0.5 + x;
    return y;
  }));
  LazyTensor x = longer(LazyTensor::full({4}, 1.0, DType::f32, device()));
  std::uint64_t nodes = 500;
  for (int i = 0; i < 10; ++i) {
    const LazyTensor next = longer(x);
    nodes = std::min(nodes, next.node_id() - x.node_id());
    x = next;
  }
  EXPECT_LE(nodes, 2U) << "a node for the result, and no others";
  EXPECT_EQ(x.to_vector<float>()[0], 2048) << "y / 2 + x comes to 2 x, exactly";
}

}  // namespace
}  // namespace caldera::testing
