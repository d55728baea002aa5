// The probabilities that a sampler draws from, against a reference that sorts everything and takes no short
// ways.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "engine/base/error.h"
#include "lm/generate/sampling/log_probabilities.h"
#include "lm/generate/sampling/penalties.h"
#include "lm/generate/sampling/sampler.h"
#include "lm/generate/sampling/stop_text.h"

namespace caldera {
namespace {

constexpr double kOut = -std::numeric_limits<double>::infinity();

std::vector<double> softmax(const std::vector<double>& logits) {
  const double best = *std::max_element(logits.begin(), logits.end());
  std::vector<double> result;
  double sum = 0;
  for (const double l : logits) sum += std::exp(l - best);
  for (const double l : logits) result.push_back(std::exp(l - best) / sum);
  return result;
}

std::vector<std::size_t> by(const std::vector<double>& keys, bool descending) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return descending ? keys[a] > keys[b] : keys[a] < keys[b];
  });
  return order;
}

// How many of the last tokens make, with this one, a repetition of what was said: DRY's definition, by trying
// all ends.
std::int64_t repeated_tokens(const RepeatPenalty& o, std::span<const std::int32_t> seen, std::int32_t next) {
  if (o.last >= 0) seen = seen.last(std::min<std::size_t>(static_cast<std::size_t>(o.last), seen.size()));
  const auto breaks = [&](std::int32_t id) { return std::ranges::count(o.breakers, id) > 0; };
  std::int64_t most = 0;
  if (breaks(next)) return 0;
  for (std::size_t i = 0; i + 1 < seen.size(); ++i) {
    if (seen[i + 1] != next) continue;
    std::size_t length = 0;
    while (length <= i && length < 50 && seen[i - length] == seen[seen.size() - 1 - length] &&
           !breaks(seen[i - length]))
      ++length;
    most = std::max(most, static_cast<std::int64_t>(length));
  }
  return most;
}

// Every step as its definition reads: -infinity for what a filter takes away, softmax afresh before the next.
std::vector<double> reference(const SamplingOptions& o, const std::vector<float>& given,
                              const SamplingContext& context) {
  std::vector<double> l(given.begin(), given.end());
  for (std::size_t i = 0; i < l.size(); ++i)
    if (context.allowed && !contains(*context.allowed, static_cast<std::int64_t>(i))) l[i] = kOut;
  for (const auto& [id, bias] : o.logit_bias) l[static_cast<std::size_t>(id)] += bias;
  std::map<std::int32_t, int> seen;
  std::map<std::int32_t, int> generated;
  for (std::size_t i = 0; i < context.seen.size(); ++i) {
    ++seen[context.seen[i]];
    if (i >= context.prompt_size) ++generated[context.seen[i]];
  }
  for (const auto& [id, count] : seen) {
    double& x = l[static_cast<std::size_t>(id)];
    x = x > 0 ? x / o.repetition_penalty : x * o.repetition_penalty;
  }
  for (const auto& [id, count] : generated)
    l[static_cast<std::size_t>(id)] -= o.frequency_penalty * count + o.presence_penalty;
  for (std::size_t i = 0; o.repeats.multiplier > 0 && i < l.size(); ++i) {
    const std::int64_t length = repeated_tokens(o.repeats, context.seen, static_cast<std::int32_t>(i));
    if (length > 0 && length >= o.repeats.allowed_length)
      l[i] -= o.repeats.multiplier *
              std::pow(o.repeats.base, static_cast<double>(length - o.repeats.allowed_length));
  }
  std::vector<double> longer = l;
  for (const std::int32_t id : context.avoided) longer[static_cast<std::size_t>(id)] = kOut;
  if (*std::ranges::max_element(longer) > kOut) l = longer;
  for (double& x : l) x /= o.temperature;
  if (o.top_k > 0) {
    const auto order = by(l, true);
    for (std::size_t i = static_cast<std::size_t>(o.top_k); i < l.size(); ++i) l[order[i]] = kOut;
  }
  if (o.top_p < 1) {
    const auto p = softmax(l);
    const auto order = by(l, true);
    double before = 0;
    for (const std::size_t i : order) {
      if (before >= o.top_p) l[i] = kOut;
      before += p[i];
    }
  }
  if (o.min_p > 0) {
    const auto p = softmax(l);
    const double best = *std::max_element(p.begin(), p.end());
    for (std::size_t i = 0; i < l.size(); ++i)
      if (p[i] < o.min_p * best) l[i] = kOut;
  }
  if (o.typical_p < 1) {
    const auto p = softmax(l);
    double entropy = 0;
    for (const double x : p)
      if (x > 0) entropy -= x * std::log(x);
    std::vector<double> distance;
    for (const double x : p) distance.push_back(x > 0 ? std::abs(-std::log(x) - entropy) : 1e300);
    double before = 0;
    for (const std::size_t i : by(distance, false)) {
      if (before >= o.typical_p) l[i] = kOut;
      before += p[i];
    }
  }
  std::vector<double> p = softmax(l);
  const auto order = by(p, true);
  double rest = 1;
  std::size_t excluded = 0;
  while (excluded + 1 < p.size() && p[order[excluded + 1]] >= o.xtc_threshold) rest -= p[order[excluded++]];
  for (std::size_t i = 0; i < p.size(); ++i)
    p[order[i]] *= 1 - o.xtc_probability + (i < excluded ? 0 : o.xtc_probability / rest);
  return p;
}

