#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/runtime/runtime.h"
#include "lm/generate/generator.h"
#include "lm/models/llama.h"
#include "lm/tokenizers/sources/load_tokenizer.h"
#include "tests/support/devices.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_llama.h"

namespace caldera {
namespace {

ModelConfig tiny_config() {
  return testing::tiny_llama({.vocabulary = 33, .positions = 24, .tied = false, .initializer_range = 0.5});
}

using Rows = std::vector<std::vector<float>>;

TEST(Generate, DecodingWithACacheEqualsFeedingEverything) {
  Llama model(tiny_config(), Device::cpu(), 7);
  const std::vector<std::int32_t> prompt{3, 30, 8, 8, 1};
  Rows rows;
  GenerateOptions options;
  options.max_tokens = 9;
  options.on_logits = [&](std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); };
  const Generation result = generate(model, prompt, options);
  ASSERT_EQ(result.ids.size(), 9U);
  EXPECT_EQ(result.finish_reason, FinishReason::length);
  ASSERT_EQ(rows.size(), prompt.size() + 8) << "the last token drawn is not fed";

  std::vector<std::int32_t> all = prompt;
  all.insert(all.end(), result.ids.begin(), result.ids.end() - 1);
  const std::vector<float> expected = model.forward(model.make_ids(all)).to_vector<float>();
  for (std::size_t t = 0; t < rows.size(); ++t)
    for (std::size_t v = 0; v < 33; ++v)
      EXPECT_NEAR(rows[t][v], expected[t * 33 + v], 1e-4) << t << ", " << v;
  // Greedy: each token is the best of the row before it.
  for (std::size_t i = 0; i < result.ids.size(); ++i) {
    const auto& row = rows[prompt.size() - 1 + i];
    EXPECT_EQ(result.ids[i], std::max_element(row.begin(), row.end()) - row.begin());
  }
  // Without a receiver of logits the head sees one position only; the tokens are the same.
  options.on_logits = nullptr;
  EXPECT_EQ(generate(model, prompt, options).ids, result.ids);
}

TEST(Generate, TheCacheGrowsWithoutAChange) {
  ModelConfig config = tiny_config();
  config.max_position_embeddings = 1100;
  Llama model(config, Device::cpu(), 7);
  Rows rows;
  GenerateOptions options;
  options.max_tokens = 1050;  // past the first capacity, of 1024
  options.on_logits = [&](std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); };
  const std::vector<std::int32_t> prompt{3, 30, 8};
  const Generation result = generate(model, prompt, options);
  ASSERT_EQ(result.ids.size(), 1050U);
  std::vector<std::int32_t> all = prompt;
  all.insert(all.end(), result.ids.begin(), result.ids.end() - 1);
  const std::vector<float> expected = model.forward(model.make_ids(all)).to_vector<float>();
  ASSERT_EQ(rows.size(), all.size());
  for (std::size_t t = 0; t < rows.size(); ++t)
    for (std::size_t v = 0; v < 33; ++v)
      ASSERT_NEAR(rows[t][v], expected[t * 33 + v], 1e-4) << t << ", " << v;
}

TEST(Generate, PromptsOfAllLengthsHaveThreePlans) {
  ModelConfig config = tiny_config();
  config.max_position_embeddings = 700;
  Llama model(config, Device::cpu(), 7);
  std::vector<std::int32_t> all;
  all.reserve(600);
  for (std::int32_t i = 0; i < 600; ++i) all.push_back(i * i % 33);
  const std::vector<float> expected = model.forward(model.make_ids(all)).to_vector<float>();
  Rows rows;
  GenerateOptions options;
  options.max_tokens = 1;
  options.on_logits = [&](std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); };
  const std::uint64_t before = plan_cache_stats().misses;
  for (const std::size_t length : {1, 2, 7, 8, 9, 16, 17, 63, 64, 65, 130, 511, 512, 513, 575, 600}) {
    rows.clear();
    generate(model, std::span(all).first(length), options);
    ASSERT_EQ(rows.size(), length);
    for (std::size_t t = 0; t < length; ++t)
      for (std::size_t v = 0; v < 33; ++v) ASSERT_NEAR(rows[t][v], expected[t * 33 + v], 1e-4) << length;
  }
  // And one that fills a new cache with zeros.
  EXPECT_LE(plan_cache_stats().misses - before, 3U + 1U);
}

TEST(Generate, TheLimitCostsNothing) {
  ModelConfig config = tiny_config();
  config.max_position_embeddings = 1 << 20;
  Llama model(config, Device::cpu(), 7);
  GenerateOptions options;
  int seen = 0;
  options.on_token = [&](std::int32_t) { return ++seen < 3; };
  const std::uint64_t before = backend(Device::cpu()).counters().peak_bytes;
  for (const std::int64_t limit : {std::int64_t{1} << 19, std::numeric_limits<std::int64_t>::max()}) {
    seen = 0;
    options.max_tokens = limit;
    EXPECT_EQ(generate(model, std::vector<std::int32_t>{3, 30}, options).ids.size(), 3U);
  }
  // Keys and values of 2^19 positions would be 2 x 2 x 2 x 4 x 4 x 2^19 bytes.
  EXPECT_LT(backend(Device::cpu()).counters().peak_bytes - before, std::uint64_t{1} << 24);
}

