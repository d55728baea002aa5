// A failed evaluation takes nothing away: what failed is lazy again, what did not has its value.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class Failure : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, Failure, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST(MatrixFailure, LeavesWhatDoesNotDependOnIt) {
  const ScopedSettings scope;
  const Device cpu = Device::cpu();
  const LazyTensor x = LazyTensor::from_vector<float>({1, 2}, {2}, cpu);
  const LazyTensor bad = LazyTensor::from_vector<float>({1, 2, 2, 1}, {2, 2}, cpu);
  const LazyTensor sum_of = x + 1.0, factor = cholesky(bad), behind = sum(factor);
  const LazyTensor good = cholesky(bad + 4.0 * LazyTensor::from_vector<float>({1, 0, 0, 1}, {2, 2}, cpu));
  EXPECT_THROW(eval({sum_of, behind, good}), ValueError);
  EXPECT_TRUE(sum_of.is_evaluated());
  EXPECT_TRUE(good.is_evaluated());
  EXPECT_FALSE(behind.is_evaluated());
  EXPECT_EQ(sum_of.to_vector<float>(), (Floats{2, 3}));
  EXPECT_THROW(behind.eval(), ValueError) << "the same error again, for it is lazy again";
  EXPECT_EQ(grad(sum(good), bad).to_vector<float>().size(), 4U);
}

TEST(MatrixFailure, KeepsTheParameterThatWasToBeReplaced) {
  const ScopedSettings scope;
  LazyTensor w = (LazyTensor::from_vector<float>({1, 2, 2, 1}, {2, 2}, Device::cpu()) * 1.0).eval();
  const LazyTensor kept = w;
  LazyTensor next = w - 0.1 * cholesky(w);
  w = LazyTensor();
  EXPECT_THROW(next.eval(), ValueError);
  EXPECT_EQ(kept.to_vector<float>(), (Floats{1, 2, 2, 1}));
}

TEST_P(Failure, OfMemoryIsOverWhenThereIsMemory) {
  Backend& used = backend(device());
  const LazyTensor x = random_normal(Shape{512, 512}, 1, DType::f32, device()).eval();
  LazyTensor w = (x * 2.0).eval();
  const float first = w.to_vector<float>()[0];
  const LazyTensor loss = sum(matmul(matmul(w, x), matmul(x, w)));
  w = w - 0.5 * w;
  const std::uint64_t limit = used.counters().limit_bytes;
  set_memory_limit(device(), 1);  // nothing more is taken
  EXPECT_THROW(eval({w, loss}), OutOfMemoryError);
  EXPECT_FALSE(loss.is_evaluated());
  set_memory_limit(device(), limit);
  eval({w, loss});
  EXPECT_EQ(w.to_vector<float>()[0], 0.5F * first);
  EXPECT_GT(std::abs(loss.item<float>()), 0.0F);
}

}  // namespace
}  // namespace caldera::testing
