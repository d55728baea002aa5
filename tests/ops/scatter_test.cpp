// Scatters, and what is read and written at positions of its own: against plain loops and closed forms.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "engine/autodiff/jvp.h"
#include "engine/caldera.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Doubles = std::vector<double>;
using Floats = std::vector<float>;
using Integers = std::vector<std::int32_t>;

constexpr double kQuietNan = std::numeric_limits<double>::quiet_NaN();

Doubles values(const LazyTensor& x) { return x.astype(DType::f64).to_vector<double>(); }

class Scatters : public OpTest {
 protected:
  LazyTensor floats(const Floats& x, const Shape& shape) const {
    return LazyTensor::from_vector(x, shape, device());
  }
  LazyTensor floats(const Floats& x) const { return floats(x, Shape{static_cast<std::int64_t>(x.size())}); }
  LazyTensor integers(const Integers& x) const {
    return LazyTensor::from_vector(x, Shape{static_cast<std::int64_t>(x.size())}, device());
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Scatters, ::testing::ValuesIn(op_settings()), op_setting_name);

/// Small whole numbers, as every type holds them, with repeats.
Doubles whole(std::int64_t count, std::int64_t step, std::int64_t modulus) {
  Doubles out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(static_cast<double>((i * step + 3) % modulus));
  return out;
}

struct ScatterCase {
  std::int64_t outer, extent, inner, count;
};
constexpr ScatterCase kScatterCases[] = {{1, 5, 1, 3},    {3, 7, 1, 11},   {2, 4, 33, 6}, {5, 3, 2, 1},
                                         {1, 6, 130, 40}, {1, 2, 1, 1025}, {70, 9, 3, 5}, {2, 0, 3, 2}};

double combined(Scatter how, double old, double update) {
  switch (how) {
    case Scatter::set:
      return update;
    case Scatter::maximum:
      return std::max(old, update);
    case Scatter::minimum:
      return std::min(old, update);
    case Scatter::multiply:
      return old * update;
    case Scatter::add:
      break;
  }
  return old + update;
}

/// Every type and way to combine, with indices that all places share and with those of their own.
TEST_P(Scatters, AreWhatLoopsGive) {
  for (const DType type : supported(kAllDTypes)) {
    const bool truth = type == DType::boolean;
    for (const ScatterCase& c : kScatterCases) {
      const auto tensor = [&](const Doubles& x, const Shape& shape) {
        return upload(Host(shape, x), type, device());
      };
      const Shape shape{c.outer, c.extent, c.inner}, updated{c.outer, c.count, c.inner};
      const Doubles base = whole(shape.numel(), 7, truth ? 2 : 13),
                    more = whole(updated.numel(), 5, truth ? 2 : 11);
      const Doubles shared = whole(c.count, 3, c.extent + 2), own = whole(updated.numel(), 9, c.extent + 2);
      for (const Scatter how : {Scatter::set, Scatter::add, Scatter::maximum, Scatter::minimum}) {
        if (truth && how == Scatter::add) continue;
        for (const bool aligned : {false, true}) {
          if (truth && !aligned && how != Scatter::set) continue;
          SCOPED_TRACE(std::string(name(type)) + " " + shape.to_string() + " by " + std::to_string(c.count) +
                       " how " + std::to_string(static_cast<int>(how)) + (aligned ? " aligned" : " shared"));
          Doubles expected = base;
          for (std::int64_t o = 0; o < c.outer; ++o) {
            for (std::int64_t i = 0; i < c.count; ++i) {
              for (std::int64_t j = 0; j < c.inner; ++j) {
                const auto from = static_cast<std::size_t>((o * c.count + i) * c.inner + j);
                // Indices from -1 on: the first and the last are outside.
                const auto at =
                    static_cast<std::int64_t>(aligned ? own[from] : shared[static_cast<std::size_t>(i)]) - 1;
                if (at < 0 || at >= c.extent) continue;
                double& to = expected[static_cast<std::size_t>((o * c.extent + at) * c.inner + j)];
                to = combined(how, to, more[from]);
              }
            }
          }
          const LazyTensor x = tensor(base, shape), u = tensor(more, updated);
          LazyTensor result;
          if (aligned) {
            result = put_along_axis(x, upload(Host(updated, own), DType::i32, device()) - 1, u, 1, how);
          } else {
            const LazyTensor which = upload(Host(Shape{c.count}, shared), DType::i32, device()) - 1;
            result = how == Scatter::set       ? scatter(x, which, u, 1)
                     : how == Scatter::add     ? scatter_add(x, which, u, 1)
                     : how == Scatter::maximum ? scatter_max(x, which, u, 1)
                                               : scatter_min(x, which, u, 1);
          }
          if (how == Scatter::add && type == DType::bf16) continue;  // rounds
          if (is_integral(type)) {
            for (double& value : expected) value = wrapped(value, type);
          }
          ASSERT_EQ(values(result), expected);
        }
      }
    }
  }
}

TEST_P(Scatters, TakeAlongAxisIsWhatALoopGives) {
  for (const ScatterCase& c : kScatterCases) {
    SCOPED_TRACE(Shape({c.outer, c.extent, c.inner, c.count}).to_string());
    const Shape shape{c.outer, c.extent, c.inner}, taken{c.outer, c.count, c.inner};
    const Doubles x = whole(shape.numel(), 7, 1000), own = whole(taken.numel(), 9, c.extent + 2);
    const LazyTensor result = take_along_axis(upload(Host(shape, x), DType::f32, device()),
                                              upload(Host(taken, own), DType::i32, device()) - 1, 1);
    const Doubles actual = values(result);
    for (std::size_t e = 0; e < actual.size(); ++e) {
      const auto at = static_cast<std::int64_t>(own[e]) - 1, j = static_cast<std::int64_t>(e) % c.inner,
                 o = static_cast<std::int64_t>(e) / (c.inner * c.count);
      if (at < 0 || at >= c.extent)
        ASSERT_TRUE(std::isnan(actual[e])) << e;
      else
        ASSERT_EQ(actual[e], x[static_cast<std::size_t>((o * c.extent + at) * c.inner + j)]) << e;
    }
  }
}

/// Of so many points that threads share them out: elements and rows, by indices in one or two dimensions.
TEST_P(Scatters, ManyPointsOfATakeAreWhatALoopGives) {
  const std::int64_t many = is_vulkan() ? 700 : 50'001;
  for (const Shape& which : {Shape{many}, Shape{many / 3, 3}, Shape{3, many / 3}}) {
    for (const std::int64_t inner : {1, 3, 37}) {
      for (const std::int64_t outer : {1, 5}) {
        SCOPED_TRACE(Shape({outer, inner}).to_string() + " by " + which.to_string());
        constexpr std::int64_t kExtent = 11;
        const Shape shape{outer, kExtent, inner};
        const Doubles x = whole(shape.numel(), 7, 1000), at = whole(which.numel(), 9, kExtent + 2);
        const LazyTensor result = take(upload(Host(shape, x), DType::f32, device()),
                                       upload(Host(which, at), DType::i32, device()) - 1, 1);
        const Floats actual = result.to_vector<float>();
        std::size_t e = 0;
        for (std::int64_t o = 0; o < outer; ++o) {
          for (const double place : at) {
            const auto row = static_cast<std::int64_t>(place) - 1;
            for (std::int64_t i = 0; i < inner; ++i, ++e) {
              if (row < 0 || row >= kExtent)
                ASSERT_TRUE(std::isnan(actual[e])) << e;
              else
                ASSERT_EQ(actual[e], x[static_cast<std::size_t>((o * kExtent + row) * inner + i)]) << e;
            }
          }
        }
      }
    }
  }
}

/// However the work is divided, updates that meet come one after the other.
TEST_P(Scatters, OneIndexForManyUpdates) {
  const std::int64_t n = is_vulkan() ? 2000 : 300000;
  const LazyTensor which = broadcast_to(integers({2}), {n});
  const LazyTensor numbers = astype(arange(n, DType::i32, device()), DType::f32);
  const LazyTensor zeros = LazyTensor::zeros({3}, DType::f32, device());
  EXPECT_EQ(values(scatter_add(zeros, which, ones_like(numbers))), (Doubles{0, 0, static_cast<double>(n)}));
  EXPECT_EQ(values(scatter(zeros, which, numbers)), (Doubles{0, 0, static_cast<double>(n - 1)}));
  EXPECT_EQ(values(scatter_max(zeros, which, 5.0F - numbers)), (Doubles{0, 0, 5}));
}

TEST_P(Scatters, MoreUpdatesThanADriverWalksAtOnce) {
  // Some stop an invocation after 65,535 iterations: the last update has to count, and the order to stay.
  constexpr std::int64_t kPlaces = 5, kEach = 28'000, kUpdates = kPlaces * kEach;
  std::vector<std::int32_t> where_to, added(kUpdates);
  Doubles sums(kPlaces), last(kPlaces);
  for (std::int64_t i = 0; i < kUpdates; ++i) {
    const std::int64_t at = i * 7 % kPlaces, update = i * 31 % 1000 - 300;
    where_to.push_back(static_cast<std::int32_t>(at));
    added[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(update);
    sums[static_cast<std::size_t>(at)] += static_cast<double>(update);
    last[static_cast<std::size_t>(at)] = static_cast<double>(update);
  }
  const LazyTensor base = zeros(Shape{kPlaces}, DType::i32, device());
  EXPECT_EQ(values(scatter_add(base, integers(where_to), integers(added))), sums);
  EXPECT_EQ(values(scatter(base, integers(where_to), integers(added))), last);
  // Of take(), the gradient is such a scatter: it counts.
  const LazyTensor x = floats(Floats(kPlaces, 1));
  EXPECT_EQ(values(grad(sum(take(x, integers(where_to))), x)), Doubles(kPlaces, kEach));
}

TEST_P(Scatters, GradientOfWhatIsOverwritten) {
  const LazyTensor x = floats({1, 2, 3, 4}), u = floats({5, 6, 7, 8});
  const LazyTensor which = integers({1, 3, 1, 9});
  const LazyTensor weights = floats({1, 10, 100, 1000});
  const LazyTensor y = scatter(x * x, which, u * u);
  EXPECT_EQ(values(y), (Doubles{1, 49, 9, 36}));
  const LazyTensor loss = sum(y * y * weights);  // d/dy = 2 y w
  const LazyTensor by_x = grad(loss, x), by_u = grad(loss, u);
  EXPECT_EQ(values(by_x), (Doubles{2 * 1 * 2, 0, 2 * 9 * 100 * 6, 0}));
  EXPECT_EQ(values(by_u), (Doubles{0, 2 * 36 * 1000 * 12, 2 * 49 * 10 * 14, 0}));
  // 4 w x^3 and 4 w u^3 once more.
  EXPECT_EQ(values(grad(sum(by_x), x)), (Doubles{12, 0, 12 * 100 * 9, 0}));
  EXPECT_EQ(values(grad(sum(by_u), u)), (Doubles{0, 12 * 1000 * 36, 12 * 10 * 49, 0}));
}

TEST_P(Scatters, WhatIsDroppedHasNoGradient) {
  const LazyTensor x = floats({1, 2, 3}), u = floats({5, 6, 7});
  const LazyTensor which = integers({-1, 2, 3});
  for (const auto function : {scatter, scatter_add, scatter_max})
    EXPECT_EQ(values(grad(sum(function(x, which, u, 0)), u)), (Doubles{0, 1, 0}));
  EXPECT_EQ(values(grad(sum(scatter_min(x, which, u)), u)), (Doubles{0, 0, 0}));
  EXPECT_EQ(values(grad(sum(index_put(x, {integers({-4, 2, 3})}, u)), u)), (Doubles{0, 1, 0}));
  const LazyTensor read = where(integers({0, 1, 0}) > 0, take_along_axis(x, which), 0);
  EXPECT_EQ(values(grad(sum(read), x)), (Doubles{0, 0, 1}));
}

TEST_P(Scatters, NanIsLargestAndSmallest) {
  const auto nan = static_cast<float>(kQuietNan);
  const LazyTensor x = floats({nan, 1, 2, nan}), u = floats({7, nan, 0});
  const LazyTensor which = integers({0, 1, 2});
  for (const auto function : {scatter_max, scatter_min}) {
    const Doubles y = values(function(x, which, u, 0));
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]) && std::isnan(y[3]));
    EXPECT_EQ(y[2], function == scatter_max ? 2 : 0);
    // The gradient goes to what is NaN, as it goes to what is largest.
    EXPECT_EQ(values(grad(sum(function(x, which, u, 0)), x)),
              function == scatter_max ? (Doubles{1, 0, 1, 1}) : (Doubles{1, 0, 0, 1}));
  }
}

