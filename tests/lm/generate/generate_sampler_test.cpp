#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "lm/generate/sampling/penalties.h"
#include "lm/generate/sampling/sampler.h"
#include "tests/support/devices.h"

namespace caldera {
namespace {

const std::vector<float> kLogits{0.5F, 2.0F, -1.0F, 2.0F, 1.0F};

std::map<std::int32_t, int> draw(const SamplingOptions& options, const std::vector<float>& logits,
                                 int times) {
  Sampler sampler(options);
  std::map<std::int32_t, int> counts;
  for (int i = 0; i < times; ++i) ++counts[sampler.next(logits, {})];
  return counts;
}

TEST(Sampler, GreedyTakesTheFirstOfEquals) {
  Sampler sampler({.temperature = 0});
  EXPECT_EQ(sampler.next(kLogits, {}), 1);
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  const double temperature = 0.7;
  const int times = 40000;
  auto counts = draw({.temperature = temperature, .seed = 5}, kLogits, times);
  double total = 0;
  for (const float l : kLogits) total += std::exp(l / temperature);
  for (std::size_t i = 0; i < kLogits.size(); ++i) {
    const double p = std::exp(kLogits[i] / temperature) / total;
    const double deviation = std::sqrt(p * (1 - p) / times);
    EXPECT_NEAR(static_cast<double>(counts[static_cast<std::int32_t>(i)]) / times, p, 5 * deviation) << i;
  }
}

TEST(Sampler, TopKKeepsTheMostLikely) {
  const auto counts = draw({.temperature = 1, .top_k = 3}, kLogits, 2000);
  EXPECT_EQ(counts.size(), 3U);
  EXPECT_TRUE(counts.contains(1) && counts.contains(3) && counts.contains(4));
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesIt) {
  // Probabilities 0.5, 0.3, 0.2.
  const std::vector<float> logits{std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  EXPECT_EQ(draw({.temperature = 1, .top_p = 0.4}, logits, 500).size(), 1U);
  EXPECT_EQ(draw({.temperature = 1, .top_p = 0.6}, logits, 500).size(), 2U);
  EXPECT_EQ(draw({.temperature = 1, .top_p = 0.9}, logits, 500).size(), 3U);
  // After top-k the rest is renormalised: of 0.5 and 0.3 the first is 0.625.
  EXPECT_EQ(draw({.temperature = 1, .top_k = 2, .top_p = 0.6}, logits, 500).size(), 1U);
}

TEST(Sampler, MinPIsRelativeToTheBest) {
  const std::vector<float> logits{std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  EXPECT_EQ(draw({.temperature = 1, .min_p = 0.5}, logits, 500).size(), 2U);
  EXPECT_EQ(draw({.temperature = 1, .min_p = 0.7}, logits, 500).size(), 1U);
  EXPECT_EQ(draw({.temperature = 1, .min_p = 0.3}, logits, 500).size(), 3U);
}

TEST(Sampler, TheSeedDecides) {
  const SamplingOptions options{.temperature = 1, .seed = 11};
  Sampler a(options);
  Sampler b(options);
  Sampler other({.temperature = 1, .seed = 12});
  int differences = 0;
  for (int i = 0; i < 100; ++i) {
    const std::int32_t id = a.next(kLogits, {});
    EXPECT_EQ(id, b.next(kLogits, {}));
    if (id != other.next(kLogits, {})) ++differences;
  }
  EXPECT_GT(differences, 20);
}

TEST(Sampler, RepetitionPenaltyAppliesOncePerDistinctToken) {
  std::vector<float> logits{3.0F, -3.0F, 0.0F, 1.0F};
  apply_repetition_penalty(logits, std::vector<std::int32_t>{0, 1, 0, 0, 2, 7, -1}, 1.5);
  EXPECT_EQ(logits, (std::vector<float>{2.0F, -4.5F, 0.0F, 1.0F}));
}

TEST(Sampler, RepetitionPenaltyLeavesTheCallersLogitsAlone) {
  const std::vector<float> logits{2.0F, 1.9F};
  Sampler sampler({.temperature = 0, .repetition_penalty = 2});
  EXPECT_EQ(sampler.next(logits, std::vector<std::int32_t>{0}), 1);
  EXPECT_EQ(logits, (std::vector<float>{2.0F, 1.9F}));
}

TEST(Sampler, RefusesNonsense) {
  EXPECT_THROW(Sampler({.temperature = -1}), ValueError);
  EXPECT_THROW(Sampler({.temperature = std::nan("")}), ValueError);
  EXPECT_THROW(Sampler({.top_k = -1}), ValueError);
  EXPECT_THROW(Sampler({.top_p = 0}), ValueError);
  EXPECT_THROW(Sampler({.top_p = 1.1}), ValueError);
  EXPECT_THROW(Sampler({.min_p = -0.1}), ValueError);
  EXPECT_THROW(Sampler({.repetition_penalty = 0}), ValueError);

  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({.temperature = temperature});
    constexpr float infinity = std::numeric_limits<float>::infinity();
    EXPECT_THROW(sampler.next({}, {}), ValueError);
    EXPECT_THROW(sampler.next(std::vector<float>{1.0F, std::nanf("")}, {}), ValueError);
    EXPECT_THROW(sampler.next(std::vector<float>{1.0F, infinity}, {}), ValueError);
    EXPECT_THROW(sampler.next(std::vector<float>{-infinity, -infinity}, {}), ValueError);
    EXPECT_EQ(sampler.next(std::vector<float>{-infinity, 0.0F}, {}), 1);
  }
}

/// What Sampler::next did when it put all candidates in order first.
std::int32_t drawn_in_full(std::span<const float> logits, const SamplingOptions& o, double uniform) {
  std::vector<std::pair<float, std::int32_t>> all;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (std::isfinite(logits[i])) all.emplace_back(-logits[i], static_cast<std::int32_t>(i));
  std::sort(all.begin(), all.end());
  if (o.top_k > 0) all.resize(std::min(all.size(), static_cast<std::size_t>(o.top_k)));
  std::vector<double> weights;
  for (const auto& [logit, id] : all)
    weights.push_back(
        std::exp((static_cast<double>(all[0].first) - static_cast<double>(logit)) / o.temperature));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::size_t kept = 0;
  for (double sum = 0; kept < weights.size() && sum < o.top_p * total; ++kept) sum += weights[kept];
  while (kept > 1 && weights[kept - 1] < o.min_p) --kept;
  double point =
      uniform * std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(kept), 0.0);
  std::size_t i = 0;
  while (i + 1 < kept && (point -= weights[i]) >= 0) ++i;
  return all[i].second;
}

TEST(Sampler, OrdersNoMoreThanItNeedsAndDrawsTheSame) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(5000);
  for (float& l : logits) l = std::round(normal(random) * 64) / 64;  // with equals
  logits[17] = logits[4000] = -std::numeric_limits<float>::infinity();
  for (const SamplingOptions& o :
       {SamplingOptions{.temperature = 0.8, .seed = 5}, SamplingOptions{.temperature = 5, .seed = 6},
        SamplingOptions{.temperature = 1, .top_k = 40, .seed = 7},
        SamplingOptions{.temperature = 2, .top_p = 0.9, .seed = 8},
        SamplingOptions{.temperature = 2, .min_p = 0.01, .seed = 9},
        SamplingOptions{.temperature = 3, .top_k = 900, .top_p = 0.95, .min_p = 0.001, .seed = 10},
        SamplingOptions{.temperature = 0.05, .top_k = 300, .seed = 11},
        SamplingOptions{.temperature = 50, .top_p = 0.5, .seed = 12}}) {
    Sampler sampler(o);
    std::mt19937_64 engine(o.seed);
    for (int n = 0; n < 50; ++n)
      ASSERT_EQ(sampler.next(logits, {}),
                drawn_in_full(logits, o, static_cast<double>(engine() >> 11) * 0x1.0p-53))
          << o.seed << ", draw " << n;
  }
}

/// The choice where the logits are is that of the host, ties and refusals included.
TEST(Sampler, TheMostLikelyOnTheDevice) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> rows{1, 7, 7, -kInf, -kInf, -kInf, -3,    -kInf, 0,     kNan,
                                5, 1, 2, kInf,  1,     0,     -kInf, -kInf, -kInf, -kInf};
  for (const Device device : testing::tested_devices()) {
    if (!testing::is_available(device)) continue;
    const auto ids = most_likely(LazyTensor::from_vector(rows, {5, 4}, device)).to_vector<std::int32_t>();
    ASSERT_EQ(ids.size(), 5U);
    EXPECT_EQ(checked_choice(ids[0]), 1);
    EXPECT_EQ(checked_choice(ids[1]), 2);
    for (const int row : {2, 3, 4}) {
      std::string host, here;
      try {
        Sampler({}).next(std::span(rows).subspan(4 * static_cast<std::size_t>(row), 4), {});
      } catch (const ValueError& error) {
        host = error.what();
      }
      try {
        checked_choice(ids[static_cast<std::size_t>(row)]);
      } catch (const ValueError& error) {
        here = error.what();
      }
      EXPECT_FALSE(host.empty());
      EXPECT_EQ(here, host) << row;
    }
  }
}

TEST(Sampler, LargePenaltiesLeaveLogitsFinite) {
  const std::vector<std::int32_t> seen{0, 1, 1};
  for (const double number : {1e300, -1e300, 3e38}) {
    std::vector<float> logits{1, -2, 3};
    apply_count_penalties(logits, seen, number, number);
    if (number > 0) apply_repetition_penalty(logits, seen, number);
    apply_logit_bias(logits, std::vector<std::pair<std::int32_t, float>>{{2, 3e38F}});
    for (const float logit : logits) EXPECT_TRUE(std::isfinite(logit)) << number;
  }
}

}  // namespace
}  // namespace caldera
