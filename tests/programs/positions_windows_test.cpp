// Windows of stored data move without a new plan: along one axis or two, with steps, backwards, and around
// the end.
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "tests/support/op_setting.h"

namespace caldera {
namespace {

class PositionsWindows : public testing::OpTest {
 protected:
  /// Element (i, j) is 100 i + j.
  LazyTensor table() const {
    LazyTensor t = reshape(arange(20, DType::f32), {20, 1}) * 100.0 + arange(30, DType::f32);
    eval({t});
    return t;
  }
  /// Evaluates window(p) for some positions p, and says how many plans that took.
  template <class Window, class Expected>
  std::uint64_t plans_of(Window window, Expected expected) const {
    const std::uint64_t before = plan_cache_stats().misses;
    for (std::int64_t p = 1; p <= 9; ++p) {
      const LazyTensor part = window(p) + 0.5;
      const std::vector<float> values = part.template to_vector<float>();
      const std::int64_t columns = part.shape(1);
      for (std::int64_t i = 0; i < part.shape(0); ++i) {
        for (std::int64_t j = 0; j < columns; ++j)
          EXPECT_EQ(values[static_cast<std::size_t>(i * columns + j)], expected(p, i, j) + 0.5) << p;
      }
    }
    return plan_cache_stats().misses - before;
  }
};
INSTANTIATE_TEST_SUITE_P(Settings, PositionsWindows, ::testing::ValuesIn(testing::op_settings()),
                         testing::op_setting_name);

TEST_P(PositionsWindows, HaveOnePlanWhereverTheyLie) {
  const LazyTensor x = table();
  const auto at = [](std::int64_t i, std::int64_t j) { return static_cast<double>(100 * i + j); };
  const auto crop = [&](std::int64_t p) { return slice(slice(x, 0, p, p + 4), 1, 2 * p, 2 * p + 5); };
  EXPECT_LE(plans_of(crop, [&](auto p, auto i, auto j) { return at(p + i, 2 * p + j); }), 2U);
  const auto strided = [&](std::int64_t p) { return slice(x, 1, p, p + 16, 5); };
  EXPECT_LE(plans_of(strided, [&](auto p, auto i, auto j) { return at(i, p + 5 * j); }), 2U);
  const auto column = [&](std::int64_t p) { return expand_dims(x[{Slice{p + 6, p, -2}, p}], 1); };
  EXPECT_LE(plans_of(column, [&](auto p, auto i, auto) { return at(p + 6 - 2 * i, p); }), 2U);
  const auto across = [&](std::int64_t p) { return slice(transpose(x), 0, p, p + 3); };
  EXPECT_LE(plans_of(across, [&](auto p, auto i, auto j) { return at(j, p + i); }), 2U);
  const auto framed = [&](std::int64_t p) { return slice(pad(x, {p, 1}, {10 - p, 1}), 0, 0, 30); };
  const auto inside = [&](auto p, auto i, auto j) {
    return i >= p && i < p + 20 && j >= 1 && j <= 30 ? at(i - p, j - 1) : 0.0;
  };
  EXPECT_LE(plans_of(framed, inside), 2U);
  const auto turned = [&](std::int64_t p) { return roll(x, p, Axes(1)); };
  EXPECT_LE(plans_of(turned, [&](auto p, auto i, auto j) { return at(i, (j - p + 30) % 30); }), 2U);
}

}  // namespace
}  // namespace caldera
