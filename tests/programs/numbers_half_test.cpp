// 16-bit types: a value is stored in 16 bits only where the program has a tensor of it, so a product that is
// scaled down first does not pass through one that f16 cannot hold (65504 is its largest).
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class ProgramHalf : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (!IsSkipped() && !backend(device()).supports(DType::f16)) GTEST_SKIP() << "no f16 here";
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, ProgramHalf, ::testing::ValuesIn(engine_setups()), engine_setup_name);

LazyTensor half(const Shape& shape, double value) {
  return LazyTensor::full(shape, value, DType::f16, EngineTest::GetParam().device).eval();
}
void expect_near(const LazyTensor& x, float wanted) {
  ASSERT_EQ(x.dtype(), DType::f16);
  for (const float value : astype(x, DType::f32).to_vector<float>()) EXPECT_NEAR(value, wanted, wanted / 200);
}

TEST_P(ProgramHalf, ScaledOperandsAndARowSum) {
  const LazyTensor x = half({2, 64}, 250), w = half({64, 8}, 16);
  expect_near(sum(matmul(x * 0.0078125, w), -1), 16000);  // 64 * 250 * 16 is 256000
}

TEST_P(ProgramHalf, ScaledOperandsOfProductsWithManyDimensions) {
  const LazyTensor x = half({1, 2, 1, 2, 1, 1, 3, 32}, 128), w = half({1, 2, 1, 2, 1, 1, 32, 4}, 64);
  expect_near(matmul(x * 0.0625, w), 16384);  // 262144 without the factor
}

TEST_P(ProgramHalf, MeanSquareOfANormalisedProduct) {
  const LazyTensor x = half({4, 32}, 200), w = half({32, 16}, 100);
  const LazyTensor y = matmul(x, w * 0.0009765625);  // 625; 640000 without the factor
  expect_near(max(y, -1) - min(y * 0.5, -1), 312.5);
}

TEST_P(ProgramHalf, SumsOfProductsKeepTheirOrder) {
  const LazyTensor ones = half({3, 4}, 1), large = half({4, 5}, 12000), offset = half({5}, -40000);
  expect_near(matmul(ones, large) + offset + matmul(ones, large), 56000);  // 96000 without the offset
}

}  // namespace
}  // namespace caldera::testing
