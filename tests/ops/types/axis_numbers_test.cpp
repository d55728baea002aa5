// What may stand where an operation takes axes: integers alone, so that a number that was meant for another
// parameter does not compile.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "ops/ops.h"

namespace caldera::testing {
namespace {

/// Whether a call that is made of a tensor and a number compiles.
template <class Number, class Call>
constexpr bool takes(const Call&) {
  return std::is_invocable_v<Call, const LazyTensor&, Number>;
}
template <class Call>
constexpr bool takes_integers_alone(const Call& call) {
  return takes<int>(call) && takes<std::int64_t>(call) && takes<std::size_t>(call) && !takes<double>(call) &&
         !takes<float>(call) && !takes<bool>(call);
}
template <class Call>
constexpr bool takes_numbers_but_no_bool(const Call& call) {
  return takes<int>(call) && takes<double>(call) && !takes<bool>(call);
}

static_assert(takes_integers_alone([](const LazyTensor& x, auto n) -> decltype(sum(x, n)) {
  return sum(x, n);
}));
static_assert(takes_integers_alone([](const LazyTensor& x, auto n) -> decltype(x.sum(n)) {
  return x.sum(n);
}));
static_assert(takes_integers_alone([](const LazyTensor& x, auto n) -> decltype(argmax(x, n)) {
  return argmax(x, n);
}));
static_assert(takes_integers_alone([](const LazyTensor& x, auto n) -> decltype(sort(x, n)) {
  return sort(x, n);
}));
static_assert(takes_integers_alone([](const LazyTensor& x, auto n) -> decltype(median(x, n)) {
  return median(x, n);
}));
static_assert(takes_integers_alone([](const LazyTensor& x, auto n) -> decltype(softmax(x, n)) {
  return softmax(x, n);
}));
static_assert(takes_integers_alone([](const LazyTensor& x, auto n) -> decltype(cumsum(x, n)) {
  return cumsum(x, n);
}));
static_assert(takes_integers_alone([](const LazyTensor& x, auto n) -> decltype(quantile(x, 0.5, n)) {
  return quantile(x, 0.5, n);
}));
static_assert(takes_integers_alone([](const LazyTensor& x, auto n) -> decltype(roll(x, 1, n)) {
  return roll(x, 1, n);
}));
static_assert(takes_integers_alone([](const LazyTensor& x, auto n) -> decltype(fft(x, 8, n)) {
  return fft(x, 8, n);
}));
static_assert(takes_integers_alone([](const LazyTensor& x, auto n) -> decltype(var(x, n)) {
  return var(x, n);
}));
static_assert(takes_numbers_but_no_bool([](const LazyTensor& x, auto n) -> decltype(vector_norm(x, n)) {
  return vector_norm(x, n);
}));
static_assert(takes_numbers_but_no_bool([](const LazyTensor& x, auto n) -> decltype(vector_norm(x, 0, n)) {
  return vector_norm(x, 0, n);
}));
static_assert(takes_numbers_but_no_bool([](const LazyTensor& x, auto n) -> decltype(var(x, 0, n)) {
  return var(x, 0, n);
}));
static_assert(takes_numbers_but_no_bool([](const LazyTensor& x, auto n) -> decltype(caldera::std(x, 0, n)) {
  return caldera::std(x, 0, n);
}));
static_assert(takes_numbers_but_no_bool([](const LazyTensor& x, auto n) -> decltype(nanvar(x, 0, n)) {
  return nanvar(x, 0, n);
}));
static_assert(takes_numbers_but_no_bool([](const LazyTensor& x, auto n) -> decltype(x.var(0, n)) {
  return x.var(0, n);
}));

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
