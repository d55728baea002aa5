// Loops over rows: the plan grows with the rows, in whatever order they are taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "engine/caldera.h"
#include "engine/plan/plan.h"
#include "engine/runtime/inspect/explain.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class ProgramRows : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, ProgramRows, ::testing::ValuesIn(engine_setups()), engine_setup_name);

LazyTensor rows_of(int rows) {
  return reshape(arange(rows * 4, DType::f32, EngineTest::GetParam().device), {rows, 4}).eval();
}
/// The gradient of the sum over rows of k * row^2 by all of them, the rows taken in this order.
LazyTensor gradient(const LazyTensor& x, const std::vector<int>& order) {
  LazyTensor total = LazyTensor::zeros({1, 4}, DType::f32, x.device()).eval();
  for (const int row : order)
    total = total + square(slice(x, 0, row, row + 1)) * static_cast<double>(row % 3);
  return grad(sum(total), x);
}
/// Elements that all steps of the plan compute.
std::int64_t work_of(const LazyTensor& x) {
  std::int64_t work = 0;
  const auto plan = explain({x}).plan;
  for (const Step& step : plan->steps) work += step.dims.numel();
  return work;
}

TEST_P(ProgramRows, GradientsInAnyOrder) {
  std::vector<int> order(48);
  std::iota(order.begin(), order.end(), 0);
  const LazyTensor x = rows_of(48);
  const LazyTensor in_order = gradient(x, order);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  const LazyTensor shuffled = gradient(x, order);
  EXPECT_LE(work_of(shuffled), work_of(in_order) * 11 / 10);
  EXPECT_EQ(shuffled.to_vector<float>(), in_order.to_vector<float>());
  const auto g = shuffled.to_vector<float>();
  for (int i = 0; i < 48 * 4; ++i)
    EXPECT_EQ(g[static_cast<std::size_t>(i)], static_cast<float>(2 * i * (i / 4 % 3)));
}

TEST_P(ProgramRows, FourTimesTheRowsIsFourTimesTheWork) {
  if (!GetParam().fusion) GTEST_SKIP() << "unfused, every row's gradient is a tensor like x";
  std::vector<int> few(32), many(128);
  std::iota(few.begin(), few.end(), 0);
  std::iota(many.begin(), many.end(), 0);
  EXPECT_LE(work_of(gradient(rows_of(128), many)), 5 * work_of(gradient(rows_of(32), few)));
}

}  // namespace
}  // namespace caldera::testing
