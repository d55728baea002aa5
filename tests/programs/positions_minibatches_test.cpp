// Minibatches are cut out of one tensor with slice(). Where each of them starts is an argument: an epoch
// compiles one step, and a training step on such batches one too.
#include <gtest/gtest.h>

#include "engine/autodiff/autodiff.h"
#include "ops/ops.h"
#include "tests/support/op_setting.h"

namespace caldera {
namespace {

class PositionsMinibatches : public testing::OpTest {};
INSTANTIATE_TEST_SUITE_P(Settings, PositionsMinibatches, ::testing::ValuesIn(testing::op_settings()),
                         testing::op_setting_name);

constexpr std::int64_t kRows = 240, kBatch = 12, kWidth = 3;
/// Element (i, j) is i + j / 4.
LazyTensor features() {
  return reshape(arange(kRows, DType::f32), {kRows, 1}) + arange(kWidth, DType::f32) * 0.25;
}

TEST_P(PositionsMinibatches, AnEpochHasOnePlan) {
  const LazyTensor x = features();
  eval({x});
  const std::uint64_t before = plan_cache_stats().misses;
  for (std::int64_t at = 0; at < kRows; at += kBatch) {
    const double total = sum(slice(x, 0, at, at + kBatch)).item<float>();
    EXPECT_EQ(total, 3.0 * (12.0 * static_cast<double>(at) + 66.0) + 12 * 0.75) << at;  // quarters: exact
  }
  EXPECT_LE(plan_cache_stats().misses - before, 2U);
}

TEST_P(PositionsMinibatches, SoDoesATrainingLoop) {
  const LazyTensor x = features() / 240.0;
  const LazyTensor y = slice(x, 1, 0, 1) * 2.0 - slice(x, 1, 1, 2);
  LazyTensor w = LazyTensor::zeros({kWidth, 1});
  eval({x, y, w});
  std::vector<float> host(3, 0.0F);
  const auto xs = x.to_vector<float>(), ys = y.to_vector<float>();  // the same on the host
  const std::uint64_t before = plan_cache_stats().misses;
  for (std::int64_t at = 0; at < kRows; at += kBatch) {
    const LazyTensor error = matmul(slice(x, 0, at, at + kBatch), w) - slice(y, 0, at, at + kBatch);
    const LazyTensor loss = mean(error * error);
    w = w - 0.1 * grad(loss, w);
    eval({w, loss});
    std::vector<float> slope(3, 0.0F);
    for (auto i = static_cast<std::size_t>(at); i < static_cast<std::size_t>(at + kBatch); ++i) {
      float e = -ys[i];
      for (std::size_t j = 0; j < 3; ++j) e += xs[i * 3 + j] * host[j];
      for (std::size_t j = 0; j < 3; ++j) slope[j] += e * xs[i * 3 + j] / 6;
    }
    for (std::size_t j = 0; j < 3; ++j) host[j] -= 0.1F * slope[j];
  }
  EXPECT_LE(plan_cache_stats().misses - before, 2U);
  for (std::size_t j = 0; j < 3; ++j) EXPECT_NEAR(w.to_vector<float>()[j], host[j], 1e-5);
}

}  // namespace
}  // namespace caldera
