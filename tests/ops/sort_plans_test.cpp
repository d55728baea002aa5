// Sorts as steps of plans on the CPU: what a sort becomes, long rows, parts of an order, what the verifier
// refuses, and that the interpreter of plans finds the same order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "engine/caldera.h"
#include "engine/check/reference/reference_plan.h"
#include "engine/plan/verify.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;
using Positions = std::vector<std::int32_t>;

/// Numbers with many ties, NaN, infinities and both zeros.
Floats row_with_ties(std::int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  Floats out;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto draw = static_cast<float>(random() % 50);
    out.push_back(draw == 0 ? NAN : draw == 1 ? -INFINITY : draw == 2 ? -0.0F : draw == 3 ? 0.0F : draw - 30);
  }
  return out;
}

Positions order_of(const Floats& x, bool descending) {
  Positions order(x.size());
  std::iota(order.begin(), order.end(), 0);
  const auto less = [](float a, float b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t i, std::int32_t j) {
    const float a = x[static_cast<std::size_t>(i)], b = x[static_cast<std::size_t>(j)];
    return descending ? less(b, a) : less(a, b);
  });
  return order;
}

int sorts_in(const Plan& plan) {
  return static_cast<int>(std::count_if(plan.steps.begin(), plan.steps.end(),
                                        [](const Step& step) { return step.is<SortStep>(); }));
}

TEST(SortPlans, AreOneStepAndAGather) {
  const LazyTensor x = LazyTensor::from_vector(row_with_ties(600, 1), Shape{20, 30}, Device::cpu());
  EXPECT_EQ(plan_for({argsort(x)})->steps.size(), 1U);
  const auto plan = plan_for({sort(x)});
  EXPECT_EQ(plan->steps.size(), 2U);
  EXPECT_EQ(sorts_in(*plan), 1);
  EXPECT_EQ(plan->steps[0].name(), "sort");
  // Columns are sorted where they are.
  EXPECT_EQ(sorts_in(*plan_for({topk(x, 3, 0).indices})), 1);
}

