// What a batch generator does when something fails: requests keep their faults to themselves.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "engine/caldera.h"
#include "training/generate/batch_generator.h"
#include "training/generate/generator.h"
#include "training/models/llama.h"

namespace caldera {
namespace {

using Tokens = std::vector<std::int32_t>;

ModelConfig tiny_config() {
  ModelConfig config;
  config.hidden_size = 16;
  config.intermediate_size = 24;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 8;
  config.vocab_size = 31;
  config.max_position_embeddings = 128;
  config.initializer_range = 0.4;
  return config;
}

struct Outcome {
  Tokens ids;
  TokenEvent last;
  int ends = 0;
};

GenerateRequest request_for(Tokens prompt, std::int64_t tokens, Outcome& outcome) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.on_event = [&outcome](const TokenEvent& event) {
    if (event.id) outcome.ids.push_back(*event.id);
    if (event.finish) ++outcome.ends;
    outcome.last = event;
    return true;
  };
  return request;
}

Tokens by_itself(CausalLM& model, const Tokens& prompt, std::int64_t tokens) {
  GenerateOptions options;
  options.max_tokens = tokens;
  return generate(model, prompt, options).ids;
}

TEST(BatchFaults, NaNOfOneTextStaysThere) {
  Llama model(tiny_config(), Device::cpu(), 3);
  // Token 30 is what overflows.
  for (const Parameter& p : model.parameters()) {
    if (p.name.find("embed_tokens") == std::string::npos) continue;
    std::vector<float> values = p.tensor->to_vector<float>();
    for (std::size_t i = values.size() - 16; i < values.size(); ++i)
      values[i] = std::numeric_limits<float>::quiet_NaN();
    *p.tensor = LazyTensor::from_vector(values, p.tensor->shape());
  }
  const Tokens healthy{1, 2, 3, 4, 5};
  for (const bool together : {true, false}) {
    BatchGenerator generator(model, {.max_batch = 2, .cache_positions = 64});
    Outcome bad, good;
    generator.submit(request_for(Tokens(20, 30), 5, bad));
    if (!together) generator.run();
    generator.submit(request_for(healthy, 40, good));
    generator.run();
    EXPECT_EQ(bad.last.finish, FinishReason::failed);
    EXPECT_EQ(good.last.finish, FinishReason::length) << good.last.error;
    EXPECT_EQ(good.ids.size(), 40U) << together;
  }
}

TEST(BatchFaults, ReceiversThrowWhatTheyLike) {
  Llama model(tiny_config(), Device::cpu(), 3);
  BatchGenerator generator(model);
  Outcome other;
  GenerateRequest throws = request_for({1, 2}, 9, other);
  throws.on_event = [](const TokenEvent&) -> bool { throw 7; };
  generator.submit(throws);
  generator.submit(request_for({3, 4}, 9, other));
  EXPECT_NO_THROW(generator.run());
  EXPECT_EQ(other.ids, by_itself(model, {3, 4}, 9));
  EXPECT_EQ(generator.status().pages_in_use, 0);
}

TEST(BatchFaults, AnyQueueIsLongEnough) {
  Llama model(tiny_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.max_queue = std::numeric_limits<std::int64_t>::max()});
  Outcome outcome;
  generator.submit(request_for({1, 2}, 3, outcome));
  generator.run();
  EXPECT_EQ(outcome.ids.size(), 3U);
}

TEST(BatchFaults, ForgottenPrefixesAreComputedAgain) {
  Llama model(tiny_config(), Device::cpu(), 3);
  BatchGenerator generator(model);
  const Tokens prompt(40, 5);
  Outcome first, again, changed;
  for (Outcome* outcome : {&first, &again}) {
    generator.submit(request_for(prompt, 6, *outcome));
    generator.run();
  }
  EXPECT_EQ(again.last.reused_tokens, 32);
  for (const Parameter& p : model.parameters()) *p.tensor = *p.tensor * 1.5;
  model.materialize();
  generator.forget_prefixes();
  generator.submit(request_for(prompt, 6, changed));
  generator.run();
  EXPECT_EQ(changed.last.reused_tokens, 0);
  EXPECT_EQ(changed.ids, by_itself(model, prompt, 6));
}

TEST(BatchFaults, PromptsKeepToTheBudgetOfAStep) {
  Llama model(tiny_config(), Device::cpu(), 3);
  BatchGenerator generator(model, {.max_batch = 3, .prefill_chunk = 64});
  std::vector<Outcome> outcomes(3);
  for (std::size_t i = 0; i < 3; ++i)
    generator.submit(request_for(Tokens(50, static_cast<std::int32_t>(i)), 2, outcomes[i]));
  generator.step();
  EXPECT_EQ(generator.status().prompt_tokens, 64U);
  generator.run();
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(outcomes[i].ids, by_itself(model, Tokens(50, static_cast<std::int32_t>(i)), 2));
}

}  // namespace
}  // namespace caldera
