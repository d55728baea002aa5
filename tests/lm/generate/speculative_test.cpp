#include "lm/generate/speculative.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lm/generate/generator.h"
#include "lm/generate/model_drafter.h"
#include "lm/models/llama.h"
#include "tests/support/tiny_llama.h"

namespace caldera {
namespace {

ModelConfig config_with_layers(std::int64_t layers) {
  return testing::tiny_llama({.layers = layers,
                              .heads = 2,
                              .kv_heads = 1,
                              .vocabulary = 7,
                              .positions = 96,
                              .tied = false,
                              .initializer_range = 0.5});
}

/// Guesses what it is told to, drawn from nothing.
class FixedDrafter final : public Drafter {
 public:
  explicit FixedDrafter(std::vector<std::int32_t> guess) : guess_(std::move(guess)) {}
  TokenDraft propose(const SamplingContext& /*text*/, std::int64_t count) override {
    TokenDraft draft;
    draft.ids.assign(guess_.begin(), guess_.begin() + std::min<std::ptrdiff_t>(count, std::ssize(guess_)));
    return draft;
  }

 private:
  std::vector<std::int32_t> guess_;
};

const std::vector<std::int32_t> kPrompt{3, 1, 4, 1, 5};

TEST(Speculative, GreedyTokensAreTheSame) {
  Llama model(config_with_layers(2), Device::cpu(), 7);
  Llama small(config_with_layers(1), Device::cpu(), 9);
  for (const std::int64_t tokens : {1, 2, 40, 200}) {  // the last runs out of positions
    GenerateOptions options;
    options.max_tokens = tokens;
    const Generation plain = generate(model, kPrompt, options);
    const std::vector<std::shared_ptr<Drafter>> drafters{
        std::make_shared<LookupDrafter>(), std::make_shared<ModelDrafter>(small, options.sampling),
        std::make_shared<ModelDrafter>(model, options.sampling),
        std::make_shared<FixedDrafter>(std::vector<std::int32_t>{6, 6, 6, 6})};
    for (std::size_t i = 0; i < drafters.size(); ++i) {
      options.drafter = drafters[i];
      for (const std::int64_t count : {1, 4}) {
        options.draft_tokens = count;
        std::size_t rows = 0;
        options.on_logits = i == 1 ? Feeder::LogitsReceiver([&](std::span<const float>) { ++rows; })
                                   : Feeder::LogitsReceiver();
        const Generation drafted = generate(model, kPrompt, options);
        EXPECT_EQ(drafted.ids, plain.ids) << tokens << ", drafter " << i;
        EXPECT_EQ(drafted.finish_reason, plain.finish_reason);
        if (i == 1) {
          EXPECT_EQ(rows, kPrompt.size() + plain.ids.size() - 1);
        }
        if (i == 2) {
          EXPECT_EQ(drafted.accepted_tokens, drafted.drafted_tokens) << "a model agrees with itself";
        }
        if (tokens == 40) {
          EXPECT_GT(drafted.drafted_tokens, 0);
        }
      }
    }
  }
}

TEST(Speculative, AModelAgreesWithItselfAlsoWithPenalties) {
  Llama model(config_with_layers(2), Device::cpu(), 7);
  GenerateOptions options;
  options.max_tokens = 40;
  // The prompt is not counted by these two: the drafter has to know where it ends.
  options.sampling = {.presence_penalty = 1.5, .frequency_penalty = 0.7};
  const Generation plain = generate(model, kPrompt, options);
  options.drafter = std::make_shared<ModelDrafter>(model, options.sampling);
  const Generation drafted = generate(model, kPrompt, options);
  EXPECT_EQ(drafted.ids, plain.ids);
  EXPECT_EQ(drafted.accepted_tokens, drafted.drafted_tokens);
}

/// The draft has fewer positions, or fewer tokens, than the model: it has nothing to say any more then.
TEST(Speculative, DraftsEndWhereTheSmallerModelEnds) {
  Llama model(config_with_layers(2), Device::cpu(), 7);
  ModelConfig narrow = config_with_layers(1);
  narrow.max_position_embeddings = 20;
  Llama few_positions(narrow, Device::cpu(), 9);
  narrow = config_with_layers(1);
  narrow.vocab_size = 4;
  Llama few_tokens(narrow, Device::cpu(), 9);
  std::vector<std::int32_t> long_prompt;
  for (std::int32_t i = 0; i < 30; ++i) long_prompt.push_back(i * i % 7);
  for (const std::vector<std::int32_t>* prompt : {&kPrompt, &std::as_const(long_prompt)}) {
    GenerateOptions options;
    options.max_tokens = 40;
    const std::vector<std::int32_t> plain = generate(model, *prompt, options).ids;
    for (Llama* small : {&few_positions, &few_tokens}) {
      options.drafter = std::make_shared<ModelDrafter>(*small, options.sampling);
      // Twice, and another text between them: what the drafter has fed is rolled back.
      EXPECT_EQ(generate(model, *prompt, options).ids, plain);
      generate(model, std::vector<std::int32_t>{3, 1, 2, 2, 1}, options);
      EXPECT_EQ(generate(model, *prompt, options).ids, plain);
    }
  }
}

TEST(Speculative, StopsWhereThePlainTextStops) {
  Llama model(config_with_layers(2), Device::cpu(), 7);
  GenerateOptions options;
  options.max_tokens = 30;
  options.sampling = {.temperature = 1, .seed = 3};
  options.stop_ids = {generate(model, kPrompt, options).ids[12]};
  options.drafter = std::make_shared<ModelDrafter>(model, options.sampling);
  const Generation drafted = generate(model, kPrompt, options);
  EXPECT_EQ(drafted.finish_reason, FinishReason::stop);
  EXPECT_EQ(drafted.ids.back(), options.stop_ids[0]);
  EXPECT_EQ(std::count(drafted.ids.begin(), drafted.ids.end(), options.stop_ids[0]), 1);
}

/// Pearson's statistic of two samples of equal size, over the pairs of the second and third token.
double chi_square(const std::map<std::int32_t, int>& a, const std::map<std::int32_t, int>& b, int& degrees) {
  double sum = 0;
  degrees = -1;
  for (std::int32_t pair = 0; pair < 49; ++pair) {
    const double x = a.count(pair) != 0 ? a.at(pair) : 0, y = b.count(pair) != 0 ? b.at(pair) : 0;
    if (x + y < 10) continue;  // too few to say anything of
    sum += (x - y) * (x - y) / (x + y);
    ++degrees;
  }
  return sum;
}

TEST(Speculative, DrawsFromTheSameDistribution) {
  Llama model(config_with_layers(1), Device::cpu(), 7);
  Llama small(config_with_layers(1), Device::cpu(), 9);
  const auto pairs = [&](int drafter) {
    std::map<std::int32_t, int> counts;
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
      GenerateOptions options;
      options.max_tokens = 3;
      // A penalty, so that what was drawn before has its part in it.
      options.sampling = {.temperature = 1.3,
                          .top_k = 6,
                          .repetition_penalty = 1.3,
                          .seed = seed + 5000 * static_cast<std::uint64_t>(drafter)};
      if (drafter == 1) options.drafter = std::make_shared<ModelDrafter>(small, options.sampling);
      if (drafter == 2) options.drafter = std::make_shared<FixedDrafter>(std::vector<std::int32_t>{2, 5});
      options.draft_tokens = 2;
      const Generation text = generate(model, kPrompt, options);
      ++counts[text.ids[1] * 7 + text.ids[2]];
    }
    return counts;
  };
  const auto plain = pairs(0);
  for (const int drafter : {1, 2}) {
    int degrees = 0;
    const double statistic = chi_square(plain, pairs(drafter), degrees);
    ASSERT_GT(degrees, 10);
    // Wilson and Hilferty 1931: the chance to exceed it is 1 in 10^5.
    const double k = degrees;
    const double cube = 1 - 2 / (9 * k) + 4.26 * std::sqrt(2 / (9 * k));
    EXPECT_LT(statistic, k * cube * cube * cube) << "drafter " << drafter << ", degrees " << degrees;
  }
}

TEST(Speculative, LookupFindsWhatFollowedTheLastTokens) {
  const std::vector<std::int32_t> seen{1, 2, 3, 9, 8, 1, 2, 3, 7, 7, 5, 2, 3};
  LookupDrafter drafter;
  const auto ids_after = [&](const std::vector<std::int32_t>& text) {
    return drafter.propose({.seen = text}, 3);
  };
  EXPECT_EQ(drafter.propose({.seen = seen}, 3).ids, (std::vector<std::int32_t>{7, 7, 5}))
      << "the latest place";
  EXPECT_EQ(drafter.propose({.seen = seen}, 1).ids, (std::vector<std::int32_t>{7}));
  EXPECT_TRUE(ids_after({1, 2, 3}).ids.empty());
  EXPECT_TRUE(ids_after({1}).ids.empty());
  EXPECT_EQ(ids_after({4, 4, 4}).ids, (std::vector<std::int32_t>{4}));
  EXPECT_THROW(LookupDrafter(1, 2), ValueError);
}

TEST(Speculative, WhatIsLeftOfADistribution) {
  const std::vector<TokenProbability> p{{1, 0.5}, {2, 0.3}, {3, 0.2}}, q{{2, 0.6}, {1, 0.4}};
  const auto left = residual(p, q);
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].id, 1);
  EXPECT_NEAR(left[0].probability, 0.1, 1e-12);
  EXPECT_EQ(left[1].id, 3);
  EXPECT_NEAR(left[1].probability, 0.2, 1e-12);
  EXPECT_EQ(residual(q, q).size(), 2U);
}

/// Guesses more tokens than it was asked for, also ones that the model does not have.
class WildDrafter final : public Drafter {
 public:
  TokenDraft propose(const SamplingContext& text, std::int64_t /*count*/) override {
    const std::span<const std::int32_t> seen = text.seen;
    const std::int32_t last = seen.back();
    return {.ids = {last, 2, seen.size() % 2 == 0 ? 7 : -1, 3, 1, 2, 3}, .drawn_from = {}};
  }
};

TEST(Speculative, GuessesThatTheModelDoesNotHaveAreRefused) {
  Llama model(config_with_layers(2), Device::cpu(), 7);
  GenerateOptions options;
  options.max_tokens = 30;
  const Generation plain = generate(model, kPrompt, options);
  options.drafter = std::make_shared<WildDrafter>();
  for (const std::int64_t count : {1, 3, 4}) {
    options.draft_tokens = count;
    EXPECT_EQ(generate(model, kPrompt, options).ids, plain.ids) << count;
  }
}

}  // namespace
}  // namespace caldera
