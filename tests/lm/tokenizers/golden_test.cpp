// Vocabularies of llama.cpp's tests, with the ids that it gives.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "lm/tokenizers/sources/gguf_vocabulary.h"
#include "lm/tokenizers/sources/load_tokenizer.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/lm/tokenizers/tokenizer_tests.h"
#include "tests/support/test_data.h"

namespace caldera::testing {
namespace {

TEST(TokenizerGolden, Gpt2FromVocabularyAndMerges) {
  CALDERA_REQUIRE_DATA(dir, "tokenizers/gpt2");
  const auto tokenizer = load_tokenizer(dir);
  EXPECT_EQ(tokenizer->vocab_size(), 50257);
  expect_golden(*tokenizer, golden_cases(dir));
  EXPECT_EQ(tokenizer->token_to_id("\xC4\xA0the"), 262) << "Ġthe";
  EXPECT_EQ(tokenizer->token_bytes(262), " the");
  EXPECT_TRUE(tokenizer->is_special(50256));
  EXPECT_EQ(tokenizer->encode("a<|endoftext|>b"), (Ids{64, 50256, 65}));
}

TEST(TokenizerGolden, Qwen2FromTiktoken) {
  CALDERA_REQUIRE_DATA(dir, "tokenizers/qwen2");
  const auto tokenizer = load_tokenizer(dir);
  expect_golden(*tokenizer, golden_cases(dir));
  EXPECT_EQ(tokenizer->encode("<|im_start|>user\n"), (Ids{151644, 872, 198}));
}

TEST(TokenizerGolden, Llama2FromSentencePiece) {
  CALDERA_REQUIRE_DATA(dir, "tokenizers/llama2");
  const TempFolder folder;
  std::filesystem::copy_file(dir / "tokenizer.model", folder / "tokenizer.model");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->vocab_size(), 32000);
  expect_golden(*tokenizer, golden_cases(dir));
  EXPECT_EQ(tokenizer->encode("Hello"), (Ids{1, 15043}));
  // The tokenizer.json of the same vocabulary agrees on other texts too, but where it spells U+00A0 as a
  // space.
  const auto converted = load_tokenizer(dir);
  std::mt19937 random(5);
  for (int round = case_count(300); round > 0; --round) {
    const std::string text = random_text(random, 30);
    if (text.find("\xC2\xA0") != std::string::npos) continue;
    ASSERT_EQ(tokenizer->encode(text), converted->encode(text)) << text;
  }
  // legacy=false: a space before the text alone, not before what follows a special token.
  folder.put("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})");
  const auto modern = load_tokenizer(folder.path());
  EXPECT_EQ(modern->encode("Hello</s>Hello"), (Ids{1, 15043, 2, 10994}));
  EXPECT_EQ(tokenizer->encode("Hello</s>Hello"), (Ids{1, 15043, 2, 15043}));
}

/// The lines of a merges.txt, without its first.
std::vector<std::string> merge_lines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("#version")) lines.push_back(line);
  }
  return lines;
}

TEST(TokenizerGolden, GgufVocabularies) {
  CALDERA_REQUIRE_DATA(root, "tokenizers");
  GgufVocabulary gpt2;
  gpt2.model = "gpt2";
  gpt2.pre = "gpt-2";
  const auto vocab = nlohmann::json::parse(file_text(root / "gpt2" / "vocab.json"));
  gpt2.tokens.resize(vocab.size());
  for (const auto& [text, id] : vocab.items()) gpt2.tokens.at(id.get<std::size_t>()) = text;
  gpt2.merges = merge_lines(file_text(root / "gpt2" / "merges.txt"));
  gpt2.bos_id = 50256;
  expect_golden(*make_tokenizer(gpt2, "gpt2.gguf"), golden_cases(root / "gpt2"));
  EXPECT_EQ(make_tokenizer(gpt2, "gpt2.gguf")->encode("Hello"), Ids{15496}) << "no bos unless asked";
  gpt2.add_bos = true;
  EXPECT_EQ(make_tokenizer(gpt2, "gpt2.gguf")->encode("Hello"), (Ids{50256, 15496}));

  // Llama 2's: the score of a piece is minus the place, in the list of merges, of the first that makes it.
  const auto hf = nlohmann::json::parse(file_text(root / "llama2" / "tokenizer.json"));
  GgufVocabulary llama;
  llama.model = "llama";
  const auto& pieces = hf.at("model").at("vocab");
  llama.tokens.resize(pieces.size());
  llama.scores.resize(pieces.size());
  llama.token_types.assign(pieces.size(), 1);
  for (const auto& [text, id] : pieces.items()) {
    const auto index = id.get<std::size_t>();
    llama.tokens.at(index) = text;
    if (index < 3) llama.token_types.at(index) = index == 0 ? 2 : 3;
    if (index >= 3 && index < 259) llama.token_types.at(index) = 6;
  }
  const auto& merges = hf.at("model").at("merges");
  for (std::size_t i = merges.size(); i-- > 0;) {
    std::string joined = merges[i].get<std::string>();
    joined.erase(joined.find(' '), 1);
    llama.scores.at(pieces.at(joined).get<std::size_t>()) = -static_cast<float>(i);
  }
  llama.bos_id = 1;
  llama.eos_id = 2;
  llama.unknown_id = 0;
  const auto tokenizer = make_tokenizer(llama, "llama.gguf");
  expect_golden(*tokenizer, golden_cases(root / "llama2"));
  EXPECT_EQ(tokenizer->encode("Hello"), (Ids{1, 15043})) << "bos unless told otherwise";
  EXPECT_EQ(tokenizer->eos_id(), 2);
  llama.add_space_prefix = false;
  EXPECT_EQ(make_tokenizer(llama, "llama.gguf")->encode("Hello", false), Ids{10994});
}

TEST(TokenizerGolden, ALongTextComesBack) {
  CALDERA_REQUIRE_DATA(root, "tokenizers");
  std::mt19937 random(3);
  std::string text;
  const int megabytes = case_count(0) / 10'000;
  while (text.size() < 100'000U + 1'000'000U * static_cast<unsigned>(megabytes)) {
    const std::string part = random_text(random, 40);
    // Llama 2's tokenizer takes U+2581 for a space.
    if (part.find("\xE2\x96\x81") == std::string::npos) text += part;
  }
  for (const char* name : {"gpt2", "llama2"}) {
    const auto tokenizer = load_tokenizer(root / name);
    EXPECT_TRUE(tokenizer->decode(tokenizer->encode(text)) == text) << name;
  }
}

TEST(TokenizerGolden, NoTextTakesQuadraticTime) {
  CALDERA_REQUIRE_DATA(root, "tokenizers");
  const auto start = std::chrono::steady_clock::now();
  for (const char* name : {"gpt2", "llama2", "qwen2"}) {
    const auto tokenizer = load_tokenizer(root / name);
    for (const char* unit : {"a", " ", "\xE4\xB8\xAD", " \n", "<|", "'"}) {
      std::string text;
      while (text.size() < 50'000) text += unit;
      EXPECT_TRUE(tokenizer->decode(tokenizer->encode(text)) == text) << name << " '" << unit << "'";
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 120.0);  // a quadratic loop would take hours
}

}  // namespace
}  // namespace caldera::testing