TEST_P(Scatters, TiesOfBaseAndUpdatesShareTheGradient) {
  const LazyTensor x = floats({2, 5, 2, 2}), u = floats({2, 1, 2, 2, 1, 3, 3});
  const LazyTensor which = integers({0, 0, 2, 2, 2, 3, 3});
  const LazyTensor weights = floats({1, 10, 100, 1000});
  const auto largest = [&](const LazyTensor& base, const LazyTensor& updates) {
    return scatter_max(base, which, updates);
  };
  const LazyTensor y = largest(x, u);
  EXPECT_EQ(values(y), (Doubles{2, 5, 2, 3}));
  // Vulkan's quotients are right to 2.5 units of the last place.
  const double third = static_cast<float>(100) / 3.0F, ulps = 1e-5;
  const auto expect_near = [&](const Doubles& got, const Doubles& want) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], ulps) << i;
  };
  expect_near(values(grad(sum(y * weights), x)), {0.5, 10, third, 0});
  expect_near(values(grad(sum(y * weights), u)), {0.5, 0, third, third, 0, 500, 500});
  // The smallest of what is turned round is the same.
  const LazyTensor turned = -scatter_min(-x, which, -u);
  expect_near(values(grad(sum(turned * weights), u)), {0.5, 0, third, third, 0, 500, 500});
  // Forwards, the same numbers from the other side.
  const LazyTensor dx = floats({1, 2, 3, 4}), du = floats({3, 5, 6, 9, 11, 2, 6});
  const auto [value, tangent] = jvp([&](std::span<const LazyTensor> a) { return largest(a[0], a[1]); },
                                    std::vector<LazyTensor>{x, u}, std::vector<LazyTensor>{dx, du});
  EXPECT_EQ(values(tangent), (Doubles{2, 2, 6, 4}));
  // Second order: y^2 has 2 y dy, of which each that attains it has its share again.
  const LazyTensor slope = grad(sum(y * y), u);
  EXPECT_EQ(values(slope)[5], 3);
  EXPECT_EQ(values(grad(sum(slope * floats({0, 0, 0, 0, 0, 1, 0})), u)), (Doubles{0, 0, 0, 0, 0, 0.5, 0.5}));
}

