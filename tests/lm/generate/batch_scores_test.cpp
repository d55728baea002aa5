// Log-probabilities of a prompt's own tokens, in a batch.
#include <gtest/gtest.h>

#include "lm/generate/sampling/log_probabilities.h"
#include "tests/lm/generate/batch_requests.h"

namespace caldera::testing {
namespace {

struct Scores {
  Answer answer;
  std::vector<TokenReport> reports;
};

GenerateRequest scoring(const Ids& prompt, std::int64_t tokens, Scores& scores) {
  GenerateRequest request = asking(prompt, tokens, scores.answer);
  request.prompt_logprobs = 2;
  request.on_event = [&scores, rest = request.on_event](const TokenEvent& event) {
    scores.reports.insert(scores.reports.end(), event.prompt_reports.begin(), event.prompt_reports.end());
    return rest(event);
  };
  return request;
}

TEST(BatchScores, PromptsAreScoredAsTheyAreWhenTheyAreFedAlone) {
  Llama model(batch_config(), Device::cpu(), 3);
  const std::vector<std::int64_t> sizes{1, 2, 9, 70, 131, 40};
  // Few pages: some have to give theirs up, and are scored once all the same.
  BatchGenerator generator(model, {.max_batch = 4, .cache_positions = 256, .prefill_chunk = 32});
  std::vector<Scores> scores(2 * sizes.size());
  for (std::size_t round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < sizes.size(); ++i)
      generator.submit(
          scoring(random_ids(sizes[i], i), round == 0 ? 0 : 30, scores[round * sizes.size() + i]));
  Answer other;  // that asks for nothing of the kind, and whose beginning is known
  generator.submit(asking(random_ids(131, 4), 5, other));
  generator.run();
  EXPECT_EQ(other.ids, alone(model, random_ids(131, 4), 5));
  for (std::size_t n = 0; n < scores.size(); ++n) {
    const Ids prompt = random_ids(sizes[n % sizes.size()], n % sizes.size());
    std::vector<TokenReport> expected;
    GenerateOptions options;
    options.max_tokens = 1;
    std::size_t at = 0;
    options.on_logits = [&](std::span<const float> logits) {
      if (++at < prompt.size()) expected.push_back(report_token(logits, prompt[at], 2));
    };
    generate(model, prompt, options);
    const Scores& found = scores[n];
    ASSERT_EQ(found.reports.size(), prompt.size() - 1) << n;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found.reports[i].drawn.id, prompt[i + 1]);
      EXPECT_NEAR(found.reports[i].drawn.log_probability, expected[i].drawn.log_probability, 1e-3);
      ASSERT_EQ(found.reports[i].top.size(), 2U);
      EXPECT_NEAR(found.reports[i].top[0].log_probability, expected[i].top[0].log_probability, 1e-3);
    }
    EXPECT_EQ(found.answer.last.finish, FinishReason::length);
    EXPECT_EQ(found.answer.ends, 1);
    EXPECT_EQ(found.answer.ids, n < sizes.size() ? Ids{} : alone(model, prompt, 30));
  }
  EXPECT_EQ(generator.status().pages_in_use, 0);
  Scores wrong;
  GenerateRequest request = scoring(random_ids(3, 1), 1, wrong);
  request.prompt_logprobs = -1;
  EXPECT_THROW(generator.submit(std::move(request)), ValueError);
}

/// Rows of many logits are drawn by several threads: whichever draws, a seed's tokens are the same.
TEST(BatchScores, LongRowsAreDrawnSideBySide) {
  Llama model(tiny_llama({.hidden = 16, .vocabulary = 70000, .positions = 64, .initializer_range = 0.4}),
              Device::cpu(), 3);
  std::vector<std::vector<Answer>> runs(3, std::vector<Answer>(9));
  for (std::vector<Answer>& answers : runs) {
    BatchGenerator generator(model, {.max_batch = 9});
    for (std::size_t i = 0; i < answers.size(); ++i) {
      GenerateRequest request = asking(random_ids(3 + static_cast<std::int64_t>(i % 3), i), 6, answers[i]);
      request.sampling.temperature = i == 4 ? 0 : 1;
      request.sampling.top_p = 0.9;
      request.sampling.seed = i;
      if (i % 2 == 0) request.logprobs = 1;
      if (i == 7) request.sampling.logit_bias = {{5, 50.0F}};
      generator.submit(std::move(request));
    }
    generator.run();
  }
  for (std::size_t i = 0; i < runs[0].size(); ++i) {
    EXPECT_EQ(runs[0][i].ids, runs[1][i].ids) << i;
    EXPECT_EQ(runs[0][i].ids, runs[2][i].ids) << i;
    EXPECT_EQ(runs[0][i].logprobs, runs[2][i].logprobs) << i;
    EXPECT_EQ(runs[0][i].logprobs.size(), i % 2 == 0 ? 6U : 0U);
    EXPECT_EQ(runs[0][i].last.finish, FinishReason::length);
  }
  EXPECT_EQ(runs[0][4].ids, alone(model, random_ids(4, 4), 6));
  EXPECT_EQ(runs[0][7].ids, Ids(6, 5));
}

}  // namespace
}  // namespace caldera::testing
