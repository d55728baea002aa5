// Attention gives weighted means of the values: where those fit their type, so does what comes out, though
// the weights are divided by their sum only at the end.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class ProgramAttention : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, ProgramAttention, ::testing::ValuesIn(engine_setups()), engine_setup_name);

LazyTensor constant(const Shape& shape, double value) {
  return LazyTensor::full(shape, value, DType::f32, EngineTest::GetParam().device).eval();
}

TEST_P(ProgramAttention, MeansOfLargeValues) {
  for (const std::int64_t keys : {2, 48, 130}) {
    const LazyTensor q = constant({1, 2, 5, 8}, 0.5), k = constant({1, 2, keys, 8}, 0.25);
    const LazyTensor v = constant({1, 2, keys, 4}, 2e38);
    const LazyTensor weights = softmax(matmul(q, transpose(k)) * 0.5);
    for (const float value : matmul(weights, v).to_vector<float>()) EXPECT_NEAR(value, 2e38F, 1e33F);
  }
}

TEST_P(ProgramAttention, ScoresThatAFactorKeepsInRange) {
  const LazyTensor q = constant({1, 1, 3, 4}, 1e30), k = constant({1, 1, 6, 4}, 1e20);
  const LazyTensor v = constant({1, 1, 6, 2}, 3);
  // (1e30 * 1e-30) * 1e20 is 1e20 for every key: equal scores.
  const LazyTensor y = matmul(softmax(matmul(q * 1e-30, transpose(k))), v);
  for (const float value : y.to_vector<float>()) EXPECT_NEAR(value, 3, 1e-5F);
}

TEST_P(ProgramAttention, GradientsOfMeansOfLargeValues) {
  const LazyTensor q = constant({1, 1, 4, 4}, 0.5), k = constant({1, 1, 64, 4}, 0.5);
  const LazyTensor v = constant({1, 1, 64, 4}, 1e36);
  const LazyTensor y = matmul(softmax(matmul(q, transpose(k))), v);
  const auto g = grad(sum(y * 1e-36), {q, v});  // all values are equal: q makes no difference
  for (const float value : g[0].to_vector<float>()) EXPECT_NEAR(value, 0, 1e-4F);
  for (const float value : g[1].to_vector<float>()) EXPECT_NEAR(value, 4 * 1e-36F / 64, 1e-42F);
}

}  // namespace
}  // namespace caldera::testing
