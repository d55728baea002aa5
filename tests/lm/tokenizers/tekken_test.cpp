// tekken.json: against a tokenizer written in the plainest way, and files that are wrong.
#include <gtest/gtest.h>

#include <map>

#include "lm/tokenizers/sources/load_tokenizer.h"
#include "tests/lm/base/io_test_support.h"
#include "tests/lm/tokenizers/by_hand.h"
#include "tests/lm/tokenizers/tokenizer_tests.h"

namespace caldera::testing {
namespace {

constexpr const char* kPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::int32_t kSpecial = 25;

std::string base64(const std::string& bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned bits = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += i + j <= bytes.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
    }
  }
  return out;
}

nlohmann::json tekken_file(const Strings& tokens) {
  nlohmann::json vocab = nlohmann::json::array();
  for (const auto& token : tokens) {
    vocab.push_back({{"rank", vocab.size()}, {"token_bytes", base64(token)}, {"token_str", nullptr}});
  }
  return {{"config",
           {{"pattern", kPattern},
            {"num_vocab_tokens", tokens.size()},
            {"default_vocab_size", tokens.size() + kSpecial},
            {"default_num_special_tokens", kSpecial},
            {"version", "v3"}}},
          {"vocab", vocab}};
}

/// The single bytes, then pairs of tokens before, of the kinds that texts have.
Strings random_tokens(std::mt19937& random, std::size_t count) {
  Strings tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  while (tokens.size() < count) {
    std::string text = random_text(random, 4);
    if (text.size() > 1 && std::ranges::find(tokens, text) == tokens.end()) tokens.push_back(text);
  }
  return tokens;
}

/// tiktoken's way: a word that is a token, else the neighbours that join to the token of the lowest rank.
Ids plain_ids(const Strings& tokens, const std::string& text) {
  std::map<std::string, std::int32_t> ranks;
  for (const auto& token : tokens) ranks.emplace(token, static_cast<std::int32_t>(ranks.size()));
  Ids ids = {1};
  for (const auto& word : ByHand(text).gpt2()) {
    Strings parts;
    if (ranks.count(word) != 0) {
      parts = {word};
    } else {
      for (const char c : word) parts.emplace_back(1, c);
    }
    for (;;) {
      std::int32_t best = INT32_MAX;
      std::size_t place = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = ranks.find(parts[i] + parts[i + 1]);
        if (found != ranks.end() && found->second < best) {
          best = found->second;
          place = i;
        }
      }
      if (best == INT32_MAX) break;
      parts[place] += parts[place + 1];
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
    for (const auto& part : parts) ids.push_back(ranks.at(part) + kSpecial);
  }
  return ids;
}

TEST(Tekken, AsThePlainTokenizer) {
  std::mt19937 random(21);
  const TempFolder folder;
  for (int vocabulary = 0; vocabulary < 4; ++vocabulary) {
    const Strings tokens = random_tokens(random, 256 + 400);
    folder.put("tekken.json", tekken_file(tokens).dump());
    const auto tokenizer = load_tokenizer(folder.path());
    EXPECT_EQ(tokenizer->vocab_size(), static_cast<std::int64_t>(tokens.size()) + kSpecial);
    for (int round = case_count(200); round > 0; --round) {
      const std::string text = random_text(random, 40);
      const Ids ids = tokenizer->encode(text);
      ASSERT_EQ(ids, plain_ids(tokens, text)) << text;
      ASSERT_EQ(tokenizer->decode(ids), text);
      ASSERT_EQ(streamed(*tokenizer, ids), text);
    }
  }
}

