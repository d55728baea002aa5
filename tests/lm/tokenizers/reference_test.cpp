// The models against references written in the plainest way, which share no code with them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "lm/tokenizers/sources/load_tokenizer.h"
#include "tests/lm/tokenizers/by_hand.h"
#include "tests/lm/tokenizers/tokenizer_tests.h"
#include "tests/support/test_data.h"

namespace caldera::testing {
namespace {

using nlohmann::json;

/// The textbook merge loop: find the pair of the lowest rank, join its leftmost occurrence, start again.
Strings slow_merge(Strings parts, const std::map<std::pair<std::string, std::string>, int>& ranks) {
  for (;;) {
    int best_rank = INT_MAX;
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find({parts[i], parts[i + 1]});
      if (found != ranks.end() && found->second < best_rank) {
        best_rank = found->second;
        best = i;
      }
    }
    if (best_rank == INT_MAX) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

/// tiktoken's loop, on bytes: of all neighbours that join to a token, those that join to the lowest.
Ids slow_tiktoken(const std::string& word, const std::map<std::string, int>& ranks) {
  if (const auto whole = ranks.find(word); whole != ranks.end()) return {whole->second};
  Strings parts;
  for (const char c : word) parts.emplace_back(1, c);
  for (;;) {
    int best_rank = INT_MAX;
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find(parts[i] + parts[i + 1]);
      if (found != ranks.end() && found->second < best_rank) {
        best_rank = found->second;
        best = i;
      }
    }
    if (best_rank == INT_MAX) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const auto& part : parts) ids.push_back(ranks.at(part));
  return ids;
}

std::string byte_character(unsigned char byte) {
  // GPT-2's bytes_to_unicode: bytes that print stand for themselves, the others follow from U+0100 on.
  static const std::vector<std::string> kTable = [] {
    std::vector<std::string> table;
    int next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
      const int c = prints ? b : next++;
      if (c < 128) {
        table.emplace_back(1, static_cast<char>(c));
      } else {
        table.push_back({static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))});
      }
    }
    return table;
  }();
  return kTable[byte];
}

TEST(TokenizerReference, Gpt2) {
  CALDERA_REQUIRE_DATA(dir, "tokenizers/gpt2");
  const auto tokenizer = load_tokenizer(dir);
  const auto vocab = json::parse(file_text(dir / "vocab.json"));
  std::map<std::pair<std::string, std::string>, int> ranks;
  std::istringstream merges(file_text(dir / "merges.txt"));
  std::string line;
  std::getline(merges, line);
  for (std::string left, right; merges >> left >> right;) ranks.emplace(std::pair(left, right), ranks.size());
  std::mt19937 random(11);
  for (int round = case_count(400); round > 0; --round) {
    const std::string text = random_text(random, 25);
    Ids expected;
    for (const auto& word : ByHand(text).gpt2()) {
      Strings parts;
      for (const char c : word) parts.push_back(byte_character(static_cast<unsigned char>(c)));
      for (const auto& token : slow_merge(parts, ranks))
        expected.push_back(vocab.at(token).get<std::int32_t>());
    }
    ASSERT_EQ(tokenizer->encode(text), expected) << text;
    ASSERT_EQ(tokenizer->decode(expected), text);
  }
}

int base64_digit(char c) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return static_cast<int>(digits.find(c));
}

std::string plain_base64(const std::string& text) {
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<unsigned>(base64_digit(c));
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 255);
  }
  return bytes;
}

TEST(TokenizerReference, Qwen2) {
  CALDERA_REQUIRE_DATA(dir, "tokenizers/qwen2");
  const auto tokenizer = load_tokenizer(dir);
  std::map<std::string, int> ranks;
  std::istringstream file(file_text(dir / "qwen.tiktoken"));
  int rank = 0;
  for (std::string token; file >> token >> rank;) ranks.emplace(plain_base64(token), rank);
  std::mt19937 random(12);
  for (int round = case_count(400); round > 0; --round) {
    std::string text = random_text(random, 25);
    // Texts that are in normal form C: normalising has its own test.
    if (text.find("\xCC") != std::string::npos || text.find("\xE0\xA4") != std::string::npos) continue;
    if (text.find("\xE1\x84") != std::string::npos) continue;
    Ids expected;
    for (const auto& word : ByHand(text).qwen2()) {
      const auto ids = slow_tiktoken(word, ranks);
      expected.insert(expected.end(), ids.begin(), ids.end());
    }
    ASSERT_EQ(tokenizer->encode(text), expected) << text;
  }
}