TEST(SamplerReference, ProbabilitiesAreThoseOfTheDefinitions) {
  std::mt19937 random(3);
  const auto number = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
  };
  const auto coin = [&] { return random() % 2 == 0; };
  for (int round = 0; round < 400; ++round) {
    std::vector<float> logits(1 + random() % 150);
    for (float& l : logits) l = static_cast<float>(number(-6, 6));
    const auto vocabulary = static_cast<std::uint32_t>(logits.size());
    std::vector<std::int32_t> seen(random() % 40);
    for (std::int32_t& id : seen) id = static_cast<std::int32_t>(random() % vocabulary);
    SamplingOptions options;
    options.temperature = number(0.3, 2);
    if (coin()) options.top_k = 1 + static_cast<std::int64_t>(random() % vocabulary);
    if (coin()) options.top_p = number(0.05, 0.99);
    if (coin()) options.min_p = number(0, 0.3);
    if (coin()) options.typical_p = number(0.05, 0.99);
    if (coin()) options.repetition_penalty = number(0.7, 2);
    if (coin()) options.presence_penalty = number(-2, 2);
    if (coin()) options.frequency_penalty = number(-1, 1);
    if (coin()) options.logit_bias = {{static_cast<std::int32_t>(random() % vocabulary), 3.5F}};
    if (coin()) options.xtc_probability = coin() ? 1 : number(0, 1);
    options.xtc_threshold = number(0.01, 0.3);
    if (coin()) {
      for (std::int32_t& id : seen) id %= 3;  // repeats
      options.repeats = {.multiplier = number(0.1, 2), .base = number(1, 2), .last = coin() ? -1 : 20};
      options.repeats.allowed_length = 1 + static_cast<std::int64_t>(random() % 3);
      if (coin()) options.repeats.breakers = {static_cast<std::int32_t>(random() % 3)};
    }
    const std::vector<std::int32_t> ends{0, static_cast<std::int32_t>(random() % vocabulary)};
    std::vector<std::uint64_t> allowed((vocabulary + 63) / 64);
    for (std::uint64_t& word : allowed) word = (std::uint64_t{random()} << 32) | random();
    allowed[0] |= 1;
    SamplingContext context{.seen = seen, .prompt_size = seen.size() / 2};
    if (coin()) context.allowed = allowed;
    if (coin()) context.avoided = ends;

    const std::vector<double> expected = reference(options, logits, context);
    std::vector<double> actual(logits.size());
    Sampler sampler(options);
    double before = 1;
    for (const TokenProbability& token : sampler.distribution(logits, context)) {
      actual[static_cast<std::size_t>(token.id)] = token.probability;
      EXPECT_LE(token.probability, before + 1e-12) << "the most likely come first";
      before = token.probability;
    }
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], 1e-6) << round << " " << i;
    // What is drawn is of these.
    const std::int32_t id = sampler.next(logits, context);
    EXPECT_GT(expected[static_cast<std::size_t>(id)], 0);
  }
}

