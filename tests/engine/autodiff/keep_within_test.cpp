// Budgets of PyTorch's tests (test/functorch/test_ac.py), in units of a 512 x 512 value and of a product of
// such.
#include "engine/autodiff/checkpoint/keep_within.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;

/// What a budget led to.
struct Outcome {
  double units = 0;           // bytes that were kept, in units
  std::int64_t products = 0;  // of the plan of the gradients
};

Outcome outcome_of(const TensorFunction& function, const std::vector<LazyTensor>& arguments, double share,
                   double unit_bytes) {
  Outcome outcome;
  const Keep observed([&](std::span<const InnerValue> values) {
    std::vector<bool> kept = keep::within(share)(values);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const LazyTensor& x = values[i].tensor;
      if (kept[i])
        outcome.units +=
            static_cast<double>(x.numel()) * static_cast<double>(size_of(x.dtype())) / unit_bytes;
    }
    return kept;
  });
  const auto [value, grads] = value_and_grad(checkpoint(function, observed), arguments);
  std::vector<LazyTensor> all{value};
  all.insert(all.end(), grads.begin(), grads.end());
  const auto plan = plan_for(all);
  for (const Step& step : plan->steps) outcome.products += step.is<ContractStep>() ? 1 : 0;
  return outcome;
}

/// Of each pair of arguments.
LazyTensor sum_of_products(Inputs x) {
  LazyTensor total = zeros({});
  for (std::size_t i = 0; i < x.size(); i += 2) total = total + sum(cos(matmul(x[i], x[i + 1])));
  return total;
}

TEST(KeepWithin, AChainOfProductsAndCosines) {
  constexpr std::int64_t kSize = 512;
  std::vector<LazyTensor> arguments;
  for (int i = 0; i < 6; ++i)
    arguments.push_back(random_normal({kSize, kSize}, static_cast<std::uint64_t>(i)));
  const TensorFunction chain = [](Inputs x) {
    LazyTensor y = cos(x[0]);
    for (std::size_t i = 1; i < x.size(); ++i) y = cos(matmul(y, x[i]));
    return sum(y);
  };
  const double unit = kSize * kSize * 4;
  const Outcome all = outcome_of(chain, arguments, 1, unit);
  EXPECT_EQ(all.units, 10);
  for (const double share : {0.9, 0.8, 0.7, 0.6}) {
    const Outcome outcome = outcome_of(chain, arguments, share, unit);
    EXPECT_EQ(outcome.units, 5) << share;
    EXPECT_EQ(outcome.products, all.products) << share;
  }
  for (int k = 5; k >= 0; --k) {
    const Outcome outcome = outcome_of(chain, arguments, k / 10.0, unit);
    EXPECT_EQ(outcome.units, k);
    EXPECT_EQ(outcome.products, all.products + 5 - k) << k;
  }
}

TEST(KeepWithin, IndependentProductsAreChosenExactly) {
  // Of 11, 3, 4 and 2 units, each as much work a byte as the others: a greedy choice misses most of these.
  std::vector<LazyTensor> arguments;
  for (const std::int64_t width : {11, 3, 4, 2}) {
    arguments.push_back(random_normal({64, 32}, static_cast<std::uint64_t>(width)));
    arguments.push_back(random_normal({32, 64 * width}, static_cast<std::uint64_t>(20 + width)));
  }
  for (const int budget : {18, 17, 16, 15, 14, 13, 11, 7, 6, 5}) {
    EXPECT_EQ(outcome_of(sum_of_products, arguments, budget / 20.0, 64 * 64 * 4).units, budget);
  }
}

TEST(KeepWithin, OfIndependentProductsThoseThatSaveMostAreKept) {
  // (in, out): in * out units of memory, in * in * out of work. The plan repeats the products that are not
  // kept.
  constexpr std::int64_t kUnit = 512;
  std::vector<LazyTensor> arguments;
  for (const auto& [in, out] : {std::pair{4, 4}, {6, 2}, {2, 6}}) {
    arguments.push_back(random_normal({in * kUnit, in * kUnit}, static_cast<std::uint64_t>(in)));
    arguments.push_back(random_normal({in * kUnit, out * kUnit}, static_cast<std::uint64_t>(20 + in)));
  }
  const double unit = kUnit * kUnit * 4;
  const Outcome all = outcome_of(sum_of_products, arguments, 1, unit);
  EXPECT_EQ(all.units, 40);
  const Outcome two = outcome_of(sum_of_products, arguments, 28.0 / 40, unit);
  EXPECT_EQ(two.units, 28);
  EXPECT_EQ(two.products, all.products + 1) << "the third, of 24 units of work";
  const Outcome one = outcome_of(sum_of_products, arguments, 16.0 / 40, unit);
  EXPECT_EQ(one.units, 12) << "the second saves 72 units of work, the first 64 for more memory";
  EXPECT_EQ(one.products, all.products + 2);
}

TEST(KeepWithin, ManyValuesAreChosenAlongTheHull) {
  // Products of equal size, twice as wide and half as wide by turns, and more of them than are tried one by
  // one.
  constexpr std::int64_t kSize = 16;
  std::vector<LazyTensor> arguments{random_normal({kSize, kSize}, 1)};
  for (int i = 0; i < 40; ++i) {
    const bool widens = i % 2 == 0;
    arguments.push_back(random_normal({widens ? kSize : 4 * kSize, widens ? 4 * kSize : kSize},
                                      static_cast<std::uint64_t>(i)));
  }
  const TensorFunction chain = [](Inputs x) {
    LazyTensor y = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) y = cos(matmul(y, x[i]));
    return sum(y);
  };
  const double unit = kSize * kSize * 4;
  const double all = outcome_of(chain, arguments, 1, unit).units;
  double before = -1;
  for (const double share : {0.0, 0.2, 0.5, 0.9}) {
    const double units = outcome_of(chain, arguments, share, unit).units;
    EXPECT_LE(units, share * all);
    EXPECT_GE(units, before);
    before = units;
  }
  EXPECT_GT(before, 0);
}

TEST(KeepWithin, RefusesAShareThatIsNone) {
  EXPECT_THROW((void)keep::within(1.1), ValueError);
  EXPECT_THROW((void)keep::within(-0.1), ValueError);
  EXPECT_THROW((void)keep::within(std::nan("")), ValueError);
}

}  // namespace
}  // namespace caldera::testing
