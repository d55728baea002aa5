// Batches over a paged cache with models of every form of attention: windows, soft caps, sinks, angles by
// layer, learned positions, experts.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

#include "engine/caldera.h"
#include "lm/generate/batch/batch_generator.h"
#include "lm/generate/generator.h"
#include "lm/nn/attention/rope_frequencies.h"
#include "tests/lm/families/golden_model.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

class BatchFamilies : public ::testing::TestWithParam<std::tuple<const char*, Device>> {};

TEST_P(BatchFamilies, EveryTextGetsWhatItGetsAlone) {
  const auto& [folder, device] = GetParam();
  CALDERA_REQUIRE_DEVICE(device);
  GoldenModel golden(folder, device);
  CausalLM& model = golden.model();
  model.set_training(false);
  const std::vector<std::int32_t> ids = golden.tokens("ids");
  const auto positions = std::min<std::int64_t>(model.config().max_positions(), 60);
  struct Text {
    std::vector<std::int32_t> all;
    std::vector<float> logprobs;
    std::size_t prompt = 0;
  };
  std::vector<Text> texts;
  for (const std::size_t length : {5, 1, 14}) {
    Text text;
    text.prompt = length;
    for (std::size_t i = 0; i < length; ++i) text.all.push_back(ids[(i + length) % ids.size()]);
    texts.push_back(text);
  }
  // Pieces and pages are smaller than the texts; windows are left behind.
  BatchGenerator generator(model, {.max_batch = 2, .prefill_chunk = 6});
  for (Text& text : texts) {
    GenerateRequest request;
    request.prompt = text.all;
    request.max_tokens = positions - static_cast<std::int64_t>(text.prompt);
    request.logprobs = 0;
    // One of them with drafts, beside those without.
    if (text.prompt == 14) request.drafter = std::make_shared<LookupDrafter>(2);
    request.on_event = [&text](const TokenEvent& event) {
      EXPECT_EQ(event.error, "");
      if (event.id) text.all.push_back(*event.id);
      if (event.report) text.logprobs.push_back(static_cast<float>(event.report->drawn.log_probability));
      return true;
    };
    generator.submit(std::move(request));
  }
  generator.run();
  const auto vocabulary = static_cast<std::size_t>(model.config().vocab_size);
  for (const Text& text : texts) {
    ASSERT_EQ(std::ssize(text.all), positions);
    GenerateOptions options;
    options.max_tokens = std::ssize(text.logprobs);
    const std::span<const std::int32_t> prompt(text.all.data(), text.prompt);
    const std::vector<std::int32_t> alone = generate(model, prompt, options).ids;
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), text.all.begin() + std::ssize(prompt)));
    // By one pass over everything, without a cache; or over what there was, where that makes a difference.
    const auto pass = [&](std::size_t tokens) {
      const std::span<const std::int32_t> known(text.all.data(), tokens);
      return log_softmax(model(model.make_ids(known)), -1).to_vector<float>();
    };
    const bool by_length = depends_on_length(model.config().rope_scaling);
    std::vector<float> expected = pass(text.all.size());
    for (std::size_t t = 0; t < text.logprobs.size(); ++t) {
      const std::size_t at = text.prompt - 1 + t;
      if (by_length) expected = pass(at + 1);
      EXPECT_NEAR(text.logprobs[t], expected[at * vocabulary + static_cast<std::size_t>(text.all[at + 1])],
                  2e-5)
          << text.prompt << " tokens, " << t;
    }
  }
}

std::string batch_families_name(const ::testing::TestParamInfo<std::tuple<const char*, Device>>& info) {
  std::string name = std::get<0>(info.param);
  std::ranges::replace(name, '-', '_');
  return name + "_" + device_test_name({std::get<1>(info.param), 0});
}

INSTANTIATE_TEST_SUITE_P(
    Models, BatchFamilies,
    ::testing::Combine(::testing::Values("gemma2", "gemma3", "gpt-oss", "mistral", "ministral3", "smollm3",
                                         "olmo2", "granite", "gpt2", "qwen3", "qwen3-sliding", "qwen3-moe",
                                         "olmo3", "qwen2-tied", "phi3-long", "llama-yarn", "llama-llama3"),
                       ::testing::Values(Device::cpu())),
    batch_families_name);
INSTANTIATE_TEST_SUITE_P(Vulkan, BatchFamilies,
                         ::testing::Combine(::testing::Values("gemma2", "gpt-oss"),
                                            ::testing::Values(Device::vulkan())),
                         batch_families_name);

}  // namespace
}  // namespace caldera::testing