/// Rows of thousands of tokens are counted in buckets: their probabilities are the same, with many equal
/// logits, some that are ruled out, and few or many that count.
TEST(SamplerReference, ProbabilitiesOfLargeRowsAreThoseOfTheDefinitions) {
  std::mt19937 random(4);
  const auto number = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<float> logits(2048 + random() % 4000);
    const double spread = number(0.1, 12);
    for (float& l : logits) {
      const double sum = number(-1, 1) + number(-1, 1) + number(-1, 1);
      l = static_cast<float>(round % 3 == 0 ? std::round(sum * spread * 32) / 32 : sum * spread);
    }
    for (int i = 0; i < 20; ++i) logits[random() % logits.size()] += static_cast<float>(number(0, 10));
    for (int i = 0; i < 9; ++i) logits[random() % logits.size()] = static_cast<float>(kOut);
    SamplingOptions options;
    options.temperature = std::exp(number(-3, 1.5));
    if (round % 2 == 0) options.top_p = number(0.05, 0.999);
    if (round % 5 < 2) options.top_k = 1 + static_cast<std::int64_t>(random() % 3000);
    if (round % 7 < 2) options.min_p = number(1e-6, 0.3);
    if (round % 4 == 1) options.typical_p = number(0.05, 0.99);
    if (round % 4 == 2) options.xtc_probability = 1;
    options.xtc_threshold = 1e-3;
    const std::vector<double> expected = reference(options, logits, {});
    Sampler sampler(options);
    std::vector<double> actual(logits.size());
    double before = 1;
    for (const TokenProbability& token : sampler.distribution(logits, {})) {
      actual[static_cast<std::size_t>(token.id)] = token.probability;
      EXPECT_LE(token.probability, before * (1 + 1e-6)) << "the most likely come first";
      before = token.probability;
    }
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], 1e-6) << round << " " << i;
    for (int i = 0; i < 20; ++i) {
      const std::int32_t id = sampler.next(logits, {});
      EXPECT_GT(expected[static_cast<std::size_t>(id)], 0) << round;
    }
    const TokenReport report = report_token(logits, 5, 7);
    const std::vector<double> plain = softmax({logits.begin(), logits.end()});
    EXPECT_NEAR(report.drawn.log_probability, std::log(plain[5]), 1e-6);
    const auto order = by({logits.begin(), logits.end()}, true);
    for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(report.top[i].id, static_cast<std::int32_t>(order[i]));
  }
}

/// Mirostat as its paper has it: what surprises by more than mu bits goes, and mu follows what was drawn.
TEST(SamplerReference, MirostatFollowsWhatItDraws) {
  std::mt19937 random(6);
  const auto number = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
  };
  for (const double tau : {0.5, 3.0, 5.0}) {
    SamplingOptions options{.temperature = 0.9, .top_k = 2, .top_p = 0.1, .seed = 3};
    options.mirostat = {.on = true, .tau = tau, .eta = 0.2};
    Sampler sampler(options), told(options);
    double mu = 2 * tau, sum = 0;
    int count = 0;
    for (int step = 0; step < 300; ++step) {
      std::vector<float> logits(step % 3 == 0 ? 3000 : 200);  // counted in buckets, and not
      for (float& l : logits) l = static_cast<float>(number(-5, 5));
      std::vector<double> scaled;
      for (const float l : logits) scaled.push_back(l / 0.9);
      const std::vector<double> p = softmax(scaled);
      const double best = *std::ranges::max_element(p);
      double kept = 0;
      const auto keeps = [&](double x) {
        return -std::log2(x) <= mu || (x == best && -std::log2(best) > mu);
      };
      for (const double x : p) kept += keeps(x) ? x : 0;
      const std::vector<TokenProbability> among = told.distribution(logits, {});
      for (const TokenProbability& token : among) {
        const double x = p[static_cast<std::size_t>(token.id)];
        ASSERT_TRUE(keeps(x)) << step;
        ASSERT_NEAR(token.probability, x / kept, 1e-6) << step;
      }
      ASSERT_EQ(std::ranges::count_if(p, keeps), std::ssize(among)) << step;
      const std::int32_t id = sampler.next(logits, {});
      told.chose(id, among);
      const double surprise = -std::log2(p[static_cast<std::size_t>(id)] / kept);
      mu -= 0.2 * (surprise - tau);
      if (step >= 50) sum += surprise;
      if (step >= 50) ++count;
    }
    // A mean of that many draws, each of which is off by bits: what holds the rule exactly is above.
    EXPECT_NEAR(sum / count, tau, 0.3);
  }
}

