// The helpers of the tests of tokenizers, and tests of them.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lm/base/unicode/utf8.h"
#include "lm/tokenizers/stream_decoder.h"
#include "tests/lm/tokenizers/tokenizer_tests.h"

namespace caldera::testing {

using nlohmann::json;

json spelling_model() {
  json vocab = json::object();
  for (int byte = 0; byte < 256; ++byte) vocab[fmt::format("<0x{:02X}>", byte)] = byte;
  return {{"type", "BPE"}, {"byte_fallback", true}, {"vocab", vocab}, {"merges", json::array()}};
}

json spelling_decoder() {
  return {{"type", "Sequence"}, {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
}

json tokenizer_file(const json& model, const json& decoder) {
  return {{"added_tokens", json::array()}, {"normalizer", nullptr}, {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},     {"decoder", decoder},    {"model", model}};
}

std::string normalized(const json& normalizer, const std::string& text) {
  json file = tokenizer_file(spelling_model(), spelling_decoder());
  file["normalizer"] = normalizer;
  const TokenizerJson tokenizer(file.dump(), "tokenizer.json");
  return tokenizer.decode(tokenizer.encode(text));
}

std::vector<std::string> words(const json& pre_tokenizer, const std::string& text,
                               const std::vector<std::string>& expected) {
  json vocab = {{"<unk>", 0}};
  std::vector<std::string> by_id = {"<unk>"};
  for (const auto& word : expected) {
    if (vocab.contains(word)) continue;
    vocab[word] = by_id.size();
    by_id.push_back(word);
  }
  json file = tokenizer_file({{"type", "WordLevel"}, {"vocab", vocab}, {"unk_token", "<unk>"}});
  file["pre_tokenizer"] = pre_tokenizer;
  std::vector<std::string> found;
  for (const auto id : TokenizerJson(file.dump(), "tokenizer.json").encode(text)) {
    found.push_back(by_id.at(static_cast<std::size_t>(id)));
  }
  return found;
}

std::string decoded(const json& decoder, const std::vector<std::string>& tokens) {
  json vocab = json::object();
  for (const auto& token : tokens) vocab.emplace(token, vocab.size());
  const TokenizerJson tokenizer(tokenizer_file({{"type", "WordLevel"}, {"vocab", vocab}}, decoder).dump(),
                                "tokenizer.json");
  Ids ids;
  for (const auto& token : tokens) ids.push_back(*tokenizer.token_to_id(token));
  return tokenizer.decode(ids);
}

std::string random_text(std::mt19937& random, int most) {
  static const std::vector<std::string> kPieces = {" ",
                                                   "  ",
                                                   "   ",
                                                   "\n",
                                                   "\r\n",
                                                   "\t",
                                                   "\xC2\xA0",
                                                   "\xE3\x80\x80",
                                                   "\xE2\x80\xA8",
                                                   "the",
                                                   "ing",
                                                   "Hello",
                                                   "'s",
                                                   "'Ll",
                                                   "'RE",
                                                   "!?",
                                                   "...",
                                                   "12",
                                                   "3456",
                                                   "½",
                                                   "Ⅷ",
                                                   "²",
                                                   "é",
                                                   "e\xCC\x81",
                                                   "ß",
                                                   "Ǆ",
                                                   "ǅ",
                                                   "я",
                                                   "Привет",
                                                   "ב",
                                                   "שלום",
                                                   "ع",
                                                   "مرحبا",
                                                   "हिन्दी",
                                                   "ไทย",
                                                   "你",
                                                   "世界",
                                                   "ひらがな",
                                                   "カタ",
                                                   "한글",
                                                   "ᄀ",
                                                   "🚀",
                                                   "👨‍👩‍👧",
                                                   "🇩🇪",
                                                   "\xE2\x96\x81",
                                                   "_",
                                                   "-",
                                                   "＿",
                                                   "！",
                                                   "。",
                                                   "«",
                                                   "𝒜",
                                                   "\x7F",
                                                   "\x01",
                                                   "\xEF\xBF\xBD",
                                                   "\xE2\x80\x8B",
                                                   "𐀀",
                                                   "İ",
                                                   "ſ"};
  std::string text;
  for (int n = static_cast<int>(random() % static_cast<unsigned>(most + 1)); n > 0; --n) {
    if (random() % 3 == 0) {
      text += static_cast<char>(' ' + random() % 95);
    } else {
      text += kPieces[random() % kPieces.size()];
    }
  }
  return text;
}

int case_count(int few) {
  const char* wanted = std::getenv("CALDERA_TOKENIZER_CASES");
  return wanted == nullptr ? few : std::atoi(wanted);
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<GoldenCase> golden_cases(const std::filesystem::path& dir) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::string inputs = file_text(dir / "golden.inp");
  std::istringstream outputs(file_text(dir / "golden.out"));
  std::vector<GoldenCase> cases;
  for (std::size_t end; (end = inputs.find(separator)) != std::string::npos;
       inputs.erase(0, end + separator.size())) {
    std::string line;
    std::getline(outputs, line);
    std::istringstream numbers(line);
    GoldenCase one{inputs.substr(0, end), {}};
    for (std::int32_t id = 0; numbers >> id;) one.ids.push_back(id);
    cases.push_back(std::move(one));
  }
  return cases;
}

void expect_golden(const Tokenizer& tokenizer, const std::vector<GoldenCase>& cases) {
  EXPECT_EQ(cases.size(), 46u);
  for (const auto& [text, ids] : cases) {
    EXPECT_EQ(tokenizer.encode(text, false), ids) << "text: '" << text << "'";
    EXPECT_EQ(tokenizer.decode(ids), text);
    EXPECT_EQ(streamed(tokenizer, ids), text);
  }
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids) {
  StreamDecoder stream(tokenizer);
  std::string text;
  for (const auto id : ids) {
    const std::string piece = stream.push(id);
    EXPECT_TRUE(detail::is_utf8(piece));
    text += piece;
  }
  return text + stream.finish();
}

TEST(TokenizerTests, SpellingModelGivesEveryTextBack) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    const std::string text = random_text(random, 30);
    EXPECT_EQ(normalized(nullptr, text), text);
  }
}

}  // namespace caldera::testing
