// Texts that go on where their context is full: what they forget, and that the rest is computed as a text of
// its own.
#include <gtest/gtest.h>

#include "engine/base/error.h"
#include "lm/generate/drafter.h"
#include "tests/lm/generate/batch_requests.h"

namespace caldera::testing {
namespace {

/// The greedy tokens of a text that forgets, of generate() alone: from its beginning for each token.
Ids shifted_alone(CausalLM& model, Ids text, std::int64_t context, std::int64_t kept, std::int64_t tokens) {
  Ids chosen;
  while (std::ssize(chosen) < tokens) {
    if (std::ssize(text) > context)
      text.erase(text.begin() + kept, text.begin() + kept + (std::ssize(text) - kept) / 2);
    chosen.push_back(alone(model, text, 1).at(0));
    text.push_back(chosen.back());
  }
  return chosen;
}

TEST(ContextShift, ATextGoesOnWithoutTheFirstHalfOfWhatIsNotKept) {
  Llama model(batch_config(), Device::cpu(), 3);
  constexpr std::int64_t kContext = 48;
  for (const std::int64_t kept : {0, 4, 24}) {
    BatchGenerator generator(model, {.max_batch = 3, .max_context = kContext, .prefill_chunk = 16});
    std::vector<Answer> answers(3);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      GenerateRequest request =
          asking(random_ids(20 + static_cast<std::int64_t>(i) * 14, i), 130, answers[i]);
      if (i < 2) request.shift_keeps = kept;
      if (i == 1) request.drafter = std::make_shared<LookupDrafter>();
      generator.submit(std::move(request));
    }
    generator.run();
    for (std::size_t i = 0; i < 2; ++i) {
      const Ids prompt = random_ids(20 + static_cast<std::int64_t>(i) * 14, i);
      EXPECT_EQ(answers[i].ids, shifted_alone(model, prompt, kContext, kept, 130)) << kept << " " << i;
      EXPECT_EQ(answers[i].last.generated_tokens, 130);
      EXPECT_EQ(answers[i].last.prompt_tokens, std::ssize(prompt));
      EXPECT_EQ(answers[i].ends, 1);
    }
    EXPECT_EQ(answers[2].ids.size(), 1U) << "one that does not ask for it ends";
    const BatchStatus status = generator.status();
    EXPECT_EQ(status.prompt_tokens + status.reused_tokens, 20U + 34U + 48U) << "each once";
    EXPECT_GT(status.shifted, 6U);
    EXPECT_GT(status.recomputed_tokens, 0U);
    EXPECT_EQ(status.pages_in_use, 0);
  }
}

TEST(ContextShift, PenaltiesCountWhatIsLeft) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.max_batch = 1, .max_context = 32});
  Answer answer;
  GenerateRequest request = asking(random_ids(10, 1), 100, answer);
  request.shift_keeps = 4;
  request.sampling.presence_penalty = 100;  // each token once, as long as it is remembered
  generator.submit(std::move(request));
  generator.run();
  ASSERT_EQ(answer.ids.size(), 100U);
  for (std::size_t i = 0; i + 12 < answer.ids.size(); ++i)
    for (std::size_t k = i + 1; k < i + 12; ++k) EXPECT_NE(answer.ids[i], answer.ids[k]) << i;
}

TEST(ContextShift, MoreThanAHalfIsNotKept) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.max_batch = 1, .max_context = 32});
  Answer answer;
  for (const std::int64_t wrong : {-1, 17}) {
    GenerateRequest request = asking({1, 2}, 5, answer);
    request.shift_keeps = wrong;
    EXPECT_THROW(generator.submit(std::move(request)), ValueError);
  }
}

}  // namespace
}  // namespace caldera::testing
