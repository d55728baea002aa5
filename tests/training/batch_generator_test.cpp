#include "training/generate/batch_generator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <vector>

#include "tests/support/devices.h"
#include "tests/support/test_data.h"
#include "training/generate/generator.h"
#include "training/models/causal_lm.h"
#include "training/models/llama.h"
#include "training/models/registry.h"

namespace caldera {
namespace {

using testing::device_test_name;
using testing::tested_devices;

using Ids = std::vector<std::int32_t>;

ModelConfig small_config() {
  ModelConfig config;
  config.hidden_size = 32;
  config.intermediate_size = 48;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 8;
  config.vocab_size = 61;
  config.max_position_embeddings = 256;
  config.initializer_range = 0.4;  // logits differ, so that an error shows
  return config;
}

Ids random_ids(std::int64_t count, std::uint64_t seed, std::int32_t vocabulary = 61) {
  Ids ids;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    ids.push_back(static_cast<std::int32_t>((seed >> 33) % static_cast<std::uint64_t>(vocabulary)));
  }
  return ids;
}

/// What a request gets from a generator.
struct Answer {
  Ids ids;
  std::vector<float> logprobs;
  TokenEvent last;
  int ends = 0;
};

GenerateRequest asking(Ids prompt, std::int64_t tokens, Answer& answer) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.on_event = [&answer](const TokenEvent& event) {
    if (event.id) answer.ids.push_back(*event.id);
    if (event.id) answer.logprobs.push_back(event.logprob);
    if (event.finish) ++answer.ends;
    answer.last = event;
    return true;
  };
  return request;
}

Ids alone(CausalLM& model, const Ids& prompt, std::int64_t tokens) {
  GenerateOptions options;
  options.max_tokens = tokens;
  return generate(model, prompt, options).ids;
}

class BatchGeneratorTest : public ::testing::TestWithParam<Device> {};

TEST_P(BatchGeneratorTest, EveryRequestGetsWhatItGetsAlone) {
  Llama model(small_config(), GetParam(), 3);
  const std::vector<std::int64_t> prompts{1, 7, 70, 33, 16, 2, 100};
  const std::vector<std::int64_t> tokens{20, 9, 30, 40, 1, 50, 12};
  BatchGenerator generator(model, {.max_batch = 4, .prefill_chunk = 64});
  std::vector<Answer> answers(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    generator.submit(asking(random_ids(prompts[i], i), tokens[i], answers[i]));
    if (i > 2) generator.step();  // the later ones join a batch that runs
  }
  generator.run();
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(answers[i].ids, alone(model, random_ids(prompts[i], i), tokens[i])) << i;
    EXPECT_EQ(answers[i].ends, 1) << i;
    EXPECT_EQ(answers[i].last.finish, FinishReason::length) << i;
    EXPECT_EQ(answers[i].last.prompt_tokens, prompts[i]);
    EXPECT_EQ(answers[i].last.generated_tokens, tokens[i]);
  }
  const BatchStatus status = generator.status();
  EXPECT_EQ(status.running, 0);
  EXPECT_EQ(status.pages_in_use, 0);
  EXPECT_EQ(status.finished, prompts.size());
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchGeneratorTest, ::testing::ValuesIn(tested_devices()),
                         device_test_name);

}  // namespace
}  // namespace caldera