TEST(SamplerReference, DrawsFollowTheProbabilities) {
  const std::vector<float> logits{0.3F, 1.1F, -0.4F, 0.9F, 0.2F, -2.0F};
  const std::vector<std::int32_t> seen{1, 3, 3};
  const SamplingContext context{.seen = seen, .prompt_size = 1};
  SamplingOptions options{.temperature = 0.8, .top_p = 0.95, .seed = 17, .presence_penalty = 0.4};
  options.xtc_threshold = 0.2;
  for (const auto& [xtc, typical] : std::vector<std::pair<double, double>>{{0, 1}, {0.6, 1}, {0.6, 0.9}}) {
    options.xtc_probability = xtc;
    options.typical_p = typical;
    const std::vector<double> expected = reference(options, logits, context);
    Sampler sampler(options);
    std::vector<int> counts(logits.size());
    const int times = 50000;
    for (int i = 0; i < times; ++i) ++counts[static_cast<std::size_t>(sampler.next(logits, context))];
    double chi_square = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (expected[i] == 0) {
        EXPECT_EQ(counts[i], 0);
        continue;
      }
      const double difference = counts[i] - times * expected[i];
      chi_square += difference * difference / (times * expected[i]);
    }
    EXPECT_LT(chi_square, 20.5) << xtc;  // 5 degrees of freedom, p = 0.001
  }
}

TEST(SamplerReference, RepeatsCostWhatTheirDefinitionSays) {
  // The end "1 2" stood before 3 once and behind 0 as well: "0 1 2" is three tokens.
  const std::vector<std::int32_t> seen{0, 1, 2, 3, 5, 1, 2, 4, 0, 1, 2};
  SamplingOptions options;
  options.repeats = {.multiplier = 0.5, .base = 2};
  std::vector<float> logits(6, 1.0F);
  apply_repeat_penalty(logits, seen, options.repeats);
  EXPECT_EQ(logits, (std::vector<float>{1, 1, 1, 0, 0.5F, 1}));  // 0.5 * 2^(3-2) and 0.5 * 2^0
  options.repeats.breakers = {1};
  logits.assign(6, 1.0F);
  apply_repeat_penalty(logits, seen, options.repeats);
  EXPECT_EQ(logits, std::vector<float>(6, 1.0F));
  EXPECT_FALSE(options.is_greedy());
  options.repeats = {.multiplier = 1e300, .base = 1e300};
  apply_repeat_penalty(logits, seen, options.repeats);
  for (const float l : logits) EXPECT_TRUE(std::isfinite(l));
  for (const RepeatPenalty& wrong :
       {RepeatPenalty{.multiplier = -1}, RepeatPenalty{.multiplier = 1, .base = 0.5},
        RepeatPenalty{.multiplier = 1, .allowed_length = 0}, RepeatPenalty{.multiplier = 1, .last = -2}}) {
    options.repeats = wrong;
    EXPECT_THROW(Sampler{options}, ValueError);
  }
  EXPECT_THROW(Sampler({.xtc_probability = 1.5}), ValueError);
  EXPECT_THROW(Sampler({.xtc_threshold = -0.1}), ValueError);
}

TEST(SamplerReference, DrawsOfLargeRowsFollowTheProbabilities) {
  std::vector<float> logits(2500, -3.0F);
  for (std::size_t i = 0; i < 40; ++i) logits[i * 60] = 4.0F - 0.1F * static_cast<float>(i);
  for (const SamplingOptions& options :
       {SamplingOptions{.temperature = 1, .seed = 3},
        SamplingOptions{.temperature = 1.3, .top_p = 0.9, .seed = 4},
        SamplingOptions{.temperature = 1.3, .top_p = 0.97, .seed = 5, .typical_p = 0.8}}) {
    const std::vector<double> expected = reference(options, logits, {});
    std::map<std::int32_t, int> counts;
    Sampler sampler(options);
    const int times = 3000;
    for (int i = 0; i < times; ++i) ++counts[sampler.next(logits, {})];
    double chi_square = 0, rest = times, rest_expected = times;
    int cells = 0;
    for (std::int32_t i = 0; i < 2400; i += 60) {
      const double mean = times * expected[static_cast<std::size_t>(i)];
      if (mean < 5) continue;
      chi_square += (counts[i] - mean) * (counts[i] - mean) / mean;
      rest -= counts[i];
      rest_expected -= mean;
      ++cells;
    }
    if (rest_expected > 5) chi_square += (rest - rest_expected) * (rest - rest_expected) / rest_expected;
    EXPECT_LT(chi_square, cells + 4 * std::sqrt(2.0 * cells)) << options.seed;
  }
}

