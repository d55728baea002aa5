// The plan cache: structure hits, whatever the numbers are; anything that changes the plan misses.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;

class PlanCaching : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    settings().plan_cache = true;
    clear_plan_cache();
    start_ = plan_cache_stats();
  }
  static LazyTensor leaf(const Shape& shape, float value = 2) {
    return LazyTensor::from_vector(Floats(static_cast<std::size_t>(shape.numel()), value), shape, device());
  }
  std::uint64_t misses() const { return plan_cache_stats().misses - start_.misses; }
  std::uint64_t hits() const { return plan_cache_stats().hits - start_.hits; }

 private:
  PlanCacheStats start_;
};
INSTANTIATE_TEST_SUITE_P(Setups, PlanCaching, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(PlanCaching, TheSecondOfAKindHits) {
  for (int i = 0; i < 5; ++i) {
    const auto value = static_cast<float>(i);
    EXPECT_EQ((leaf({3}, value) * leaf({3}, 2) + leaf({3}, 1)).to_vector<float>(), Floats(3, 2 * value + 1));
  }
  EXPECT_EQ(misses(), 1U);
  EXPECT_EQ(hits(), 4U);
  EXPECT_EQ(plan_cache_stats().entries, 1U);
}

TEST_P(PlanCaching, NumbersAreArguments) {
  const LazyTensor x = leaf({3}, 4);
  for (double rate : {0.5, 0.25, 0.0, 1.0, -1.0, 1e-6}) {
    EXPECT_EQ((x - x * rate).to_vector<float>(), Floats(3, 4 - 4 * static_cast<float>(rate))) << rate;
  }
  EXPECT_EQ(misses(), 1U);
  for (int n : {1, 0, -7}) {
    EXPECT_EQ((arange(3, DType::i32, device()) * n).to_vector<std::int32_t>()[2], 2 * n);
  }
  EXPECT_EQ(misses(), 2U);
  for (float value : {3.0F, 0.0F, 1.0F}) {
    EXPECT_EQ(LazyTensor::full({2}, value, DType::f32, device()).to_vector<float>(), Floats(2, value));
  }
  EXPECT_EQ(misses(), 3U);
}

TEST_P(PlanCaching, SeedsAreArguments) {
  Floats last;
  for (std::uint64_t seed : {1ULL, 2ULL, 1ULL << 40}) {
    const Floats now = random_uniform({5}, seed, DType::f32, device()).to_vector<float>();
    EXPECT_NE(now, last);
    last = now;
  }
  EXPECT_EQ(misses(), 1U);
}

TEST_P(PlanCaching, ATrainingLoopWithAScheduleCompilesOnce) {
  LazyTensor w = leaf({4, 3}, 0.5F);
  const LazyTensor x = leaf({8, 4}, 0.25F);
  const LazyTensor target = leaf({8, 3}, 1);
  float first = 0;
  float loss_now = 0;
  for (int step = 0; step < 6; ++step) {
    const LazyTensor loss = mean(square(matmul(x, w) - target));
    const LazyTensor updated = w - grad(loss, w) * (0.5 / (1 + step));
    eval({loss, updated});
    w = updated;
    loss_now = loss.item();
    if (step == 0) first = loss_now;
  }
  EXPECT_LT(loss_now, first);
  EXPECT_EQ(misses(), 1U);
  EXPECT_EQ(hits(), 5U);
}

TEST_P(PlanCaching, AnythingThatChangesThePlanMisses) {
  const LazyTensor x = leaf({2, 2});
  const LazyTensor y = leaf({2, 2});
  const LazyTensor whole = LazyTensor::from_vector(std::vector<std::int32_t>(4, 1), {2, 2}, device());
  const std::vector<std::function<void()>> different = {
      [&] { (x + y).eval(); },
      [&] { (x + x).eval(); },  // one leaf, not two
      [&] { (x - y).eval(); },
      [&] { (x * y).eval(); },
      [&] { (whole + whole).eval(); },
      [&] {
        (leaf({2, 3}) + leaf({2, 3})).eval();
      },
      [&] { (leaf({4}) + leaf({4})).eval(); },
      [&] { sum(x, 0).eval(); },
      [&] { sum(x, 1).eval(); },
      [&] { sum(x, 0, true).eval(); },
      [&] { max(x, 0).eval(); },
      [&] { exp(transpose(x)).eval(); },
      [&] { exp(slice(x, 0, 0, 1)).eval(); },
      [&] { exp(slice(x, 0, 1, 2)).eval(); },
      [&] { (x + 1.0).eval(); },
      [&] { (1.0 + x).eval(); },
      [&] {
        const LazyTensor one = exp(x);
        eval({one, tanh(one)});
      },
      [&] {
        const LazyTensor one = exp(x);
        eval({tanh(one), one});
      },
  };
  std::uint64_t expected = 0;
  for (const auto& run : different) {
    run();
    EXPECT_EQ(misses(), ++expected);
    run();
    EXPECT_EQ(misses(), expected) << "the same again hits";
  }
  settings().fusion = !settings().fusion;
  different[0]();
  EXPECT_EQ(misses(), ++expected);
}

TEST_P(PlanCaching, OtherDevicesHaveTheirOwnPlans) {
  (leaf({2}) + 1.0).eval();
  (LazyTensor::from_vector(Floats{1, 2}, {2}, Device::null()) + 1.0).eval();
  EXPECT_EQ(misses(), 2U);
}

TEST_P(PlanCaching, OperandsOfOneStructureMayLieAnywhere) {
  // The order in which leaves are met is the structure, not which tensors they are.
  const LazyTensor x = leaf({2}, 5);
  const LazyTensor y = leaf({2}, 3);
  EXPECT_EQ((x - y).to_vector<float>(), Floats(2, 2));
  EXPECT_EQ((y - x).to_vector<float>(), Floats(2, -2));
  const LazyTensor computed = (x * y).eval();
  EXPECT_EQ((computed - y).to_vector<float>(), Floats(2, 12));
  EXPECT_EQ(misses(), 2U);
}

TEST_P(PlanCaching, ClearedPlansAreMadeAgain) {
  (leaf({2}) + 1.0).eval();
  clear_plan_cache();
  EXPECT_EQ(plan_cache_stats().entries, 0U);
  EXPECT_EQ((leaf({2}) + 1.0).to_vector<float>(), Floats(2, 3));
  EXPECT_EQ(misses(), 2U);
}

TEST_P(PlanCaching, ClearingWhileWorkIsInFlightIsSafe) {
  LazyTensor y = leaf({1 << 12});
  EvalFuture future;
  for (int i = 0; i < 50; ++i) {
    y = y + 1.0;
    future = y.eval_async();
    clear_plan_cache();
  }
  EXPECT_EQ(y.to_vector<float>()[0], 52.0F);
}

TEST_P(PlanCaching, CanBeSwitchedOff) {
  settings().plan_cache = false;
  for (int i = 0; i < 3; ++i) EXPECT_EQ((leaf({2}) + 1.0).to_vector<float>(), Floats(2, 3));
  EXPECT_EQ(hits() + misses(), 0U);
  EXPECT_EQ(plan_cache_stats().entries, 0U);
}

TEST_P(PlanCaching, AskingForAPlanNeitherAsksNorFillsIt) {
  const LazyTensor y = leaf({2}) + 1.0;
  EXPECT_NE(plan_for({y}), nullptr);
  EXPECT_FALSE(y.is_evaluated());
  EXPECT_EQ(hits() + misses(), 0U);
  EXPECT_EQ(plan_cache_stats().entries, 0U);
}

TEST(PlanCacheSize, IsBounded) {
  const ScopedSettings scope;
  clear_plan_cache();
  const auto run = [](int n) {
    const LazyTensor x =
        LazyTensor::from_vector(Floats(static_cast<std::size_t>(n), 1.0F), {n}, Device::cpu());
    return (x + 1.0).to_vector<float>();
  };
  for (int n = 1; n <= 300; ++n) EXPECT_EQ(run(n), Floats(static_cast<std::size_t>(n), 2.0F));
  EXPECT_LE(plan_cache_stats().entries, 256U);
  const auto before = plan_cache_stats();
  run(300);
  EXPECT_EQ(plan_cache_stats().hits, before.hits + 1) << "the newest stay";
  run(1);
  EXPECT_EQ(plan_cache_stats().misses, before.misses + 1) << "the oldest go";
}

}  // namespace
}  // namespace caldera::testing
