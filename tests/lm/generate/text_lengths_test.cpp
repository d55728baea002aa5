// Continued texts of models whose rotary frequencies depend on the length of the text: one by one, in a
// batch, with drafts, in pieces, on both sides of the length from which they change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "engine/caldera.h"
#include "lm/generate/model_drafter.h"
#include "tests/lm/generate/batch_requests.h"
#include "tests/lm/models/reference_llama.h"

namespace caldera::testing {
namespace {

constexpr std::int64_t kOriginal = 24;
constexpr double kTheta = 50, kFactor = 6;

ModelConfig dynamic_config() {
  ModelConfig config = batch_config();
  config.rope_theta = kTheta;
  config.max_position_embeddings = kOriginal;
  config.rope_scaling.type = RopeType::dynamic;
  config.rope_scaling.factor = kFactor;
  return config;
}

ModelConfig long_config() {
  ModelConfig config = batch_config();
  config.rope_theta = kTheta;
  config.max_position_embeddings = 144;
  config.rope_scaling.type = RopeType::longrope;
  config.rope_scaling.original_max_position_embeddings = kOriginal;
  config.rope_scaling.short_factor = {1, 1.2, 1.1, 1.5};
  config.rope_scaling.long_factor = {2.5, 1.7, 3, 6};
  return config;
}

/// The theta of type dynamic for a text of `length` tokens (bloc97 2023, "dynamic NTK").
double dynamic_theta(std::int64_t length, std::int64_t width) {
  const double growth =
      kFactor * static_cast<double>(std::max(length, kOriginal)) / kOriginal - (kFactor - 1);
  const auto d = static_cast<double>(width);
  return kTheta * std::pow(growth, d / (d - 2));
}

std::int32_t best(const Doubles& logits, std::int64_t vocabulary) {
  const auto row = logits.end() - vocabulary;
  return static_cast<std::int32_t>(std::max_element(row, logits.end()) - row);
}

/// What transformers' generate() says: a prompt is rotated for its own length, each token behind it as the
/// last one, and keys stay.
Ids dynamic_reference(Llama& model, Ids ids, std::int64_t tokens) {
  LlamaReference reference(model);
  const std::int64_t prompt = std::ssize(ids), width = model.config().head_dim;
  reference.theta_at = [&](std::int64_t position) {
    return dynamic_theta(std::max(prompt, position + 1), width);
  };
  for (std::int64_t i = 0; i < tokens; ++i)
    ids.push_back(best(reference.forward(ids, 1), model.config().vocab_size));
  return {ids.begin() + prompt, ids.end()};
}

/// With longrope, as Phi-3 does it: as if every token were drawn from a pass over the whole text.
Ids long_reference(CausalLM& model, Ids ids, std::int64_t tokens) {
  const std::int64_t prompt = std::ssize(ids);
  for (std::int64_t i = 0; i < tokens; ++i)
    ids.push_back(best(to_doubles(model(model.make_ids(ids))), model.config().vocab_size));
  return {ids.begin() + prompt, ids.end()};
}

struct Text {
  Ids prompt;
  std::int64_t tokens;
  Ids expected;
};

class TextLengths : public ::testing::TestWithParam<RopeType> {
 protected:
  bool is_long() const { return GetParam() == RopeType::longrope; }
  Llama make_model() const { return {is_long() ? long_config() : dynamic_config(), Device::cpu(), 3}; }
  Text text(Llama& model, std::int64_t prompt, std::int64_t tokens, std::uint64_t seed = 0) const {
    Text text{random_ids(prompt, seed + static_cast<std::uint64_t>(prompt)), tokens, {}};
    text.expected = is_long() ? long_reference(model, text.prompt, tokens)
                              : dynamic_reference(model, text.prompt, tokens);
    return text;
  }
  /// Short, on both sides of the boundary, in several pieces.
  std::vector<Text> texts(Llama& model) const {
    std::vector<Text> all;
    for (const std::int64_t prompt : {1, 10, 23, 24, 25, 40, 83})
      all.push_back(text(model, prompt, prompt < 20 ? 30 : 12));
    return all;
  }
};

TEST_P(TextLengths, OneByOne) {
  Llama model = make_model();
  for (const Text& text : texts(model)) {
    EXPECT_EQ(alone(model, text.prompt, text.tokens), text.expected) << text.prompt.size();
    GenerateOptions options;  // logits on the host, each row once
    options.max_tokens = text.tokens;
    std::size_t rows = 0;
    options.on_logits = [&](std::span<const float>) { ++rows; };
    EXPECT_EQ(generate(model, text.prompt, options).ids, text.expected) << text.prompt.size();
    EXPECT_EQ(rows, text.prompt.size() + text.expected.size() - 1) << text.prompt.size();
  }
}

TEST_P(TextLengths, WithDrafts) {
  Llama model = make_model();
  for (const Text& text : texts(model)) {
    GenerateOptions options;
    options.max_tokens = text.tokens;
    const std::vector<std::shared_ptr<Drafter>> drafters{
        std::make_shared<LookupDrafter>(), std::make_shared<ModelDrafter>(model, options.sampling)};
    for (const auto& drafter : drafters) {
      options.drafter = drafter;
      EXPECT_EQ(generate(model, text.prompt, options).ids, text.expected) << text.prompt.size();
    }
  }
}

TEST_P(TextLengths, Together) {
  Llama model = make_model();
  const std::vector<Text> all = texts(model);
  for (const auto& [reuse, drafts] : {std::pair{true, false}, {false, false}, {true, true}}) {
    for (const std::int64_t positions : {0, 208}) {  // enough pages, and too few
      BatchGenerator generator(
          model,
          {.max_batch = 5, .cache_positions = positions, .prefill_chunk = 16, .reuse_prefixes = reuse});
      std::vector<Answer> answers(2 * all.size());
      for (std::size_t i = 0; i < answers.size(); ++i) {  // each twice: the second may find the first's pages
        const Text& text = all[i % all.size()];
        GenerateRequest request = asking(text.prompt, text.tokens, answers[i]);
        if (drafts) request.drafter = std::make_shared<LookupDrafter>();
        generator.submit(std::move(request));
      }
      generator.run();
      for (std::size_t i = 0; i < answers.size(); ++i)
        EXPECT_EQ(answers[i].ids, all[i % all.size()].expected)
            << all[i % all.size()].prompt.size() << ", " << positions << ", " << reuse;
      EXPECT_EQ(generator.status().pages_in_use, 0);
    }
  }
}

TEST_P(TextLengths, PagesOfOtherFrequenciesAreNotReused) {
  Llama model = make_model();
  const Ids longest = random_ids(100, 5);
  BatchGenerator generator(model);
  const auto ask = [&](std::int64_t tokens) {
    const Ids prompt(longest.begin(), longest.begin() + tokens);
    Answer answer;
    generator.submit(asking(prompt, 6, answer));
    generator.run();
    EXPECT_EQ(answer.ids, alone(model, prompt, 6)) << tokens;
    return answer.last.reused_tokens;
  };
  EXPECT_EQ(ask(100), 0);
  EXPECT_EQ(ask(100), 96);
  EXPECT_EQ(ask(90), is_long() ? 80 : 0);  // the length itself counts in type dynamic
  EXPECT_EQ(ask(20), 0);
  EXPECT_EQ(ask(24), 16);
  EXPECT_EQ(ask(25), is_long() ? 16 : 0);
}

INSTANTIATE_TEST_SUITE_P(Types, TextLengths, ::testing::Values(RopeType::dynamic, RopeType::longrope),
                         [](const auto& type) { return std::string(name(type.param)); });

}  // namespace
}  // namespace caldera::testing
