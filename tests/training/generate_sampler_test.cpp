#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "engine/tensor/error.h"
#include "training/generate/sampler.h"

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

}  // namespace
}  // namespace caldera
