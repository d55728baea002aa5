// The plan cache: structure hits, whatever the numbers are; anything that changes the plan misses.
#include "engine/runtime/plan_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "engine/caldera.h"
#include "engine/device/backend.h"
#include "engine/runtime/evaluate.h"
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
      [&] { exp(slice(exp(x), 0, 1, 2)).eval(); },
      [&] { exp(slice(x, 0, 0, 2, 2)).eval(); },  // a step; where it begins is an argument
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

TEST(PlanCacheNull, ATrainingLoopWithAScheduleMissesOnce) {
  const ScopedSettings scope;
  settings().plan_cache = true;
  clear_plan_cache();
  const Device device = Device::null();
  LazyTensor w = LazyTensor::from_vector(Floats(12, 0.5F), {4, 3}, device);
  const LazyTensor x = LazyTensor::from_vector(Floats(32, 0.25F), {8, 4}, device);
  const auto before = plan_cache_stats();
  const std::uint64_t submits = backend(device).counters().submits;
  for (int step = 0; step < 10; ++step) {
    const LazyTensor loss = mean(square(matmul(x, w)));
    w = w - grad(loss, w) * (0.5 / (1 + step));
    eval({loss, w});
  }
  EXPECT_EQ(plan_cache_stats().misses, before.misses + 1);
  EXPECT_EQ(plan_cache_stats().hits, before.hits + 9);
  EXPECT_EQ(backend(device).counters().submits, submits + 10);
}

/// An executable of an empty plan that claims a size.
class Sized final : public Executable {
 public:
  Sized(std::size_t bytes, int* alive)
      : Executable(std::make_shared<const Plan>()), bytes_(bytes), alive_(alive) {
    ++*alive_;
  }
  ~Sized() override { --*alive_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  std::size_t bytes_;
  int* alive_;
};

Hash128 key_of(std::uint64_t number) {
  Hash128 key;
  key.mix(number);
  return key;
}

class PlanCacheBound : public ::testing::Test {
 protected:
  static constexpr std::size_t kLarge = 100'000;

