// Updates in place, as at().set() writes them, and their gradients.
#include <gtest/gtest.h>

#include <vector>

#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

/// Updates in place, as NumPy writes them: a = 1..6; b = a; b[2:4] = b[0:2] * b[4:6]; c = b^2; b2 = b
/// with b2[0] = c[3]; L = sum(b2 * c).
class InPlaceTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, InPlaceTest, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(InPlaceTest, UpdatesAreDifferentiated) {
  const DType type = supports(DType::f64) ? DType::f64 : DType::f32;
  const std::vector<LazyTensor> a{iota(Shape{6}, 0, type, device()) + 1};
  const auto [loss, grads] = value_and_grad(
      [](std::span<const LazyTensor> x) {
        const LazyTensor b = at(x[0], {{2, 4}}).set(at(x[0], {{0, 2}}).get() * at(x[0], {{4, 6}}).get());
        const LazyTensor c = b * b;
        const LazyTensor b2 = at(b, {{0, 1}}).set(at(c, {{3, 4}}).get());
        return sum(b2 * c);
      },
      a);
  EXPECT_EQ(loss.item<double>(), 2346);
  EXPECT_EQ(download(grads[0]), (std::vector<double>{663, 2748, 0, 0, 150, 1020}));
}

}  // namespace
}  // namespace caldera::testing
