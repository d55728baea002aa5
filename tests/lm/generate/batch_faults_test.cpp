// What a batch generator does when something fails: requests keep their faults to themselves.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "engine/caldera.h"
#include "tests/lm/generate/batch_requests.h"

namespace caldera::testing {
namespace {

TEST(BatchFaults, NaNOfOneTextStaysThere) {
  Llama model(batch_config(), Device::cpu(), 3);
  const Ids healthy = healthy_prompt(model, 40);
  // Token 60, the last one, is what overflows.
  for (const Parameter& p : model.parameters()) {
    if (p.name.find("embed_tokens") == std::string::npos) continue;
    std::vector<float> values = p.tensor->to_vector<float>();
    for (std::size_t i = values.size() - 32; i < values.size(); ++i)
      values[i] = std::numeric_limits<float>::quiet_NaN();
    *p.tensor = LazyTensor::from_vector(values, p.tensor->shape());
  }
  for (const bool together : {true, false}) {
    BatchGenerator generator(model, {.max_batch = 2, .cache_positions = 64});
    Answer bad, good;
    generator.submit(asking(Ids(20, 60), 5, bad));
    if (!together) generator.run();
    generator.submit(asking(healthy, 40, good));
    generator.run();
    EXPECT_EQ(bad.last.finish, FinishReason::failed);
    EXPECT_EQ(good.last.finish, FinishReason::length) << good.last.error;
    EXPECT_EQ(good.ids.size(), 40U) << together;
  }
}

TEST(BatchFaults, ReceiversThrowWhatTheyLike) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model);
  Answer other;
  GenerateRequest throws = asking({1, 2}, 9, other);
  throws.on_event = [](const TokenEvent&) -> bool { throw 7; };
  generator.submit(throws);
  generator.submit(asking({3, 4}, 9, other));
  EXPECT_NO_THROW(generator.run());
  EXPECT_EQ(other.ids, alone(model, {3, 4}, 9));
  EXPECT_EQ(generator.status().pages_in_use, 0);
}

TEST(BatchFaults, AnyQueueIsLongEnough) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.max_queue = std::numeric_limits<std::int64_t>::max()});
  Answer outcome;
  generator.submit(asking({1, 2}, 3, outcome));
  generator.run();
  EXPECT_EQ(outcome.ids.size(), 3U);
}

TEST(BatchFaults, ForgottenPrefixesAreComputedAgain) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model);
  const Ids prompt(40, 5);
  Answer first, again, changed;
  for (Answer* outcome : {&first, &again}) {
    generator.submit(asking(prompt, 6, *outcome));
    generator.run();
  }
  EXPECT_EQ(again.last.reused_tokens, 32);
  for (const Parameter& p : model.parameters()) *p.tensor = *p.tensor * 1.5;
  model.materialize();
  generator.forget_prefixes();
  generator.submit(asking(prompt, 6, changed));
  generator.run();
  EXPECT_EQ(changed.last.reused_tokens, 0);
  EXPECT_EQ(changed.ids, alone(model, prompt, 6));
}

TEST(BatchFaults, PromptsKeepToTheBudgetOfAStep) {
  Llama model(batch_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.max_batch = 3, .prefill_chunk = 64});
  std::vector<Answer> outcomes(3);
  for (std::size_t i = 0; i < 3; ++i)
    generator.submit(asking(Ids(50, static_cast<std::int32_t>(i)), 2, outcomes[i]));
  generator.step();
  EXPECT_EQ(generator.status().prompt_tokens, 64U);
  generator.run();
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(outcomes[i].ids, alone(model, Ids(50, static_cast<std::int32_t>(i)), 2));
}

}  // namespace
}  // namespace caldera::testing
