// Drafts in batches: what they save, what is counted, and what becomes of their pages.
#include <gtest/gtest.h>

#include <stdexcept>

#include "engine/caldera.h"
#include "tests/lm/generate/decoding_roads.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

class BatchDrafts : public ::testing::TestWithParam<Device> {};

/// Requests of a batch, each with a drafter that knows all of its text but some tokens.
struct Drafted {
  std::vector<Ids> prompts, expected;
  std::vector<Told> told;

  Drafted(CausalLM& model, std::size_t requests, std::int64_t prompt, std::int64_t tokens) : told(requests) {
    for (std::size_t i = 0; i < requests; ++i) {
      prompts.push_back(random_ids(prompt + static_cast<std::int64_t>(i), i, 60));
      expected.push_back(alone(model, prompts[i], tokens));
    }
  }
  void submit_all(BatchGenerator& generator, std::size_t wrong, std::int64_t draft_tokens = 4) {
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      DecodingOptions options;
      options.max_tokens = std::ssize(expected[i]);
      options.draft_tokens = draft_tokens;
      if (wrong > 0) options.drafter = std::make_shared<KnowingDrafter>(prompts[i], expected[i], wrong);
      submit(generator, prompts[i], options, told[i]);
    }
  }
  void expect_texts() const {
    for (std::size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(told[i].ids, expected[i]) << i;
  }
};

TEST_P(BatchDrafts, SaveStepsAndAreCounted) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  Llama model(batch_config(), GetParam(), 3);
  const auto steps = [&](std::size_t wrong, std::int64_t draft_tokens) {
    Drafted drafted(model, 5, 9, 40);
    BatchGenerator generator(model, {.max_batch = 5});
    drafted.submit_all(generator, wrong, draft_tokens);
    int count = 1;
    while (generator.step()) ++count;
    drafted.expect_texts();
    const BatchStatus status = generator.status();
    std::uint64_t all_drafted = 0, all_accepted = 0;
    for (const Told& one : drafted.told) {
      all_drafted += static_cast<std::uint64_t>(one.drafted);
      all_accepted += static_cast<std::uint64_t>(one.accepted);
    }
    EXPECT_EQ(status.drafted_tokens, all_drafted);
    EXPECT_EQ(status.accepted_tokens, all_accepted);
    EXPECT_EQ(status.generated_tokens, 5U * 40U);
    EXPECT_EQ(status.recomputed_tokens, 0U);
    EXPECT_EQ(status.pages_in_use, 0);
    if (wrong == 0) {
      EXPECT_EQ(status.drafted_tokens, 0U);
    } else if (wrong > 1000) {
      EXPECT_EQ(all_accepted, all_drafted) << "the length was known: nothing is guessed beyond it";
    } else {
      EXPECT_GT(all_accepted, 0U);
      EXPECT_LT(all_accepted, all_drafted);
    }
    return count;
  };
  const int plain = steps(0, 4);
  EXPECT_EQ(plain, 40);
  EXPECT_EQ(steps(100000, 4), 8) << "five tokens a step";
  EXPECT_LT(steps(7, 4), plain / 2);
  EXPECT_LT(steps(100000, 13), plain / 5);
}

TEST_P(BatchDrafts, PagesOfWrongGuessesAreNotReused) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  Llama model(batch_config(), GetParam(), 3);
  BatchGenerator generator(model);
  Drafted drafted(model, 2, 20, 50);
  drafted.submit_all(generator, 3);
  generator.run();
  drafted.expect_texts();
  // Both go on from all that was said; 4 blocks of 16 are full.
  for (std::size_t i = 0; i < 2; ++i) {
    Ids longer = drafted.prompts[i];
    longer.insert(longer.end(), drafted.expected[i].begin(), drafted.expected[i].end());
    Answer answer;
    generator.submit(asking(longer, 12, answer));
    generator.run();
    EXPECT_EQ(answer.last.reused_tokens, 64);
    EXPECT_EQ(answer.ids, alone(model, longer, 12));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchDrafts, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(BatchDraftsLives, TextsAreTheSameWherePagesRunShort) {
  Llama model(batch_config(), Device::cpu(), 3);
  constexpr std::int64_t kFewPositions = 192;  // four texts of up to 120 positions: some have to go
  for (const std::size_t wrong : {0U, 4U, 100000U}) {
    Drafted drafted(model, 8, 37, 80);
    BatchGenerator generator(model, {.max_batch = 4, .max_context = 128, .cache_positions = kFewPositions});
    drafted.submit_all(generator, wrong, 20);
    generator.run();
    drafted.expect_texts();
    const BatchStatus status = generator.status();
    EXPECT_GT(status.preempted, 0U) << wrong;
    EXPECT_GT(status.recomputed_tokens, 0U) << wrong;
    EXPECT_EQ(status.accepted_tokens > 0, wrong > 0);
    EXPECT_EQ(status.pages_in_use, 0);
  }
}

TEST(BatchDraftsLives, ACacheOfOneTextIsEnough) {
  Llama model(batch_config(), Device::cpu(), 3);
  Drafted drafted(model, 3, 20, 40);
  BatchGenerator generator(model,
                           {.max_batch = 3, .max_context = 64, .cache_positions = 64, .prefill_chunk = 8});
  drafted.submit_all(generator, 6, 64);
  generator.run();
  drafted.expect_texts();
}

class ThrowingDrafter final : public Drafter {
 public:
  TokenDraft propose(const SamplingContext& text, std::int64_t /*count*/) override {
    if (text.seen.size() - text.prompt_size > 3) throw std::runtime_error("out of ideas");
    return {};
  }
};

/// Guesses more than it is asked for, and tokens that no model has.
class WildDrafter final : public Drafter {
 public:
  TokenDraft propose(const SamplingContext& text, std::int64_t /*count*/) override {
    const std::int32_t last = text.seen.back();
    return {.ids = {last, 2, text.seen.size() % 2 == 0 ? 61 : -1, 3, 1, 2, 3}, .drawn_from = {}};
  }
};

TEST(BatchDraftsLives, ADrafterEndsItsOwnRequestAlone) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model);
  const Ids prompt = random_ids(9, 1, 60);
  std::vector<Answer> answers(3);
  const std::vector<std::shared_ptr<Drafter>> drafters{std::make_shared<WildDrafter>(),
                                                       std::make_shared<ThrowingDrafter>(), nullptr};
  for (std::size_t i = 0; i < 3; ++i) {
    GenerateRequest request = asking(prompt, 20, answers[i]);
    request.drafter = drafters[i];
    generator.submit(std::move(request));
  }
  generator.run();
  const Ids expected = alone(model, prompt, 20);
  EXPECT_EQ(answers[0].ids, expected);
  EXPECT_EQ(answers[2].ids, expected);
  EXPECT_EQ(answers[1].last.finish, FinishReason::failed);
  EXPECT_EQ(answers[1].last.error, "out of ideas");
  EXPECT_EQ(answers[1].ends, 1);
  EXPECT_EQ(answers[1].ids, Ids(expected.begin(), expected.begin() + 4));
  EXPECT_EQ(generator.status().pages_in_use, 0);
}

}  // namespace
}  // namespace caldera::testing
