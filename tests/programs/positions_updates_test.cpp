// A buffer that a loop writes part by part is written in place: the loop has one plan, and moves no more
// than the parts. Who keeps an earlier buffer keeps its values.
#include <gtest/gtest.h>

#include "engine/autodiff/autodiff.h"
#include "ops/ops.h"
#include "tests/support/op_setting.h"

namespace caldera {
namespace {

class PositionsUpdates : public testing::OpTest {};
INSTANTIATE_TEST_SUITE_P(Settings, PositionsUpdates, ::testing::ValuesIn(testing::op_settings()),
                         testing::op_setting_name);

TEST_P(PositionsUpdates, AreWrittenInPlace) {
  LazyTensor ring = LazyTensor::zeros({2, 16, 3});
  eval({ring});
  std::vector<float> expected(96, 0.0F);
  const std::uint64_t plans = plan_cache_stats().misses, given = donation_stats().buffers;
  for (int step = 0; step < 40; ++step) {
    const std::int64_t at = step * 5 % 16;
    ring = dynamic_update_slice(ring, LazyTensor::full({2, 2, 3}, step + 0.5), {0, at, 0});
    eval({ring});
    // A window that would reach over the end ends at the end.
    const std::int64_t first = at < 14 ? at : 14;
    for (std::int64_t i = 0; i < 96; ++i) {
      const std::int64_t row = i / 3 % 16;
      if (row >= first && row < first + 2)
        expected[static_cast<std::size_t>(i)] = static_cast<float>(step) + 0.5F;
    }
    ASSERT_EQ(ring.to_vector<float>(), expected) << step;
  }
  EXPECT_LE(plan_cache_stats().misses - plans, 2U);
  EXPECT_GE(donation_stats().buffers - given, 39U);
}

TEST_P(PositionsUpdates, LeaveAloneWhatSomebodyHolds) {
  const LazyTensor kept = LazyTensor::ones({8});
  eval({kept});
  const LazyTensor changed = dynamic_update_slice(kept, LazyTensor::full({2}, 3.0), {5});
  EXPECT_EQ(changed.to_vector<float>(), (std::vector<float>{1, 1, 1, 1, 1, 3, 3, 1}));
  EXPECT_EQ(kept.to_vector<float>(), std::vector<float>(8, 1.0F));
}

TEST_P(PositionsUpdates, MayBeComputedOnTheDeviceAndDifferentiated) {
  const LazyTensor x = LazyTensor::from_vector(std::vector<float>{1, 5, 2, 8, 3}, {5});
  const LazyTensor peak = argmax(x);  // 3
  const LazyTensor around = dynamic_slice(x, {peak - 1}, {2});
  const LazyTensor slope = grad(sum(around * around), x);
  EXPECT_EQ(around.to_vector<float>(), (std::vector<float>{2, 8}));
  EXPECT_EQ(slope.to_vector<float>(), (std::vector<float>{0, 0, 4, 16, 0}));
  const LazyTensor cut = dynamic_update_slice(x, LazyTensor::zeros({1}), {peak});
  EXPECT_EQ(grad(sum(cut * cut), x).to_vector<float>(), (std::vector<float>{2, 10, 4, 0, 6}));
}

}  // namespace
}  // namespace caldera
