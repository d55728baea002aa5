// The global generator: what manual_seed promises, for every operation that can do without a seed.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <thread>

#include "ops/ops.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class Generator : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, Generator, ::testing::ValuesIn(op_settings()), op_setting_name);

std::vector<float> drawn(const LazyTensor& x) { return x.astype(DType::f32).to_vector<float>(); }

TEST(GlobalGenerator, GivesEveryCallItsOwnSeedAndBeginsAnewWithManualSeed) {
  std::vector<std::uint64_t> first;
  manual_seed(7);
  for (int i = 0; i < 1000; ++i) first.push_back(next_seed());
  EXPECT_EQ(std::set<std::uint64_t>(first.begin(), first.end()).size(), first.size());
  manual_seed(7);
  for (const std::uint64_t seed : first) ASSERT_EQ(next_seed(), seed);
  // Another seed's sequence is not the same one, begun elsewhere.
  manual_seed(8);
  const std::set<std::uint64_t> before(first.begin(), first.end());
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(before.contains(next_seed()));
}

TEST(GlobalGenerator, GivesThreadsSeedsThatNoOtherHas) {
  constexpr int kThreads = 4, kCalls = 2000;
  manual_seed(3);
  std::vector<std::vector<std::uint64_t>> seeds(kThreads);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : seeds)
      threads.emplace_back([&mine] {
        for (int i = 0; i < kCalls; ++i) mine.push_back(next_seed());
      });
  }
  std::set<std::uint64_t> all;
  for (const auto& mine : seeds) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kThreads) * kCalls);
}

TEST_P(Generator, CallsWithoutASeedDrawAnewAndRepeatAfterManualSeed) {
  const Shape shape{64};
  const LazyTensor ones = caldera::ones(shape), images = caldera::ones({16, 8, 2});
  const std::vector<std::pair<const char*, std::function<LazyTensor()>>> calls{
      {"uniform", [&] { return random_uniform(shape); }},
      {"uniform of a type", [&] { return random_uniform(shape, DType::f16); }},
      {"normal", [&] { return random_normal(shape); }},
      {"normal on a device", [&] { return random_normal(shape, DType::f32, device()); }},
      {"bernoulli", [&] { return random_bernoulli(0.5, shape); }},
      {"randint", [&] { return random_randint(0, 1000, shape); }},
      {"truncated normal", [&] { return random_truncated_normal(-1, 1, shape); }},
      {"exponential", [&] { return random_exponential(shape); }},
      {"gumbel", [&] { return random_gumbel(shape); }},
      {"categorical",
       [&] {
         return random_categorical(caldera::zeros({64, 5}));
       }},
      {"permutation", [&] { return random_permutation(64); }},
      {"dropout", [&] { return dropout(ones, 0.5); }},
      {"channel dropout", [&] { return channel_dropout(images, 0.5); }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    manual_seed(11);
    const std::vector<float> first = drawn(call()), second = drawn(call());
    EXPECT_NE(first, second);
    manual_seed(11);
    EXPECT_EQ(drawn(call()), first);
    EXPECT_EQ(drawn(call()), second);
    manual_seed(12);
    EXPECT_NE(drawn(call()), first);
  }
}

TEST_P(Generator, TheSeedIsThatOfTheCallWithOne) {
  manual_seed(5);
  const std::uint64_t seed = next_seed();
  manual_seed(5);
  EXPECT_EQ(drawn(random_normal({33})), drawn(random_normal({33}, seed)));
  manual_seed(5);
  const LazyTensor x = ones({33});
  EXPECT_EQ(drawn(dropout(x, 0.25)), drawn(dropout(x, 0.25, seed)));
}

/// Draws of one element each, whose seeds are neighbours: their mean and their correlation are those of
/// independent numbers.
TEST_P(Generator, StreamsOfNeighbouringCallsAreIndependent) {
  constexpr int kCalls = 4096;
  manual_seed(1);
  std::vector<LazyTensor> draws;
  for (int i = 0; i < kCalls; ++i) draws.push_back(random_uniform({1}));
  const std::vector<float> u = drawn(concatenate(draws));
  double mean = 0, together = 0;
  for (int i = 0; i < kCalls; ++i) mean += u[static_cast<std::size_t>(i)] / kCalls;
  for (std::size_t i = 0; i + 1 < u.size(); ++i) together += (u[i] - 0.5) * (u[i + 1] - 0.5) / (kCalls - 1);
  // Five deviations: of the mean sqrt(1 / 12 / n), of the products 1 / 12 / sqrt(n).
  EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(1.0 / 12 / kCalls));
  EXPECT_NEAR(together, 0, 5.0 / 12 / std::sqrt(kCalls));
}

}  // namespace
}  // namespace caldera::testing