TEST(SortPlans, FirstPlacesOfLongRowsAndWholeOnes) {
  for (const std::int64_t n : {63, 64, 513, 4096, 100'000}) {
    const Floats values = row_with_ties(n, static_cast<unsigned>(n));
    const LazyTensor x = LazyTensor::from_vector(values, Shape{n}, Device::cpu());
    for (const bool descending : {false, true}) {
      const Positions order = order_of(values, descending);
      EXPECT_EQ(argsort(x, 0, descending).to_vector<std::int32_t>(), order) << n;
      for (const std::int64_t k : {std::int64_t{1}, std::int64_t{7}, n / 9, n / 8, n / 3, n - 1}) {
        const Positions first(order.begin(), order.begin() + k);
        EXPECT_EQ(topk(x, k, 0, descending).indices.to_vector<std::int32_t>(), first) << k << " of " << n;
      }
    }
  }
}

/// Whole orders and the first elements of rows of many lengths.
void expect_short_rows_in_order() {
  for (const std::int64_t n : {2, 3, 5, 8, 13, 16, 31, 64, 100, 128, 129, 257, 512}) {
    const std::int64_t rows = n < 100 ? 37 : 18;
    const Floats values = row_with_ties(rows * n, static_cast<unsigned>(n));
    const LazyTensor x = LazyTensor::from_vector(values, Shape{rows, n}, Device::cpu());
    const LazyTensor columns = permute_dims(x, {1, 0}).eval();  // the same rows, side by side in memory
    for (const bool descending : {false, true}) {
      const std::int64_t k = std::max<std::int64_t>(1, n / 9);
      const auto all = argsort(x, 1, descending).to_vector<std::int32_t>();
      const auto across = permute_dims(argsort(columns, 0, descending), {1, 0}).to_vector<std::int32_t>();
      const auto halves = argsort(astype(x, DType::f16), 1, descending).to_vector<std::int32_t>();
      const auto first = topk(x, k, 1, descending).indices.to_vector<std::int32_t>();
      for (std::int64_t row = 0; row < rows; ++row) {
        SCOPED_TRACE(std::to_string(n) + ", row " + std::to_string(row));
        const auto of = [&](const auto& every, std::int64_t length) {
          return Positions(every.begin() + row * length, every.begin() + (row + 1) * length);
        };
        const Positions order =
            order_of(Floats(values.begin() + row * n, values.begin() + (row + 1) * n), descending);
        EXPECT_EQ(of(all, n), order);
        EXPECT_EQ(of(across, n), order);
        EXPECT_EQ(of(halves, n), order);
        EXPECT_EQ(of(first, k), Positions(order.begin(), order.begin() + k));
      }
    }
  }
}

TEST(SortPlans, ManyShortRowsOfEveryLength) {
  with_each_instruction_set([](const char* set) {
    SCOPED_TRACE(set);
    expect_short_rows_in_order();
  });
}

TEST(SortPlans, ShortRowsOfWholeNumbers) {
  std::mt19937 random(6);
  std::vector<std::int32_t> values(50 * 21);
  for (std::int32_t& x : values) x = static_cast<std::int32_t>(random()) >> (random() % 30);
  const LazyTensor x = LazyTensor::from_vector(values, Shape{50, 21}, Device::cpu());
  const auto sorted = sort(x, 1).to_vector<std::int32_t>();
  for (std::size_t row = 0; row < 50; ++row) {
    std::sort(values.begin() + 21 * row, values.begin() + 21 * (row + 1));
    EXPECT_TRUE(
        std::equal(sorted.begin() + 21 * row, sorted.begin() + 21 * (row + 1), values.begin() + 21 * row));
  }
}

TEST(SortPlans, WideKeysOfEveryMagnitude) {
  std::mt19937_64 random(5);
  std::vector<double> values;
  std::vector<std::int64_t> whole;
  for (int i = 0; i < 3000; ++i) {
    whole.push_back(static_cast<std::int64_t>(random() >> (i % 64)) * (i % 2 == 0 ? 1 : -1));
    values.push_back(std::ldexp(static_cast<double>(whole.back()), i % 600 - 300));
  }
  const Shape shape{static_cast<std::int64_t>(values.size())};
  const auto sorted = [](auto x) {
    std::sort(x.begin(), x.end());
    return x;
  };
  EXPECT_EQ(sort(LazyTensor::from_vector(values, shape, Device::cpu())).to_vector<double>(), sorted(values));
  const auto ascending = sorted(values);
  EXPECT_EQ(
      topk(LazyTensor::from_vector(values, shape, Device::cpu()), 200, 0, false).values.to_vector<double>(),
      std::vector<double>(ascending.begin(), ascending.begin() + 200));
  EXPECT_EQ(sort(LazyTensor::from_vector(whole, shape, Device::cpu())).to_vector<std::int64_t>(),
            sorted(whole));
}

TEST(SortPlans, QuantilesAreSelectedInTheMiddle) {
  std::mt19937 random(8);
  std::vector<double> values(10'001);
  for (double& x : values) x = static_cast<double>(random() % 5000);
  const LazyTensor x = LazyTensor::from_vector(values, Shape{10'001}, Device::cpu());
  std::sort(values.begin(), values.end());
  EXPECT_EQ(median(x).item(), values[5000]);
  EXPECT_EQ(quantile(x, 0.9).item(), values[9000]);
  EXPECT_EQ(quantile(x, 1).item(), values[10'000]);
  ASSERT_NE(values[3300], values[3301]);  // most neighbours are ties, which any weight would fit
  EXPECT_NEAR(quantile(x, 0.33003).item<double>(), values[3300] + 0.3 * (values[3301] - values[3300]), 1e-9);
}

TEST(SortPlans, TheInterpreterFindsTheSameOrder) {
  const Floats values = row_with_ties(7 * 90, 3);
  const LazyTensor x = LazyTensor::from_vector(values, Shape{7, 90}, Device::cpu());
  for (const LazyTensor& y : {argsort(x, 1, true), argsort(x, 0), topk(x, 5, 1, false).indices}) {
    const auto plan = plan_for({y});
    EXPECT_NO_THROW(verify_plan(*plan));
    reference::PlanMemory memory;
    for (const auto& buffer : plan->buffers)
      memory.buffers.emplace_back(static_cast<std::size_t>(buffer.bytes));
    std::memcpy(memory.buffers[0].data(), values.data(), values.size() * sizeof(float));
    reference::run_reference(*plan, memory);
    Positions found(static_cast<std::size_t>(y.numel()));
    std::memcpy(found.data(), memory.buffers[1].data(), found.size() * sizeof(std::int32_t));
    EXPECT_EQ(y.to_vector<std::int32_t>(), found);
  }
}

TEST(SortPlans, TheVerifierKnowsTheirForm) {
  const LazyTensor x = LazyTensor::zeros(Shape{3, 8}, DType::f32, Device::cpu()) + 1;
  const auto sound = plan_for({topk(x.eval(), 2).indices});
  EXPECT_NO_THROW(verify_plan(*sound));
  const auto rejected = [&](auto damage) {
    Plan plan = *sound;
    damage(plan.steps[0]);
    EXPECT_THROW(verify_plan(plan), PlanError);
  };
  rejected([](Step& step) { step.as<SortStep>().first = 7; });
  rejected([](Step& step) { step.as<SortStep>().first = -1; });
  rejected([](Step& step) { step.as<SortStep>().of = DType::f64; });
  rejected([](Step& step) { step.dims[1] += 1; });
  rejected([](Step& step) { step.dtype = DType::i64; });
  rejected([](Step& step) { step.operands[0].strides[2] = 1; });
  rejected([](Step& step) { step.operands[1].strides[1] = 1; });
  rejected([](Step& step) { step.operands.pop_back(); });
}

}  // namespace
}  // namespace caldera::testing
