// What may stand where an operation takes axes: integers alone, so that a number that was meant for another
// parameter does not compile.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/ops.h"

namespace caldera::testing {
namespace {

#define CALDERA_TAKES(name, call)                          \
  template <class T>                                       \
  concept name = requires(const LazyTensor& x, T number) { \
    call;                                                  \
  }
CALDERA_TAKES(SumTakes, sum(x, number));
CALDERA_TAKES(MemberSumTakes, x.sum(number));
CALDERA_TAKES(ArgmaxTakes, argmax(x, number));
CALDERA_TAKES(SortTakes, sort(x, number));
CALDERA_TAKES(MedianTakes, median(x, number));
CALDERA_TAKES(SoftmaxTakes, softmax(x, number));
CALDERA_TAKES(CumsumTakes, cumsum(x, number));
CALDERA_TAKES(QuantileTakes, quantile(x, 0.5, number));
CALDERA_TAKES(RollTakes, roll(x, 1, number));
CALDERA_TAKES(FftTakes, fft(x, 8, number));
CALDERA_TAKES(VarTakes, var(x, number));
CALDERA_TAKES(NormTakes, vector_norm(x, number));
CALDERA_TAKES(VarCorrectionTakes, var(x, 0, number));
CALDERA_TAKES(StdCorrectionTakes, caldera::std(x, 0, number));
CALDERA_TAKES(NanvarCorrectionTakes, nanvar(x, 0, number));
CALDERA_TAKES(MemberVarCorrectionTakes, x.var(0, number));
CALDERA_TAKES(NormOrderTakes, vector_norm(x, 0, number));
#undef CALDERA_TAKES

#define CALDERA_AXES_ALONE(Takes)                                                            \
  static_assert(Takes<int> && Takes<std::int64_t> && Takes<std::size_t> && !Takes<double> && \
                !Takes<float> && !Takes<bool>)
CALDERA_AXES_ALONE(SumTakes);
CALDERA_AXES_ALONE(MemberSumTakes);
CALDERA_AXES_ALONE(ArgmaxTakes);
CALDERA_AXES_ALONE(SortTakes);
CALDERA_AXES_ALONE(MedianTakes);
CALDERA_AXES_ALONE(SoftmaxTakes);
CALDERA_AXES_ALONE(CumsumTakes);
CALDERA_AXES_ALONE(QuantileTakes);
CALDERA_AXES_ALONE(RollTakes);
CALDERA_AXES_ALONE(FftTakes);
CALDERA_AXES_ALONE(VarTakes);
#undef CALDERA_AXES_ALONE
static_assert(NormTakes<int> && NormTakes<double> && NormTakes<float> && !NormTakes<bool>);
static_assert(VarCorrectionTakes<double> && VarCorrectionTakes<int> && !VarCorrectionTakes<bool>);
static_assert(StdCorrectionTakes<double> && StdCorrectionTakes<int> && !StdCorrectionTakes<bool>);
static_assert(NanvarCorrectionTakes<double> && !NanvarCorrectionTakes<bool>);
static_assert(MemberVarCorrectionTakes<double> && !MemberVarCorrectionTakes<bool>);
static_assert(NormOrderTakes<double> && NormOrderTakes<int> && !NormOrderTakes<bool>);

TEST(AxisNumbers, FloatingNumberAfterTheTensorIsAnOrderOfNorms) {
  const LazyTensor x = LazyTensor::from_vector<double>({1, -2, 4, 0.5, -3, 8}, {2, 3});
  // numpy.linalg.norm([1, -2, 4, .5, -3, 8], -1) and 3, and along the axis 1 of 2 x 3.
  EXPECT_NEAR(vector_norm(x, -1.0).item<double>(), 1 / (1 + 1 / 2. + 1 / 4. + 2 + 1 / 3. + 1 / 8.), 1e-15);
  EXPECT_NEAR(vector_norm(x, 3.0F).item<double>(), std::cbrt(1 + 8 + 64 + .125 + 27 + 512), 1e-13);
  const std::vector<double> rows = vector_norm(x, 1.0, -1, true).to_vector<double>();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NEAR(rows[0], 7, 1e-15);
  EXPECT_NEAR(rows[1], 11.5, 1e-15);
  EXPECT_EQ(vector_norm(x, -1).shape(), Shape{2}) << "an integer is an axis";
}

TEST(AxisNumbers, AxisBeyondIntIsRefusedNotWrapped) {
  const LazyTensor x = LazyTensor::ones({2, 3});
  const std::int64_t beyond = std::int64_t{1} << 32;  // 0 in 32 bits
  EXPECT_THROW(sum(x, beyond), ShapeError);
  EXPECT_THROW(softmax(x, beyond), ShapeError);
  EXPECT_THROW(softmax(x, -beyond), ShapeError);
  EXPECT_EQ(sum(x, std::size_t{1}).shape(), Shape{2});
  EXPECT_EQ(argmax(x, std::optional<int>(0)).shape(), Shape{3});
}

}  // namespace
}  // namespace caldera::testing