/// What a seed draws does not depend on the processor's vectors, nor on a library's distributions.
TEST(SamplerReference, ASeedDrawsTheSameOnEveryProcessor) {
  std::vector<float> logits(20000);
  std::uint32_t state = 1;
  for (float& l : logits) {
    state = state * 1664525U + 1013904223U;
    l = static_cast<float>(state >> 16) / 6000.0F;
  }
  const auto draws = [&](const SamplingOptions& options) {
    Sampler sampler(options);
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 6; ++i) ids.push_back(sampler.next(logits, {}));
    return ids;
  };
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(draws({.temperature = 1, .seed = 1}), (Ids{19394, 18855, 9236, 14267, 10084, 1793}));
  EXPECT_EQ(draws({.temperature = 2, .top_p = 0.9, .seed = 2}),
            (Ids{6582, 15069, 10862, 5025, 11997, 10792}));
  EXPECT_EQ(draws({.temperature = 1, .seed = 3, .typical_p = 0.7}),
            (Ids{8607, 3225, 12267, 13979, 12838, 18163}));
}

TEST(SamplerReference, GreedyObeysPenaltiesAndConstraints) {
  const std::vector<float> logits{1.0F, 3.0F, 2.0F, 2.5F};
  const std::vector<std::int32_t> seen{1, 1};
  Sampler sampler({.frequency_penalty = 0.4});
  EXPECT_EQ(sampler.next(logits, {.seen = seen}), 3);
  EXPECT_EQ(sampler.next(logits, {.seen = seen, .prompt_size = 2}), 1);
  const std::uint64_t allowed = 0b0101;
  EXPECT_EQ(sampler.next(logits, {.allowed = TokenSet(&allowed, 1)}), 2);
  const std::uint64_t none = 0;
  EXPECT_THROW(sampler.next(logits, {.allowed = TokenSet(&none, 1)}), ValueError);
  EXPECT_FALSE((SamplingOptions{.presence_penalty = 1}.is_greedy()));
  EXPECT_THROW(Sampler({.typical_p = 0}), ValueError);
  EXPECT_THROW(Sampler({.logit_bias = {{-1, 1.0F}}}), ValueError);
}

TEST(LogProbabilities, AreThoseOfTheSoftmax) {
  const std::vector<float> logits{1.0F, 3.0F, -std::numeric_limits<float>::infinity(), 3.0F, 2.0F};
  const std::vector<double> p = softmax({1, 3, kOut, 3, 2});
  const TokenReport report = report_token(logits, 4, 3);
  EXPECT_EQ(report.drawn.id, 4);
  EXPECT_NEAR(report.drawn.log_probability, std::log(p[4]), 1e-12);
  ASSERT_EQ(report.top.size(), 3U);
  EXPECT_EQ(report.top[0].id, 1);
  EXPECT_EQ(report.top[1].id, 3);
  EXPECT_NEAR(report.top[2].log_probability, std::log(p[4]), 1e-12);
  EXPECT_EQ(report_token(logits, 2, 9).top.size(), 5U);
  EXPECT_EQ(report_token(logits, 2, 0).drawn.log_probability, kOut);
}

// However a text is divided into pieces, it ends where the reference, which sees it byte by byte, ends it.
TEST(StopText, EndsWhereTheFirstStopStringIsComplete) {
  std::mt19937 random(5);
  const std::vector<std::string> stops{"ab", "abab", "b\xC3\xA9", "ccc", "", "\n\n"};
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i)
      text += std::vector<std::string>{"a", "b", "c", "\xC3\xA9", "\n"}[random() % 5];
    std::string expected = text;
    for (std::size_t end = 1; end <= text.size() && expected == text; ++end) {
      std::size_t longest = 0;
      for (const std::string& stop : stops)
        if (!stop.empty() && std::string_view(text).substr(0, end).ends_with(stop))
          longest = std::max(longest, stop.size());
      if (longest > 0) expected = text.substr(0, end - longest) + "|";
    }
    StopText stop(stops);
    std::string shown;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = 1 + random() % 4;
      shown += stop.push(std::string_view(text).substr(at, size));
      at += size;
      const std::string so_far = shown;
      EXPECT_TRUE(expected.starts_with(so_far)) << text;
    }
    shown += stop.finish();
    EXPECT_EQ(stop.stopped() ? shown + "|" : shown, expected) << text;
  }
}

TEST(StopText, ShowsAtOnceWhatCannotBeAStop) {
  StopText stop({"<end>"});
  EXPECT_EQ(stop.push("a<en"), "a");
  EXPECT_EQ(stop.push("t<"), "<ent");
  EXPECT_EQ(stop.push("end>more"), "");
  EXPECT_EQ(stop.found(), "<end>");
  EXPECT_EQ(stop.push("more"), "");
  EXPECT_EQ(stop.finish(), "");
}

}  // namespace
}  // namespace caldera