TEST(TokenizerReference, Llama2) {
  CALDERA_REQUIRE_DATA(dir, "tokenizers/llama2");
  const auto tokenizer = load_tokenizer(dir);
  const auto model = json::parse(file_text(dir / "tokenizer.json")).at("model");
  std::map<std::pair<std::string, std::string>, int> ranks;
  for (const auto& merge : model.at("merges")) {
    const auto text = merge.get<std::string>();
    const auto space = text.find(' ');
    ranks.emplace(std::pair(text.substr(0, space), text.substr(space + 1)), ranks.size());
  }
  std::mt19937 random(13);
  for (int round = case_count(200); round > 0; --round) {
    const std::string text = random_text(random, 20);
    if (text.empty()) continue;
    Strings parts = {"▁"};
    for (const auto& c : characters_of(text)) {
      const std::string piece = c == " " ? "▁" : c;
      if (model.at("vocab").contains(piece)) {
        parts.push_back(piece);
      } else {
        for (const char byte : piece)
          parts.push_back(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)));
      }
    }
    Ids expected;
    for (const auto& token : slow_merge(parts, ranks)) {
      expected.push_back(model.at("vocab").at(token).get<std::int32_t>());
    }
    ASSERT_EQ(tokenizer->encode(text, false), expected) << text;
  }
}

/// A vocabulary of parts of the words that random texts are made of.
Strings random_vocabulary(std::mt19937& random, std::size_t size) {
  Strings tokens;
  while (tokens.size() < size) {
    const auto parts = characters_of(random_text(random, 6));
    if (parts.empty()) continue;
    const std::size_t begin = random() % parts.size();
    std::string token;
    for (std::size_t i = begin; i < std::min(parts.size(), begin + 1 + random() % 4); ++i) token += parts[i];
    if (std::ranges::find(tokens, token) == tokens.end()) tokens.push_back(token);
  }
  return tokens;
}

