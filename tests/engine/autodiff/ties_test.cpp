// Ties of extrema: whose the gradient is, backwards, forwards and a second time.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "engine/autodiff/jvp.h"
#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Doubles = std::vector<double>;
using Floats = std::vector<float>;
using ReductionFunction = LazyTensor (*)(const LazyTensor&, const Axes&, bool);

Doubles values_in(const LazyTensor& x) { return x.astype(DType::f64).to_vector<double>(); }

class Ties : public OpTest {
 protected:
  LazyTensor floats(const Floats& x, const Shape& shape) const {
    return LazyTensor::from_vector(x, shape, device());
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Ties, ::testing::ValuesIn(op_settings()), op_setting_name);

/// The same elements, negated, have their smallest where these have their largest.
struct TieRow {
  const char* name;
  ReductionFunction largest, smallest;
  Axes axes;
  Doubles shares;  // of the elements in their extremum
};

TEST_P(Ties, AreSharedOrGoToTheFirst) {
  const Floats numbers{1, 3, 3, 2, 3, 0};
  const TieRow rows[] = {
      {"max along the last axis", max, min, -1, {0, 1, 0, 0, 1, 0}},
      {"max along the first axis", max, min, 0, {0, 1, 1, 1, 0, 0}},
      {"max over both axes", max, min, {0, 1}, {0, 1. / 3, 1. / 3, 0, 1. / 3, 0}},
      {"max of all", max, min, {}, {0, 1. / 3, 1. / 3, 0, 1. / 3, 0}},
      {"amax along the last axis", amax, amin, -1, {0, 0.5, 0.5, 0, 1, 0}},
      {"amax along the first axis", amax, amin, 0, {0, 0.5, 1, 1, 0.5, 0}},
      {"amax of all", amax, amin, {}, {0, 1. / 3, 1. / 3, 0, 1. / 3, 0}},
  };
  const LazyTensor tangents = floats({1, 2, 4, 8, 16, 32}, {2, 3});
  for (const TieRow& row : rows) {
    for (const bool negated : {false, true}) {
      for (const bool keepdims : {false, true}) {
        SCOPED_TRACE(std::string(row.name) + (negated ? ", negated" : "") + (keepdims ? ", kept" : ""));
        const auto extremum = [&](const LazyTensor& a) {
          return negated ? row.smallest(-a, row.axes, keepdims) : row.largest(a, row.axes, keepdims);
        };
        const double sign = negated ? -1 : 1;
        const LazyTensor x = floats(numbers, {2, 3});
        const LazyTensor y = extremum(x);
        const Doubles slopes = values_in(grad(sum(y), x));
        double forwards = 0;
        for (std::size_t i = 0; i < slopes.size(); ++i) {
          EXPECT_NEAR(slopes[i], sign * row.shares[i], 1e-6) << i;
          forwards += sign * row.shares[i] * std::pow(2.0, static_cast<double>(i));
        }
        // Forwards: the tangents of the same elements, in the same shares.
        const auto [value, tangent] = jvp([&](std::span<const LazyTensor> a) { return sum(extremum(a[0])); },
                                          std::vector<LazyTensor>{x}, std::vector<LazyTensor>{tangents});
        EXPECT_NEAR(values_in(tangent)[0], forwards, 1e-5);
        // A second time, of sum(y^3) / 6 whose gradient is y^2 / 2 in shares: y times the shares' products.
        const LazyTensor first = grad(sum(y * y * y) / 6.0, x);
        const Doubles second = values_in(grad(sum(first * tangents), x));
        const auto [same, along] = jvp(
            [&](std::span<const LazyTensor> a) {
              const LazyTensor z = extremum(a[0]);
              return grad(sum(z * z * z) / 6.0, a[0]);
            },
            std::vector<LazyTensor>{x}, std::vector<LazyTensor>{tangents});
        const Doubles other = values_in(along);
        for (std::size_t i = 0; i < second.size(); ++i) EXPECT_NEAR(second[i], other[i], 1e-4) << i;
      }
    }
  }
}

TEST_P(Ties, TheFirstNanHasTheGradient) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const LazyTensor x = floats({1, nan, 5, nan, 2, 5, 5, 1}, {2, 4});
  EXPECT_EQ(values_in(grad(sum(max(x, 1)), x)), (Doubles{0, 1, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(values_in(grad(sum(min(x, 1)), x)), (Doubles{0, 1, 0, 0, 0, 0, 0, 1}));
}

TEST_P(Ties, OfInfinitiesGoToTheFirst) {
  const float inf = std::numeric_limits<float>::infinity();
  const LazyTensor x = floats({-inf, -inf, -inf, inf, 1, inf}, {2, 3});
  EXPECT_EQ(values_in(grad(sum(max(x, 1)), x)), (Doubles{1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(values_in(grad(sum(amax(x, 1)), x)), (Doubles{1.0F / 3, 1.0F / 3, 1.0F / 3, 0.5, 0, 0.5}));
}

/// What is ahead of the first element wins no tie: not even with the least number there is.
TEST_P(Ties, OfScansGoToTheFirstWhateverTheValue) {
  const float inf = std::numeric_limits<float>::infinity();
  const LazyTensor x = floats({-inf, -inf, 2, inf, inf, 3}, {2, 3});
  EXPECT_EQ(values_in(grad(sum(cummax(x, 1)), x)), (Doubles{2, 0, 1, 3, 0, 0}));
  EXPECT_EQ(values_in(grad(sum(cummin(-x, 1)), x)), (Doubles{-2, 0, -1, -3, 0, 0}));
  const std::vector<std::int64_t> least(3, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(cummax(LazyTensor::from_vector(least, Shape{3}, device())).to_vector<std::int64_t>(), least);
  const std::vector<std::int64_t> greatest(3, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(cummin(LazyTensor::from_vector(greatest, Shape{3}, device())).to_vector<std::int64_t>(),
            greatest);
}

TEST_P(Ties, OfPooledInfinitiesGoToTheFirst) {
  const float inf = std::numeric_limits<float>::infinity();
  const LazyTensor x = floats({-inf, -inf, -inf}, {1, 1, 3});
  const LazyTensor pooled = max_pool(x, {3}, {.stride = {1}, .padding = {1}});
  EXPECT_EQ(values_in(pooled), (Doubles{-inf, -inf, -inf}));
  EXPECT_EQ(values_in(grad(sum(pooled), x)), (Doubles{2, 1, 0}));
  // A window that is all NaN but for the margin, and one that begins beyond x.
  const LazyTensor y = floats({std::numeric_limits<float>::quiet_NaN(), -inf}, {1, 1, 2});
  EXPECT_EQ(values_in(grad(sum(max_pool(y, {2}, {.padding = {1}, .ceil_mode = true})), y)), (Doubles{1, 1}));
}

/// The rule for the first costs a row no kernel of its own.
TEST_P(Ties, GradientsAlongRowsAreOneKernel) {
  if (!GetParam().fusion) GTEST_SKIP() << "counts fused kernels";
  const LazyTensor x = random_normal({33, 257}, 1, DType::f32, device()).eval();
  const LazyTensor highest = max(x, -1, true);
  const LazyTensor forms[] = {
      square(highest),
      square(exp(x - highest)),
      square(exp(x - highest) / sum(exp(x - highest), -1, true)),
      highest + log(sum(exp(x - highest), -1, true)),
  };
  for (const LazyTensor& form : forms) EXPECT_EQ(plan_for({grad(sum(form), x)})->dispatch_count(), 1);
}

}  // namespace
}  // namespace caldera::testing
