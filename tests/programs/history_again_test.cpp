// A history stays as long as nothing in it is replaced, and may be differentiated again and again.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class Again : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, Again, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(Again, GradientsOfTheSizeOfAnIntermediateReplaceNothing) {
  LazyTensor loss;
  const LazyTensor w = LazyTensor::from_vector<float>({1, -2, 3, 4}, {2, 2}, device());
  const LazyTensor v = LazyTensor::from_vector<float>({2, 1, 0, 1}, {2, 2}, device());
  {
    const LazyTensor h = tanh(matmul(v, w)).eval();  // 2 by 2, as the gradients are; nobody holds it below
    loss = sum(matmul(h, w));
  }
  loss.eval();
  const Floats first = grad(loss, w).to_vector<float>();
  EXPECT_EQ(grad(loss, w).to_vector<float>(), first);
}

TEST_P(Again, SecondDerivativesOfWhatWasRead) {
  const LazyTensor x = LazyTensor::from_vector<float>({2, 3}, {2}, device());
  const LazyTensor y = sum(x * x * x);
  y.eval();
  const LazyTensor first = grad(y, x);
  EXPECT_EQ(first.to_vector<float>(), (Floats{12, 27}));
  EXPECT_EQ(grad(sum(first), x).to_vector<float>(), (Floats{12, 18}));
}

}  // namespace
}  // namespace caldera::testing