TEST_P(Scatters, MasksAndPositions) {
  const LazyTensor x = floats({3, 0, -1, 0, 5, 0}, {2, 3});
  EXPECT_EQ(values(masked_fill(x, x == 0, 9)), (Doubles{3, 9, -1, 9, 5, 9}));
  EXPECT_EQ(values(masked_select(x, x != 0, 2)), (Doubles{3, -1}));
  EXPECT_EQ(values(masked_select(x, x != 0, 5, -7)), (Doubles{3, -1, 5, -7, -7}));
  EXPECT_EQ(values(grad(sum(masked_select(x * x, x != 0, 2)), x)), (Doubles{6, 0, -2, 0, 0, 0}));
  const std::vector<LazyTensor> at = nonzero(x, 4, -1);
  ASSERT_EQ(at.size(), 2U);
  EXPECT_EQ(values(at[0]), (Doubles{0, 0, 1, -1}));
  EXPECT_EQ(values(at[1]), (Doubles{0, 2, 1, -1}));
  // All, none, and one at the end of many.
  const LazyTensor many = arange(1025, DType::i32, device());
  EXPECT_EQ(values(nonzero(many == 1024, 2, -1)[0]), (Doubles{1024, -1}));
  EXPECT_EQ(values(nonzero(many < 0, 2, -1)[0]), (Doubles{-1, -1}));
  EXPECT_EQ(values(masked_select(many, many >= 0, 1025)), values(many));
}

}  // namespace
}  // namespace caldera::testing
