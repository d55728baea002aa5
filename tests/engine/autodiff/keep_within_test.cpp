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
  for (const Step& step : plan_for(all)->steps) outcome.products += step.is<ContractStep>() ? 1 : 0;
  return outcome;
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
  const TensorFunction products = [](Inputs x) {
    LazyTensor total = zeros({});
    for (std::size_t i = 0; i < x.size(); i += 2) total = total + sum(cos(matmul(x[i], x[i + 1])));
    return total;
  };
  for (const int budget : {18, 17, 16, 15, 14, 13, 11, 7, 6, 5}) {
    EXPECT_EQ(outcome_of(products, arguments, (budget + 0.01) / 20, 64 * 64 * 4).units, budget);
  }
}

TEST(KeepWithin, RefusesAShareBelowZero) {
  EXPECT_THROW((void)keep::within(-0.1), ValueError);
  EXPECT_THROW((void)keep::within(std::nan("")), ValueError);
}

}  // namespace
}  // namespace caldera::testing
