// What tests of batches share: a small model, requests, and what comes back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "lm/generate/batch/batch_generator.h"
#include "lm/generate/generator.h"
#include "lm/models/llama.h"
#include "tests/support/tiny_llama.h"

namespace caldera::testing {

using Ids = std::vector<std::int32_t>;

/// Two layers, 61 tokens, 256 positions; logits differ much, so that an error shows.
inline ModelConfig batch_config() {
  return testing::tiny_llama(
      {.hidden = 32, .vocabulary = 61, .positions = 256, .tied = false, .initializer_range = 0.4});
}

inline Ids random_ids(std::int64_t count, std::uint64_t seed, std::int32_t vocabulary = 61) {
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
  std::vector<double> logprobs;
  TokenEvent last;
  int ends = 0;
};

inline GenerateRequest asking(Ids prompt, std::int64_t tokens, Answer& answer) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.on_event = [&answer](const TokenEvent& event) {
    if (event.id) answer.ids.push_back(*event.id);
    if (event.report) answer.logprobs.push_back(event.report->drawn.log_probability);
    if (event.finish) ++answer.ends;
    answer.last = event;
    return true;
  };
  return request;
}

/// The greedy tokens of generate().
inline Ids alone(CausalLM& model, const Ids& prompt, std::int64_t tokens) {
  GenerateOptions options;
  options.max_tokens = tokens;
  return generate(model, prompt, options).ids;
}

/// A prompt whose greedy text has no token 60 in it: for tests in which that one makes calls fail.
inline Ids healthy_prompt(CausalLM& model, std::int64_t tokens) {
  for (std::uint64_t seed = 0;; ++seed) {
    Ids prompt = random_ids(7, seed, 60);
    const Ids ids = alone(model, prompt, tokens);
    if (std::find(ids.begin(), ids.end(), 60) == ids.end()) return prompt;
  }
}

}  // namespace caldera::testing