  void insert(PlanCache& cache, std::uint64_t key, std::size_t bytes = kLarge) {
    cache.insert(key_of(key), std::make_shared<Sized>(bytes, &alive_));
  }
  int alive_ = 0;
};

TEST_F(PlanCacheBound, HoldsNoMoreBytesThanItMay) {
  PlanCache cache(10 * kLarge + kLarge / 2);
  for (std::uint64_t key = 1; key <= 100; ++key) {
    insert(cache, key);
    EXPECT_LE(cache.stats().bytes, cache.stats().limit);
    EXPECT_EQ(cache.stats().entries, std::min<std::uint64_t>(key, 10));
    EXPECT_EQ(static_cast<std::uint64_t>(alive_), cache.stats().entries) << "what is dropped is destroyed";
  }
  EXPECT_EQ(cache.stats().evictions, 90U);
  EXPECT_GE(cache.stats().bytes, 10 * kLarge);
}

TEST_F(PlanCacheBound, DropsWhatWasUsedLongestAgo) {
  PlanCache cache(3 * kLarge + kLarge / 2);
  for (std::uint64_t key : {1U, 2U, 3U}) insert(cache, key);
  EXPECT_NE(cache.find(key_of(1)), nullptr);
  insert(cache, 4);
  EXPECT_EQ(cache.find(key_of(2)), nullptr);
  EXPECT_NE(cache.find(key_of(1)), nullptr);
  EXPECT_NE(cache.find(key_of(3)), nullptr);
  EXPECT_NE(cache.find(key_of(4)), nullptr);
  EXPECT_EQ(cache.stats().hits, 4U);
  EXPECT_EQ(cache.stats().misses, 1U);
  EXPECT_EQ(cache.stats().evictions, 1U);
}

TEST_F(PlanCacheBound, KeepsTheNewestHoweverLarge) {
  PlanCache cache(kLarge);
  insert(cache, 1, kLarge / 2);
  insert(cache, 2, 10 * kLarge);
  EXPECT_EQ(cache.stats().entries, 1U);
  EXPECT_NE(cache.find(key_of(2)), nullptr);
  insert(cache, 3, kLarge / 2);
  EXPECT_EQ(cache.find(key_of(2)), nullptr);
  EXPECT_NE(cache.find(key_of(3)), nullptr);
}

TEST_F(PlanCacheBound, WhatIsInUseOutlivesItsEviction) {
  PlanCache cache(kLarge);
  insert(cache, 1);
  const auto used = cache.find(key_of(1));
  insert(cache, 2);
  EXPECT_EQ(alive_, 2);
  EXPECT_EQ(used->bytes(), kLarge);
}

TEST_F(PlanCacheBound, TheSameKeyTwiceIsOneEntry) {
  PlanCache cache(10 * kLarge);
  insert(cache, 1);
  const std::uint64_t bytes = cache.stats().bytes;
  insert(cache, 1);
  EXPECT_EQ(cache.stats().entries, 1U);
  EXPECT_EQ(cache.stats().bytes, bytes);
  cache.clear();
  EXPECT_EQ(cache.stats().bytes, 0U);
  EXPECT_EQ(alive_, 0);
}

TEST_P(PlanCaching, TheLimitIsOnBytes) {
  const auto run = [](int n) { return (leaf({n}) + 1.0).to_vector<float>(); };
  run(1);
  const std::uint64_t one = plan_cache_stats().bytes;
  EXPECT_GT(one, sizeof(Plan) + sizeof(Step)) << "a plan counts with all that it holds";
  set_plan_cache_limit(4 * one + one / 2);
  for (int n = 2; n <= 20; ++n) EXPECT_EQ(run(n), Floats(static_cast<std::size_t>(n), 3.0F));
  EXPECT_LE(plan_cache_stats().entries, 5U);
  EXPECT_GE(plan_cache_stats().entries, 2U);
  EXPECT_LE(plan_cache_stats().bytes, plan_cache_stats().limit);
  const auto before = plan_cache_stats();
  run(20);
  EXPECT_EQ(plan_cache_stats().hits, before.hits + 1) << "the newest stay";
  run(1);
  EXPECT_EQ(plan_cache_stats().misses, before.misses + 1) << "the oldest go";
  set_plan_cache_limit(PlanCache::kDefaultLimit);
}

TEST_P(PlanCaching, LargerPlansCountForMore) {
  LazyTensor y = leaf({4});
  y.eval();
  (y + 1.0).eval();
  const std::uint64_t small = plan_cache_stats().bytes;
  settings().fusion = false;
  for (int i = 0; i < 500; ++i) y = y + 1.0;
  y.eval();
  EXPECT_GT(plan_cache_stats().bytes - small, 100 * sizeof(Step));
}

// ---- several threads

struct EmptyExecutable : Executable {
  EmptyExecutable() : Executable(std::make_shared<const Plan>()) {}
};

TEST(PlanCache, IsMadeOnceForAllWhoAsk) {
  PlanCache cache;
  std::atomic<int> made{0};
  std::vector<std::shared_ptr<Executable>> got(4);
  {
    std::vector<std::jthread> threads;
    for (std::shared_ptr<Executable>& mine : got) {
      threads.emplace_back([&] {
        mine = cache.make_once(Hash128{}, [&] {
          ++made;
          std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the others ask meanwhile
          return std::make_shared<EmptyExecutable>();
        });
      });
    }
  }
  EXPECT_EQ(made, 1);
  for (const auto& mine : got) EXPECT_EQ(mine, got[0]);
}

TEST(PlanCache, TellsAllWhoWaitWhatWentWrong) {
  PlanCache cache;
  std::atomic<int> errors{0};
  const auto ask = [&] {
    try {
      cache.make_once(Hash128{}, []() -> std::shared_ptr<Executable> { throw ValueError("no such plan"); });
    } catch (const ValueError&) {
      ++errors;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(ask);
  }
  EXPECT_EQ(errors, 4);
  EXPECT_NE(cache.make_once(Hash128{}, [] { return std::make_shared<EmptyExecutable>(); }), nullptr)
      << "the next one who asks tries again";
}

TEST(PlanCache, ACompilationHoldsNobodyUp) {
  const ScopedSettings scope;
  settings().verify = false;
  const LazyTensor x = LazyTensor::from_vector(Floats{1, 2}, {2}, Device::cpu());
  LazyTensor large = x;
  for (int i = 0; i < 60'000; ++i) large = i % 3 == 0 ? sin(large) : large * x;
  const LazyTensor one = reshape(slice(x, 0, 0, 1), {});
  const auto serve = [&] { return (one * 2.0 + 1.0).item<float>(); };
  serve();  // has its plan
  std::atomic<bool> is_done{false};
  std::jthread compiling([&] {
    plan_for({large});
    large.eval();
    is_done = true;
  });
  int served = 0;
  while (!is_done) {
    EXPECT_EQ(serve(), 3.0F);
    ++served;
  }
  EXPECT_GT(served, 20) << "a compilation of tens of milliseconds";
}

}  // namespace
}  // namespace caldera::testing