/// A device that chooses and goes ahead by itself gives the host's tokens, wherever it is stopped.
TEST(Generate, DevicesGoAheadWithoutAChange) {
  ModelConfig config = tiny_config();
  config.max_position_embeddings = 16;
  for (const Device device : testing::tested_devices()) {
    if (!testing::is_available(device)) continue;
    SCOPED_TRACE(device.to_string());
    Llama model(config, device, 7);
    const std::vector<std::int32_t> prompt{3, 30, 8, 8, 1};
    GenerateOptions options;
    options.max_tokens = 100;
    options.on_logits = [](std::span<const float>) {};
    const Generation host = generate(model, prompt, options);
    options.on_logits = nullptr;
    const Generation here = generate(model, prompt, options);
    EXPECT_EQ(here.ids, host.ids);
    EXPECT_EQ(here.ids.size(), 12U);
    EXPECT_EQ(here.finish_reason, FinishReason::length);
    for (const std::size_t count : {1U, 4U}) {
      std::size_t seen = 0;
      options.on_token = [&](std::int32_t) { return ++seen < count; };
      const Generation stopped = generate(model, prompt, options);
      EXPECT_EQ(stopped.finish_reason, FinishReason::stop);
      EXPECT_TRUE(std::ranges::equal(stopped.ids, std::span(host.ids).first(count)));
    }
  }
}

TEST(Generate, LeavesTheModelsModeAlone) {
  Llama model(tiny_config(), Device::cpu(), 7);
  GenerateOptions options;
  options.max_tokens = 1;
  for (const bool training : {true, false}) {
    model.set_training(training);
    generate(model, std::vector<std::int32_t>{3}, options);
    EXPECT_EQ(model.is_training(), training);
  }
}

TEST(Generate, StopsWhereItShould) {
  Llama model(tiny_config(), Device::cpu(), 7);
  const std::vector<std::int32_t> prompt{3, 30};
  GenerateOptions options;
  options.max_tokens = 6;
  const std::vector<std::int32_t> free = generate(model, prompt, options).ids;
  ASSERT_EQ(free.size(), 6U);

  const std::size_t at =
      static_cast<std::size_t>(std::find(free.begin(), free.end(), free[2]) - free.begin());
  options.stop_ids = {free[2]};
  Generation stopped = generate(model, prompt, options);
  EXPECT_EQ(stopped.ids.size(), at + 1) << "the stop token is the last";
  EXPECT_EQ(stopped.finish_reason, FinishReason::stop);

  options.stop_ids.clear();
  int seen = 0;
  options.on_token = [&](std::int32_t) { return ++seen < 4; };
  stopped = generate(model, prompt, options);
  EXPECT_EQ(stopped.ids.size(), 4U);
  EXPECT_EQ(stopped.finish_reason, FinishReason::stop);

  options.on_token = nullptr;
  options.max_tokens = 0;
  EXPECT_TRUE(generate(model, prompt, options).ids.empty());
}

TEST(Generate, EndsWithThePositions) {
  Llama model(tiny_config(), Device::cpu(), 7);
  GenerateOptions options;
  options.max_tokens = 100;
  // 24 positions: 20 of the prompt, 4 fed, and the last token drawn needs none.
  Generation result = generate(model, std::vector<std::int32_t>(20, 2), options);
  EXPECT_EQ(result.ids.size(), 5U);
  EXPECT_EQ(result.finish_reason, FinishReason::length);
  EXPECT_EQ(generate(model, std::vector<std::int32_t>(24, 2), options).ids.size(), 1U);
  EXPECT_THROW(generate(model, std::vector<std::int32_t>(25, 2), options), ValueError);
  EXPECT_THROW(generate(model, {}, options), ValueError);
  EXPECT_THROW(generate(model, std::vector<std::int32_t>{1, 33}, options), ValueError);
  EXPECT_THROW(generate(model, std::vector<std::int32_t>{-1}, options), ValueError);
}

TEST(Generate, ReproducesTheReferenceOfATrainedCheckpoint) {
  CALDERA_REQUIRE_DATA(dir, "stories260K");
  const std::unique_ptr<Llama> model = Llama::load(dir, Device::cpu());
  const std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(dir);

  std::vector<std::int32_t> expected_ids;
  std::ifstream ids_file(dir / "greedy_token_ids_200.txt");
  expected_ids.assign(std::istream_iterator<std::int32_t>(ids_file), {});
  ASSERT_EQ(expected_ids.size(), 200U);
  std::vector<float> expected_logits(std::size_t{200} * 512);
  std::ifstream logits_file(dir / "greedy_logits_200x512.f32", std::ios::binary);
  logits_file.read(reinterpret_cast<char*>(expected_logits.data()),
                   static_cast<std::streamsize>(expected_logits.size() * sizeof(float)));
  ASSERT_TRUE(logits_file);
  std::ostringstream expected_text;
  expected_text << std::ifstream(dir / "expected_greedy_200.txt").rdbuf();

  std::vector<float> logits;
  GenerateOptions options;
  options.max_tokens = 200;
  options.on_logits = [&](std::span<const float> row) {
    logits.insert(logits.end(), row.begin(), row.end());
  };
  const std::vector<std::int32_t> prompt = tokenizer->encode("");
  ASSERT_EQ(prompt, (std::vector<std::int32_t>{1}));
  const Generation result = generate(*model, prompt, options);

  // The reference lists what was fed: the bos, and all tokens but the last.
  std::vector<std::int32_t> fed = prompt;
  fed.insert(fed.end(), result.ids.begin(), result.ids.end() - 1);
  EXPECT_EQ(fed, expected_ids);
  EXPECT_EQ(tokenizer->decode(result.ids), expected_text.str());
  ASSERT_EQ(logits.size(), expected_logits.size());
  float worst = 0;
  for (std::size_t i = 0; i < logits.size(); ++i)
    worst = std::max(worst, std::abs(logits[i] - expected_logits[i]));
  EXPECT_LE(worst, 1e-4F);
}

}  // namespace
}  // namespace caldera
