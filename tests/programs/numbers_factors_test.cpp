// A factor is applied where the program applies it: numbers are scaled down before they are multiplied, not
// after.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class ProgramFactors : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, ProgramFactors, ::testing::ValuesIn(engine_setups()), engine_setup_name);

LazyTensor full(const Shape& shape, double value) {
  return LazyTensor::full(shape, value, DType::f32, EngineTest::GetParam().device).eval();
}

TEST_P(ProgramFactors, ScalingBeforeAProductKeepsItInRange) {
  const LazyTensor large = full({3, 4}, 2e25), weight = full({4, 5}, 1e18);
  // 4 * (2e25 * 1e-10) * 1e18: without the factor every term would be beyond 3.4e38.
  for (const float value : matmul(large * 1e-10, weight).to_vector<float>()) EXPECT_NEAR(value, 8e33F, 1e28F);
  for (const float value : matmul(large, 1e-10 * weight).to_vector<float>()) EXPECT_NEAR(value, 8e33F, 1e28F);
}

TEST_P(ProgramFactors, ScalingUpBeforeAProductSavesSmallNumbers) {
  const LazyTensor small = full({2, 6}, 1e-25);
  const LazyTensor gram = matmul(small * 1e20, transpose(small * 1e20));
  for (const float value : gram.to_vector<float>()) EXPECT_NEAR(value, 6e-10F, 1e-15F);
}

TEST_P(ProgramFactors, AFactorOfAResultIsAppliedToTheResult) {
  // Each product fits, the factor brings the second back to the size of the first.
  const LazyTensor x = full({2, 4}, 1e10), w = full({4, 3}, 1), a = full({4, 2}, 1e10),
                   b = full({2, 3}, 1e10);
  const LazyTensor y = matmul(x, w) + 1e-20 * matmul(matmul(x, a), b);
  for (const float value : y.to_vector<float>()) EXPECT_NEAR(value, 4e10F + 8e10F, 1e5F);
}

TEST_P(ProgramFactors, ScaledGradientsStayInRange) {
  // The loss is scaled down ahead of the backward pass, whose products would overflow without that.
  const LazyTensor x = full({4, 4}, 1e15), w = full({4, 4}, 1e15);
  const LazyTensor loss = sum(square(matmul(x, w) * 1e-30));  // (4e30 * 1e-30)^2 each
  const LazyTensor g = grad(loss, w);                         // 4 * 1e15 * (2 * 4 * 1e-30)
  for (const float value : g.to_vector<float>()) EXPECT_NEAR(value, 3.2e-14F, 1e-19F);
}

}  // namespace
}  // namespace caldera::testing
