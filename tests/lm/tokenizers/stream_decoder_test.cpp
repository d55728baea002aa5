// Streaming, the byte tokenizer, and the UTF-8 beneath both.
#include "lm/tokenizers/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/base/error.h"
#include "lm/base/unicode/utf8.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "lm/tokenizers/sources/tokenizer_json.h"
#include "tests/lm/tokenizers/small_tokenizer.h"

namespace caldera {
namespace {

using testing::kA;
using testing::kB;
using testing::kByte;
using testing::kSpA;
using testing::small_tokenizer;
using Ids = std::vector<std::int32_t>;

constexpr const char* kReplacement = "\xEF\xBF\xBD";

TokenizerJson make(const nlohmann::json& config) { return TokenizerJson(config.dump(), "tokenizer.json"); }

TEST(StreamDecoder, MatchesDecodeOnRandomTokens) {
  const auto tokenizer = make(small_tokenizer());
  const std::string alphabet[] = {"a", "b", " ", "é", "你", "🚀", "</s>", "\n"};
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (auto n = random() % 20; n > 0; --n) text += alphabet[random() % std::size(alphabet)];
    const auto ids = tokenizer.encode(text);
    const auto whole = tokenizer.decode(ids);
    StreamDecoder stream(tokenizer);
    std::string streamed;
    for (const auto id : ids) streamed += stream.push(id);
    ASSERT_EQ(streamed, whole) << "finish() has nothing to add to whole characters";
    EXPECT_EQ(stream.finish(), "");

    // The same with the first part as a prompt.
    const std::size_t cut = random() % (ids.size() + 1);
    StreamDecoder primed(tokenizer);
    primed.prime(std::span(ids).first(cut));
    std::string rest = tokenizer.decode(std::span(ids).first(cut));
    if (rest.ends_with(kReplacement)) continue;  // the prompt ends within a character
    for (const auto id : std::span(ids).subspan(cut)) rest += primed.push(id);
    ASSERT_EQ(rest + primed.finish(), whole);
  }
}

TEST(StreamDecoder, HoldsBackUnfinishedCharacters) {
  const auto tokenizer = make(small_tokenizer());
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push(1), "");
  EXPECT_EQ(stream.push(kSpA), "a");
  EXPECT_EQ(stream.push(kByte + 0xF0), "");
  EXPECT_EQ(stream.push(kByte + 0x9F), "");
  EXPECT_EQ(stream.push(kByte + 0x9A), "");
  EXPECT_EQ(stream.push(kByte + 0x80), "🚀");
  EXPECT_EQ(stream.push(kSpA), " a");
  EXPECT_EQ(stream.push(kByte + 0xC3), "");
  EXPECT_EQ(stream.finish(), kReplacement);
  EXPECT_EQ(stream.finish(), "");
  EXPECT_THROW(stream.push(9999), ValueError);
  EXPECT_EQ(stream.push(kB), "b") << "usable after an error";

  // Bytes that never make a character come out all the same, and the pieces stay UTF-8.
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    StreamDecoder garbage(tokenizer);
    std::string text;
    for (int i = 0; i < 40; ++i) {
      const auto piece = garbage.push(static_cast<std::int32_t>(kByte + random() % 256));
      ASSERT_TRUE(detail::is_utf8(piece));
      text += piece;
      if (i == 20) {
        EXPECT_FALSE(text.empty());
      }
    }
    ASSERT_TRUE(detail::is_utf8(garbage.finish()));
  }
}

TEST(ByteTokenizer, BytesAreIds) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(tokenizer.vocab_size(), 258);
  EXPECT_EQ(tokenizer.encode("é\n"), (Ids{256, 0xC3, 0xA9, 10}));
  EXPECT_EQ(tokenizer.encode("é", false), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(tokenizer.encode("<s>", false).size(), 3u);
  EXPECT_EQ(tokenizer.decode(Ids{256, 0xC3, 0xA9, 257}), "é");
  EXPECT_EQ(tokenizer.decode(Ids{256, 'x', 257}, false), "<s>x</s>");
  EXPECT_EQ(tokenizer.decode(Ids{0xC3, 'x', 0xFF}), kReplacement + std::string("x") + kReplacement);
  EXPECT_EQ(tokenizer.bos_id(), 256);
  EXPECT_EQ(tokenizer.eos_id(), 257);
  EXPECT_THROW((void)tokenizer.decode(Ids{258}), ValueError);
  EXPECT_THROW((void)tokenizer.decode(Ids{-1}), ValueError);

  const ByteTokenizer plain(false);
  EXPECT_EQ(plain.encode("a"), Ids{'a'});
  EXPECT_EQ(plain.bos_id(), std::nullopt);
  EXPECT_THROW((void)plain.decode(Ids{256}), ValueError);

  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push(0xC3), "");
  EXPECT_EQ(stream.push(0xA9), "é");

  // Bytes are read one by one, so the pieces are exactly the whole, whatever the bytes; lead bytes are drawn
  // often.
  std::mt19937 random(17);
  for (int round = 0; round < 2000; ++round) {
    StreamDecoder pieces(tokenizer);
    Ids ids;
    std::string text;
    for (auto n = random() % 30; n > 0; --n) {
      ids.push_back(
          static_cast<std::int32_t>(random() % 2 == 0 ? 0xE0 + random() % 32 : 0x80 + random() % 64));
      text += pieces.push(ids.back());
    }
    ASSERT_EQ(text + pieces.finish(), tokenizer.decode(ids));
  }
}

TEST(Utf8, FollowsTheStandard) {
  using detail::is_utf8;
  using detail::to_utf8;
  EXPECT_TRUE(is_utf8("aé你🚀\xF4\x8F\xBF\xBF"));
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82", "a\xC3"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
  const std::string r = kReplacement;
  // The examples of the Unicode standard, section 3.9 (tables 3-8 to 3-11).
  EXPECT_EQ(to_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(to_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(to_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(to_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
}

}  // namespace
}  // namespace caldera