TEST(Tekken, SpecialTokens) {
  std::mt19937 random(22);
  const Strings tokens = random_tokens(random, 260);
  const TempFolder folder;
  auto file = tekken_file(tokens);
  folder.put("tekken.json", file.dump());
  auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->encode("[INST]a[/INST]</s>"), (Ids{1, 3, kSpecial + 'a', 4, 2}));
  EXPECT_EQ(tokenizer->token_to_id("<SPECIAL_24>"), 24) << "what the file does not name has a number";
  EXPECT_EQ(tokenizer->decode(Ids{1, 3, kSpecial + 'a', 24}), "a");
  EXPECT_EQ(tokenizer->decode(Ids{1, kSpecial + 'a', 24}, false), "<s>a<SPECIAL_24>");

  // Those that the file lists, in any order.
  file["special_tokens"] = {{{"rank", 1}, {"token_str", "<begin>"}, {"is_control", true}},
                            {{"rank", 0}, {"token_str", "<s>"}, {"is_control", true}}};
  // Tokens beyond the vocabulary's size are left out.
  file["config"]["default_vocab_size"] = 256 + kSpecial;
  folder.put("tekken.json", file.dump());
  tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->vocab_size(), 256 + kSpecial);
  EXPECT_EQ(tokenizer->encode("<begin>a"), (Ids{0, 1, kSpecial + 'a'}));
  EXPECT_EQ(tokenizer->eos_id(), std::nullopt);

  // A tokenizer.json comes first.
  folder.put("tokenizer.json", tokenizer_file(spelling_model()).dump());
  EXPECT_EQ(load_tokenizer(folder.path())->encode("a"), Ids{'a'});
}

TEST(Tekken, NamesWhatIsWrong) {
  std::mt19937 random(23);
  const auto good = tekken_file(random_tokens(random, 258));
  const TempFolder folder;
  const auto error = [&](const std::string& text) {
    folder.put("tekken.json", text);
    return error_of<FileError>([&] { (void)load_tokenizer(folder.path()); });
  };
  const auto changed = [&](auto&& change) {
    auto file = good;
    change(file);
    return error(file.dump());
  };
  using Json = nlohmann::json;
  EXPECT_CONTAINS(error("[]"), "tekken.json: the JSON root is not an object");
  EXPECT_CONTAINS(changed([](Json& f) { f.erase("config"); }), "'config'");
  EXPECT_CONTAINS(changed([](Json& f) { f["config"].erase("pattern"); }), "'pattern'");
  EXPECT_CONTAINS(changed([](Json& f) { f["config"]["pattern"] = "("; }), "cannot be compiled");
  EXPECT_CONTAINS(changed([](Json& f) { f["config"]["version"] = "v13"; }), "'special_tokens'");
  EXPECT_CONTAINS(changed([](Json& f) { f["config"]["default_vocab_size"] = 1 << 30; }),
                  "default_vocab_size");
  EXPECT_CONTAINS(changed([](Json& f) { f["config"]["default_vocab_size"] = 300; }),
                  "'vocab' has 258 tokens");
  EXPECT_CONTAINS(changed([](Json& f) { f["config"]["default_num_special_tokens"] = -1; }),
                  "default_num_special_tokens");
  EXPECT_CONTAINS(changed([](Json& f) { f["config"]["default_num_special_tokens"] = 1 << 22; }),
                  "default_num_special_tokens");
  EXPECT_CONTAINS(changed([](Json& f) { f["config"]["default_num_special_tokens"] = 5; }), "more than the 5");
  EXPECT_CONTAINS(changed([](Json& f) { f["vocab"][257]["rank"] = 256; }), "number 257");
  EXPECT_CONTAINS(changed([](Json& f) { f["vocab"][257]["token_bytes"] = "!"; }), "number 257");
  EXPECT_CONTAINS(changed([](Json& f) { f["vocab"][257]["token_bytes"] = ""; }), "number 257");
  EXPECT_CONTAINS(changed([](Json& f) { f["vocab"][257]["token_bytes"] = "YQ=="; }), "number 257");
  EXPECT_CONTAINS(changed([](Json& f) { f["vocab"][7]["token_bytes"] = "YQ=="; }), "number 7");
  EXPECT_CONTAINS(changed([](Json& f) { f["vocab"][7] = 1; }), "tekken.json");
  const Json one = {{"rank", 0}, {"token_str", "<s>"}};
  EXPECT_CONTAINS(changed([&](Json& f) { f["special_tokens"] = {one, one}; }), "rank of its own");
  EXPECT_CONTAINS(changed([&](Json& f) {
                    f["special_tokens"] = {one, {{"rank", 1}, {"token_str", "<s>"}}};
                  }),
                  "'<s>' twice");
  EXPECT_CONTAINS(changed([&](Json& f) {
                    f["special_tokens"] = {one, {{"rank", 9}, {"token_str", "b"}}};
                  }),
                  "rank 9");
}

}  // namespace
}  // namespace caldera::testing
