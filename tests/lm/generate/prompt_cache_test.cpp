// Texts in files: found by who begins again, and by nobody else.
#include "lm/generate/cache/prompt_cache.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/caldera.h"
#include "lm/adapters/lora.h"
#include "lm/base/file_identity.h"
#include "lm/base/sha256.h"
#include "lm/models/registry.h"
#include "tests/lm/generate/batch_requests.h"
#include "tests/support/devices.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_llama.h"

namespace caldera::testing {
namespace {

TEST(Sha256, IsTheStandards) {
  // FIPS 180-4's examples, and a million times "a".
  EXPECT_EQ(Sha256().hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256().add("abc").hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256().add("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 many;
  const std::string part(1000, 'a');
  for (int i = 0; i < 1000; ++i) many.add(part);
  EXPECT_EQ(many.hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  // However it is divided.
  for (std::size_t size = 0; size < 130; ++size) {
    const std::string text(size, 'x');
    Sha256 pieces;
    for (std::size_t at = 0; at < size; at += 7) pieces.add(std::string_view(text).substr(at, 7));
    EXPECT_EQ(pieces.hex(), Sha256().add(text).hex()) << size;
  }
}

std::vector<std::byte> some_bytes(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>((seed = seed * 1664525U + 1013904223U) >> 24);
  return bytes;
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

TEST(PromptCache, KeepsPiecesAndRefusesDamagedOnes) {
  const TempFolder folder;
  const Ids ids = random_ids(200, 1);
  const auto part = std::span(ids).first(64);
  const std::vector<std::byte> bytes = some_bytes(1003, 5);
  std::vector<std::string> pieces;
  {
    PromptCache cache(folder.path(), "m", 1 << 20);
    pieces = cache.pieces_of("k", ids);
    ASSERT_EQ(pieces.size(), 3U);
    EXPECT_FALSE(cache.has(pieces[0]));
    cache.save(pieces[0], part, bytes);
    cache.flush();
    EXPECT_EQ(cache.load(pieces[0], part, 1003), bytes);
  }
  // All of model, kind and tokens before count.
  EXPECT_NE(PromptCache(folder.path(), "n", 1 << 20).pieces_of("k", ids)[0], pieces[0]);
  PromptCache again(folder.path(), "m", 1 << 20);
  EXPECT_NE(again.pieces_of("l", ids)[0], pieces[0]);
  Ids other = ids;
  other[3] = (other[3] + 1) % 61;
  EXPECT_NE(again.pieces_of("k", other)[2], pieces[2]);
  EXPECT_EQ(again.load(pieces[0], part, 1003), bytes);
  const std::vector<std::filesystem::path> files = files_of(folder.path());
  ASSERT_EQ(files.size(), 1U);
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(files[0]));
  const std::filesystem::path whole = folder.path() / "whole";
  std::filesystem::copy_file(files[0], whole);
  for (std::streamoff at = -1; at < size + 1; at += at < 380 ? 7 : 61) {
    std::filesystem::copy_file(whole, files[0], std::filesystem::copy_options::overwrite_existing);
    if (at < 0) {
      std::filesystem::resize_file(files[0], static_cast<std::uintmax_t>(size - 1));
    } else {  // a byte changed, or one more
      std::fstream file(files[0], std::ios::binary | std::ios::in | std::ios::out);
      file.seekg(at);
      const int byte = file.get();
      file.clear();
      file.seekp(at);
      file.put(static_cast<char>(byte + 1));
    }
    PromptCache damaged(folder.path(), "m", 1 << 20);
    ASSERT_TRUE(damaged.has(pieces[0]));
    EXPECT_EQ(damaged.load(pieces[0], part, 1003), std::nullopt) << at;
    EXPECT_FALSE(damaged.has(pieces[0])) << "it can be written again";
    EXPECT_FALSE(std::filesystem::exists(files[0]));
  }
  std::filesystem::copy_file(whole, files[0]);
  PromptCache last(folder.path(), "m", 1 << 20);
  EXPECT_EQ(last.load(pieces[0], std::span(ids).subspan(1, 64), 1003), std::nullopt) << "other ids";
}

TEST(PromptCache, KeepsToItsBound) {
  const TempFolder folder;
  const Ids ids = random_ids(64 * 10, 2);
  PromptCache cache(folder.path(), "m", 5000);
  const std::vector<std::string> pieces = cache.pieces_of("", ids);
  const auto part = [&](std::size_t i) { return std::span(ids).subspan(i * 64, 64); };
  for (std::size_t i = 0; i < 3; ++i) cache.save(pieces[i], part(i), some_bytes(1000, 1));
  cache.flush();
  EXPECT_TRUE(cache.load(pieces[0], part(0), 1000));  // used last
  for (std::size_t i = 3; i < 5; ++i) {
    cache.save(pieces[i], part(i), some_bytes(1000, 1));
    cache.flush();
  }
  EXPECT_LE(cache.bytes(), 5000U);
  EXPECT_TRUE(cache.has(pieces[0]));
  EXPECT_FALSE(cache.has(pieces[1]));
  EXPECT_TRUE(cache.has(pieces[4]));
  std::uintmax_t total = 0;
  for (const auto& file : files_of(folder.path())) total += std::filesystem::file_size(file);
  EXPECT_EQ(total, cache.bytes());
  // What others left is counted, and what is none is left alone.
  std::ofstream(folder.path() / "notes.txt") << "mine";
  PromptCache small(folder.path(), "m", 1500);
  EXPECT_LE(small.bytes(), 1500U);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "notes.txt"));
  std::ofstream(folder.path() / "file") << "no folder";
  EXPECT_THROW(PromptCache(folder.path() / "file" / "x", "m", 1), FileError);
}

class SavedTexts : public ::testing::TestWithParam<Device> {};

TEST_P(SavedTexts, ABeginningIsComputedOnceForAllRuns) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  ModelConfig config = batch_config();
  config.max_position_embeddings = 1024;
  Llama model(config, GetParam(), 3);
  const TempFolder folder;
  const Ids prompt = random_ids(500, 4);
  const auto run = [&](std::shared_ptr<PromptCache> cache, const Ids& asked) {
    BatchLimits limits{.max_batch = 2, .prefill_chunk = 64};
    limits.prompt_cache = std::move(cache);
    BatchGenerator generator(model, limits);
    Answer answer;
    GenerateRequest request = asking(asked, 12, answer);
    request.logprobs = 0;
    generator.submit(std::move(request));
    generator.run();
    EXPECT_EQ(answer.last.error, "");
    EXPECT_EQ(answer.ends, 1);
    return answer;
  };
  const auto open = [&](const char* identity = "model") {
    return std::make_shared<PromptCache>(folder.path(), identity, std::uint64_t{1} << 30);
  };
  const Answer plain = run(nullptr, prompt);
  EXPECT_EQ(run(open(), prompt).last.reused_tokens, 0);
  const Answer found = run(open(), prompt);
  EXPECT_EQ(found.last.reused_tokens, 448);  // whole pieces, without the last token
  EXPECT_EQ(found.ids, plain.ids);
  for (std::size_t i = 0; i < plain.logprobs.size(); ++i)
    EXPECT_NEAR(found.logprobs[i], plain.logprobs[i], 1e-4);
  // A text that begins alike has what is common, others and other models have nothing.
  Ids longer(prompt.begin(), prompt.begin() + 300);
  longer.resize(420, 7);
  EXPECT_EQ(run(open(), longer).last.reused_tokens, 256);
  EXPECT_EQ(run(open(), longer).ids, run(nullptr, longer).ids);
  EXPECT_EQ(run(open("another"), prompt).last.reused_tokens, 0);
  Ids different = prompt;
  different[0] = (different[0] + 1) % 61;
  EXPECT_EQ(run(open(), different).last.reused_tokens, 0);
  EXPECT_EQ(run(open(), Ids(prompt.begin(), prompt.begin() + 100)).last.reused_tokens, 0) << "too short";
  // Damaged files are passed over.
  for (const auto& file : files_of(folder.path())) {
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(2000);
    stream.put('x');
    stream.put('y');
  }
  const Answer damaged = run(open(), prompt);
  EXPECT_EQ(damaged.last.reused_tokens, 0);
  EXPECT_EQ(damaged.ids, plain.ids);
  EXPECT_EQ(run(open(), prompt).last.reused_tokens, 448) << "written again";
}

TEST_P(SavedTexts, AreKeptAsTheCacheKeepsThem) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  const ModelConfig config = tiny_llama({.hidden = 64,
                                         .heads = 2,
                                         .kv_heads = 1,
                                         .vocabulary = 61,
                                         .positions = 512,
                                         .initializer_range = 0.4});
  for (const CacheType type : {CacheType::f16, CacheType::q8_0}) {
    Llama model(config, GetParam(), 3);
    model.set_cache_type(type);
    const TempFolder folder;
    const Ids prompt = random_ids(330, 4);
    std::vector<Answer> answers(2);
    for (Answer& answer : answers) {
      BatchLimits limits;
      limits.prompt_cache = std::make_shared<PromptCache>(folder.path(), "m", std::uint64_t{1} << 30);
      BatchGenerator generator(model, limits);
      generator.submit(asking(prompt, 8, answer));
      generator.run();
      EXPECT_EQ(answer.last.error, "");
    }
    EXPECT_EQ(answers[0].last.reused_tokens, 0);
    EXPECT_EQ(answers[1].last.reused_tokens, 320);
    EXPECT_EQ(answers[1].ids, answers[0].ids);
  }
}

/// Layers with windows give keys up while a prompt is computed: pieces are written before that.
TEST_P(SavedTexts, OfLayersWithWindowsToo) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  const std::string config =
      R"({"model_type":"qwen2","hidden_size":32,"intermediate_size":48,"num_hidden_layers":3,)"
      R"("num_attention_heads":4,"num_key_value_heads":2,"vocab_size":61,"max_position_embeddings":1024,)"
      R"("initializer_range":0.4,"use_sliding_window":true,"max_window_layers":1,"tie_word_embeddings":false,)"
      R"("sliding_window":)";
  for (const auto& [window, reused] : std::vector<std::pair<int, std::int64_t>>{{100, 448}, {20, 448}}) {
    const std::unique_ptr<CausalLM> model =
        make_causal_lm_from_json(config + std::to_string(window) + "}", GetParam(), 3);
    model->materialize();
    const TempFolder folder;
    const Ids prompt = random_ids(500, 4);
    Ids longer(prompt.begin(), prompt.begin() + 460);
    longer.resize(600, 7);
    std::vector<Answer> answers(4);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      BatchLimits limits{.max_batch = 2, .prefill_chunk = 64};
      if (i > 0) limits.prompt_cache = std::make_shared<PromptCache>(folder.path(), "m", 1U << 30);
      BatchGenerator generator(*model, limits);
      GenerateRequest request = asking(i == 3 ? longer : prompt, 90, answers[i]);
      request.logprobs = 0;
      generator.submit(std::move(request));
      generator.run();
      EXPECT_EQ(answers[i].last.error, "");
    }
    EXPECT_EQ(answers[1].last.reused_tokens, 0);
    EXPECT_EQ(answers[2].last.reused_tokens, reused) << window;
    EXPECT_EQ(answers[3].last.reused_tokens, reused) << window;
    EXPECT_EQ(answers[3].ids, alone(*model, longer, 90));
    for (std::size_t i = 1; i < 3; ++i) {
      EXPECT_EQ(answers[i].ids, answers[0].ids) << window;
      for (std::size_t t = 0; t < answers[0].logprobs.size(); ++t)
        EXPECT_NEAR(answers[i].logprobs[t], answers[0].logprobs[t], 1e-4) << window;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, SavedTexts, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(SavedTexts, AdaptersAreToldApartByTheirFiles) {
  const TempFolder folder;
  ModelConfig config = batch_config();
  config.max_position_embeddings = 512;
  Llama model(config, Device::cpu(), 3);
  for (const char* name : {"a", "b"}) {
    Llama adapted(config, Device::cpu(), 3);
    apply_lora(adapted, {.rank = 2, .alpha = 8}, {"q_proj", "v_proj"}, 1);
    std::uint64_t seed = name[0];
    for (const Parameter& p : adapted.trainable_parameters())
      *p.tensor = random_normal(p.tensor->shape(), seed++, DType::f32, Device::cpu()) * 0.5;
    adapted.materialize();
    std::filesystem::create_directory(folder.path() / name);
    save_adapter(adapted, folder.path() / name);
  }
  EXPECT_NE(file_identity(folder.path() / "a"), file_identity(folder.path() / "b"));
  const auto reused = [&](const char* dir) {
    BatchLimits limits;
    limits.prompt_cache = std::make_shared<PromptCache>(folder.path() / "cache", "m", std::uint64_t{1} << 30);
    BatchGenerator generator(model, limits);
    generator.load_adapter("one", folder.path() / dir);
    Answer answer;
    GenerateRequest request = asking(random_ids(300, 4), 5, answer);
    request.adapter = "one";
    generator.submit(std::move(request));
    generator.run();
    return answer.last.reused_tokens;
  };
  EXPECT_EQ(reused("a"), 0);
  EXPECT_EQ(reused("b"), 0);
  EXPECT_EQ(reused("a"), 256);
  EXPECT_EQ(reused("b"), 256);
}

}  // namespace
}  // namespace caldera::testing