TEST(TokenizerReference, Unigram) {
  std::mt19937 random(14);
  json vocab = json::array();
  vocab.push_back(json::array({"<unk>", 0.0}));
  std::map<std::string, std::pair<int, double>> pieces;
  for (const auto& token : random_vocabulary(random, 400)) {
    const double score = -static_cast<double>(random() % 1'000'000) / 100'000.0;
    pieces[token] = {static_cast<int>(vocab.size()), score};
    vocab.push_back(json::array({token, score}));
  }
  double worst = 0.0;
  for (const auto& [token, piece] : pieces) worst = std::min(worst, piece.second);
  const TokenizerJson tokenizer(tokenizer_file({{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}).dump(),
                                "t");
  for (int round = case_count(400); round > 0; --round) {
    const std::string text = random_text(random, 20);
    const auto parts = characters_of(text);
    // best[i]: the sum for the first i characters, and where the last token of it begins.
    std::vector<std::pair<double, std::size_t>> best(parts.size() + 1, {-1e300, 0});
    best[0].first = 0;
    for (std::size_t end = 1; end <= parts.size(); ++end) {
      for (std::size_t begin = 0; begin < end; ++begin) {  // of equal sums, that with the longer last token
        std::string piece;
        for (std::size_t i = begin; i < end; ++i) piece += parts[i];
        const auto found = pieces.find(piece);
        if (found == pieces.end() && begin + 1 != end) continue;
        const double score = found == pieces.end() ? worst - 10.0 : found->second.second;
        if (best[begin].first + score > best[end].first) best[end] = {best[begin].first + score, begin};
      }
    }
    Ids expected;
    for (std::size_t end = parts.size(); end > 0; end = best[end].second) {
      std::string piece;
      for (std::size_t i = best[end].second; i < end; ++i) piece += parts[i];
      const auto found = pieces.find(piece);
      const int id = found == pieces.end() ? 0 : found->second.first;
      if (id != 0 || expected.empty() || expected.back() != 0) expected.push_back(id);
    }
    std::ranges::reverse(expected);
    ASSERT_EQ(tokenizer.encode(text), expected) << text;
  }
}

TEST(TokenizerReference, WordPiece) {
  std::mt19937 random(15);
  json vocab = {{"[UNK]", 0}};
  for (const auto& token : random_vocabulary(random, 300)) {
    const std::string text = random() % 2 == 0 ? token : "##" + token;
    if (!vocab.contains(text)) vocab[text] = vocab.size();
  }
  json file = tokenizer_file({{"type", "WordPiece"},
                              {"vocab", vocab},
                              {"unk_token", "[UNK]"},
                              {"continuing_subword_prefix", "##"},
                              {"max_input_chars_per_word", 12}});
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  const TokenizerJson tokenizer(file.dump(), "t");
  for (int round = case_count(400); round > 0; --round) {
    const std::string text = random_text(random, 20);
    Ids expected;
    Strings word;
    const auto flush = [&] {
      Ids ids;
      bool known = word.size() <= 12;
      for (std::size_t begin = 0; known && begin < word.size();) {
        std::size_t end = word.size();
        for (; end > begin; --end) {
          std::string piece = begin == 0 ? "" : "##";
          for (std::size_t i = begin; i < end; ++i) piece += word[i];
          if (!vocab.contains(piece)) continue;
          ids.push_back(vocab.at(piece).get<std::int32_t>());
          break;
        }
        known = end > begin;
        begin = end;
      }
      if (!known) ids = {0};
      if (!word.empty()) expected.insert(expected.end(), ids.begin(), ids.end());
      word.clear();
    };
    for (const auto& c : characters_of(text)) {
      if (u_isUWhiteSpace(code_point(c))) {
        flush();
      } else {
        word.push_back(c);
      }
    }
    flush();
    ASSERT_EQ(tokenizer.encode(text), expected) << text;
  }
}

TEST(TokenizerReference, BpeWithPrefixAndSuffix) {
  // Words of the letters a, b, c; tokens that continue a word begin with ##, those that end one with </w>.
  std::mt19937 random(16);
  json vocab = json::object();
  json merges = json::array();
  std::map<std::pair<std::string, std::string>, int> ranks;
  const auto add = [&](const std::string& token) {
    if (!vocab.contains(token)) vocab[token] = vocab.size();
  };
  Strings tokens;
  for (const char* c : {"a", "b", "c"}) {
    for (const char* form : {"{}", "##{}", "{}</w>", "##{}</w>"}) {
      tokens.push_back(fmt::format(fmt::runtime(form), c));
      add(tokens.back());
    }
  }
  for (int i = 0; i < 60; ++i) {
    const auto& left = tokens[random() % tokens.size()];
    const auto& right = tokens[random() % tokens.size()];
    if (left.ends_with("</w>") || !right.starts_with("##") || ranks.contains({left, right})) continue;
    const std::string joined = left + right.substr(2);
    ranks.emplace(std::pair(left, right), static_cast<int>(merges.size()));
    merges.push_back(json::array({left, right}));
    add(joined);
    tokens.push_back(joined);
  }
  const TokenizerJson tokenizer(tokenizer_file({{"type", "BPE"},
                                                {"vocab", vocab},
                                                {"merges", merges},
                                                {"continuing_subword_prefix", "##"},
                                                {"end_of_word_suffix", "</w>"}})
                                    .dump(),
                                "t");
  for (int round = case_count(400); round > 0; --round) {
    Strings parts;
    std::string word;
    const std::size_t length = 1 + random() % 60;  // past what is merged without a queue
    for (std::size_t i = 0; i < length; ++i) {
      const std::string c(1, static_cast<char>('a' + random() % 3));
      word += c;
      parts.push_back((i == 0 ? "" : "##") + c + (i + 1 == length ? "</w>" : ""));
    }
    for (;;) {
      int best_rank = INT_MAX;
      std::size_t best = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = ranks.find({parts[i], parts[i + 1]});
        if (found == ranks.end() || found->second >= best_rank) continue;
        best_rank = found->second;
        best = i;
      }
      if (best_rank == INT_MAX) break;
      parts[best] += parts[best + 1].substr(2);
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    Ids expected;
    for (const auto& part : parts) expected.push_back(vocab.at(part).get<std::int32_t>());
    ASSERT_EQ(tokenizer.encode(word), expected) << word;
  }
}

}  // namespace
}  // namespace caldera::testing
