// Each component of a tokenizer.json by itself. What is expected follows from the component's definition in
// the library that defines the format; where it is not plain, a comment derives it.
#include <gtest/gtest.h>

#include "lm/tokenizers/sources/gguf_vocabulary.h"
#include "tests/lm/tokenizers/tokenizer_tests.h"

namespace caldera::testing {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

json sequence(const char* field, const json& steps) { return {{"type", "Sequence"}, {field, steps}}; }

TEST(Normalizers, NormalForms) {
  const std::string composed = "\xC3\xA9";      // U+00E9
  const std::string decomposed = "e\xCC\x81";   // e U+0301
  const std::string ligature = "\xEF\xAC\x81";  // U+FB01, compatible with "fi"
  EXPECT_EQ(normalized({{"type", "NFC"}}, decomposed + ligature), composed + ligature);
  EXPECT_EQ(normalized({{"type", "NFD"}}, composed + ligature), decomposed + ligature);
  EXPECT_EQ(normalized({{"type", "NFKC"}}, decomposed + ligature), composed + "fi");
  EXPECT_EQ(normalized({{"type", "NFKD"}}, composed + ligature), decomposed + "fi");
}

TEST(Normalizers, CharacterByCharacter) {
  // U+0130 becomes i and U+0307; a final sigma is no special case, as characters are looked at alone.
  EXPECT_EQ(normalized({{"type", "Lowercase"}}, "ÀB \xC4\xB0 ΣΑΣ"), "àb i\xCC\x87 σασ");
  const json accents = sequence("normalizers", {{{"type", "NFD"}}, {{"type", "StripAccents"}}});
  EXPECT_EQ(normalized(accents, "Crème Brûlée ё"), "Creme Brulee е");
  EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}}, "\xC2\xA0 a b\n"),
            "a b");
  EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}}, " a "), " a");
  // U+0001 goes; tab, U+200B, U+2581 and U+FFFD become spaces; U+0085 stays.
  EXPECT_EQ(normalized({{"type", "Nmt"}},
                       "a\x01\tb\xE2\x80\x8B"
                       "c\xE2\x96\x81\xEF\xBF\xBD\xC2\x85"),
            "a b c  \xC2\x85");
  EXPECT_EQ(normalized({{"type", "ByteLevel"}}, " é"), "\xC4\xA0\xC3\x83\xC2\xA9") << "Ġ Ã ©";
}

TEST(Normalizers, PrependAndReplace) {
  EXPECT_EQ(normalized({{"type", "Prepend"}, {"prepend", "x"}}, "y"), "xy");
  EXPECT_EQ(normalized({{"type", "Prepend"}, {"prepend", "x"}}, ""), "");
  EXPECT_EQ(normalized({{"type", "Replace"}, {"pattern", {{"String", "a."}}}, {"content", "b"}}, "aaa.ac"),
            "aabac");
  EXPECT_EQ(
      normalized({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}}, "a   b  c d"),
      "a b c d");
  EXPECT_EQ(normalized({{"type", "Replace"}, {"pattern", {{"Regex", "^"}}}, {"content", "> "}}, "a\nb\n"),
            "> a\n> b\n")
      << "^ is the beginning of any line";
  EXPECT_EQ(normalized({{"type", "Replace"}, {"pattern", {{"Regex", "(a)"}}}, {"content", "$1\\1"}}, "a"),
            "$1\\1")
      << "the replacement stands as it is";
}

TEST(Normalizers, Bert) {
  const json all = {{"type", "BertNormalizer"}};  // every field at its default
  EXPECT_EQ(normalized(all, "Héllo\tW\x01orld\xEF\xBF\xBD 你好"), "hello world  你  好 ");
  const json cased = {{"type", "BertNormalizer"}, {"lowercase", false}, {"strip_accents", nullptr}};
  EXPECT_EQ(normalized(cased, "Hé"), "Hé") << "accents go with case, unless said otherwise";
  const json accents = {{"type", "BertNormalizer"},
                        {"lowercase", true},
                        {"strip_accents", false},
                        {"handle_chinese_chars", false},
                        {"clean_text", false}};
  EXPECT_EQ(normalized(accents, "HÉ\t你"), "hé\t你");
}

/// Base64, the plain way.
std::string base64(const std::string& bytes) {
  const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned bits = 0;
    for (std::size_t j = i; j < i + 3; ++j) {
      bits = bits << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0U);
    }
    for (int shift = 18; shift >= 0; shift -= 6) out += digits[bits >> shift & 63];
  }
  for (std::size_t i = 0; i < (3 - bytes.size() % 3) % 3; ++i) out[out.size() - 1 - i] = '=';
  return out;
}

/// A charsmap of three entries, "e" -> "1", "x" -> "y" and "xz" -> "w", as Darts-clone lays a trie out: a
/// unit has a label (bits 0-7), whether a text ends there (bit 8) and how far its children are (from bit 10
/// on, by exclusive or); a text's value is the unit at distance 0, with bit 31.
std::string small_charsmap() {
  std::vector<std::uint32_t> units(0x200, 0);
  units[0] = 0x100U << 10;  // the root's children lie at 0x100 ^ label
  const auto put = [&](std::size_t at, unsigned char label, std::size_t children, std::uint32_t value) {
    units[at] = static_cast<std::uint32_t>(at ^ children) << 10 | 0x100U | label;
    units[children] = 0x80000000U | value;
  };
  put(0x100 ^ 'e', 'e', 0x0A0, 0);  // replacements: "1" at 0, "y" at 2, "w" at 4
  put(0x100 ^ 'x', 'x', 0x0B0, 2);
  put(0x0B0 ^ 'z', 'z', 0x0D0, 4);
  std::string bytes;
  const auto word = [&](std::uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> 8 * i);
  };
  word(static_cast<std::uint32_t>(units.size() * 4));
  for (const auto unit : units) word(unit);
  return bytes + std::string("1\0y\0w\0", 6);
}

TEST(Normalizers, Precompiled) {
  const json map = {{"type", "Precompiled"}, {"precompiled_charsmap", base64(small_charsmap())}};
  EXPECT_EQ(normalized(map, "bex"), "b1y");
  EXPECT_EQ(normalized(map, "xz"), "yz") << "two clusters, each by itself";
  EXPECT_EQ(normalized(map, "e\xCC\x81!"), "1!") << "the shortest entry replaces the whole cluster";
  EXPECT_EQ(normalized(map,
                       "\xE4\xBD\xA0"
                       "e\r\nx"),
            "\xE4\xBD\xA0"
            "1\r\ny");
  // e and two marks: six bytes and more are looked at a character at a time.
  EXPECT_EQ(normalized(map, "e\xCC\x81\xCC\x82\xCC\x83"), "1\xCC\x81\xCC\x82\xCC\x83");
  EXPECT_EQ(normalized({{"type", "Precompiled"}, {"precompiled_charsmap", ""}}, "e"), "e");

  // SentencePiece itself takes the longest entry.
  GgufVocabulary vocabulary;
  vocabulary.model = "t5";
  vocabulary.tokens = {"<unk>", "\xE2\x96\x81", "w", "1", "z"};
  vocabulary.token_types = {2, 1, 1, 1, 1};
  vocabulary.scores = {0, -1, -1, -1, -1};
  vocabulary.unknown_id = 0;
  const std::string charsmap = small_charsmap();
  vocabulary.precompiled_charsmap.assign(charsmap.begin(), charsmap.end());
  EXPECT_EQ(make_tokenizer(vocabulary, "f")->encode("xze", false), (Ids{1, 2, 3}));
}

TEST(PreTokenizers, ByteLevel) {
  const json plain = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  // Ġ is a space, Ċ a new line.
  const Words expected = {"I", "'ll", "Ġsee", "Ġ", "Ġ123", "!!", "Ċ", "x"};
  EXPECT_EQ(words(plain, "I'll see  123!!\nx", expected), expected);
  const json prefixed = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}};
  EXPECT_EQ(words(prefixed, "a b", {"ĠaĠb"}), (Words{"ĠaĠb"}));
  EXPECT_EQ(words(prefixed, " a", {"Ġa"}), (Words{"Ġa"}));
  // Not at the end of a sequence: the next step sees the characters.
  const json inner = sequence(
      "pretokenizers",
      {plain,
       {{"type", "Split"}, {"pattern", {{"String", "Ġ"}}}, {"behavior", "Removed"}, {"invert", false}}});
  EXPECT_EQ(words(inner, "a b", {"a", "b"}), (Words{"a", "b"}));
}

TEST(PreTokenizers, SplitBehaviors) {
  const auto split = [](const char* behavior, bool invert) {
    return json{
        {"type", "Split"}, {"pattern", {{"String", "-"}}}, {"behavior", behavior}, {"invert", invert}};
  };
  // The example of the library's documentation.
  const std::string text = "the-final--countdown";
  const auto check = [&](const char* behavior, const Words& expected) {
    EXPECT_EQ(words(split(behavior, false), text, expected), expected) << behavior;
  };
  check("Removed", {"the", "final", "countdown"});
  check("Isolated", {"the", "-", "final", "-", "-", "countdown"});
  check("MergedWithPrevious", {"the-", "final-", "-", "countdown"});
  check("MergedWithNext", {"the", "-final", "-", "-countdown"});
  check("Contiguous", {"the", "-", "final", "--", "countdown"});
  EXPECT_EQ(words(split("Removed", true), text, {"-"}), (Words{"-", "-", "-"})) << "what is not between goes";
  const json digits = {{"type", "Split"},
                       {"pattern", {{"Regex", "\\d{1,3}(?=(\\d{3})*\\b)"}}},
                       {"behavior", "Isolated"},
                       {"invert", false}};
  EXPECT_EQ(words(digits, "1234567 a12", {"1", "234", "567", " a", "12"}),
            (Words{"1", "234", "567", " a", "12"}));
}

TEST(PreTokenizers, Metaspace) {
  const auto metaspace = [](const char* scheme, bool split) {
    return json{{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", split}};
  };
  EXPECT_EQ(words(metaspace("always", true), "Hey  you", {"▁Hey", "▁", "▁you"}),
            (Words{"▁Hey", "▁", "▁you"}));
  EXPECT_EQ(words(metaspace("never", true), "a b", {"a", "▁b"}), (Words{"a", "▁b"}));
  EXPECT_EQ(words(metaspace("always", true), " a", {"▁a"}), (Words{"▁a"})) << "not before a space";
  EXPECT_EQ(words(metaspace("always", false), "a b", {"▁a▁b"}), (Words{"▁a▁b"}));
  EXPECT_EQ(
      words({{"type", "Metaspace"}, {"replacement", "_"}, {"add_prefix_space", false}}, "a b", {"a", "_b"}),
      (Words{"a", "_b"}))
      << "as older files say it";
  // first: before what begins the text, not before what follows an added token.
  json file = tokenizer_file({{"type", "WordLevel"}, {"vocab", {{"▁a", 0}, {"a", 1}}}});
  file["pre_tokenizer"] = metaspace("first", true);
  file["added_tokens"] = {{{"id", 2}, {"content", "<x>"}, {"special", true}}};
  EXPECT_EQ(TokenizerJson(file.dump(), "t").encode("a<x>a"), (Ids{0, 2, 1}));
}

TEST(PreTokenizers, CharacterClasses) {
  EXPECT_EQ(words({{"type", "Whitespace"}}, "Hé_1! a--b", {"Hé_1", "!", "a", "--", "b"}),
            (Words{"Hé_1", "!", "a", "--", "b"}));
  EXPECT_EQ(words({{"type", "WhitespaceSplit"}},
                  " a,\xC2\xA0"
                  "b\n",
                  {"a,", "b"}),
            (Words{"a,", "b"}));
  EXPECT_EQ(words({{"type", "BertPreTokenizer"}}, "a $b。c", {"a", "$", "b", "。", "c"}),
            (Words{"a", "$", "b", "。", "c"}));
  EXPECT_EQ(words({{"type", "Digits"}, {"individual_digits", true}}, "a12½", {"a", "1", "2", "½"}),
            (Words{"a", "1", "2", "½"}));
  EXPECT_EQ(words({{"type", "Digits"}, {"individual_digits", false}}, "a12½b", {"a", "12½", "b"}),
            (Words{"a", "12½", "b"}));
  EXPECT_EQ(words({{"type", "Punctuation"}, {"behavior", "Contiguous"}}, "a!?b", {"a", "!?", "b"}),
            (Words{"a", "!?", "b"}));
  EXPECT_EQ(words({{"type", "Punctuation"}}, "a!?", {"a", "!", "?"}), (Words{"a", "!", "?"}));
  EXPECT_EQ(words({{"type", "CharDelimiterSplit"}, {"delimiter", "é"}}, "aébéé", {"a", "b"}),
            (Words{"a", "b"}));
  EXPECT_EQ(words({{"type", "FixedLength"}, {"length", 2}}, "aé你好b", {"aé", "你好", "b"}),
            (Words{"aé", "你好", "b"}));
}

TEST(PreTokenizers, UnicodeScripts) {
  EXPECT_EQ(words({{"type", "UnicodeScripts"}}, "どこで生れ。Yes", {"どこで生れ", "。", "Yes"}),
            (Words{"どこで生れ", "。", "Yes"}))
      << "kana counts as Han";
  EXPECT_EQ(words({{"type", "UnicodeScripts"}}, "Apples are りんご 林檎", {"Apples are ", "りんご 林檎"}),
            (Words{"Apples are ", "りんご 林檎"}))
      << "a space belongs to any script";
}

TEST(PostProcessors, AroundTheText) {
  json file =
      tokenizer_file({{"type", "WordLevel"}, {"vocab", {{"a", 0}, {"<s>", 1}, {"</s>", 2}, {"<b>", 3}}}});
  const auto encode = [&](const json& processor) {
    file["post_processor"] = processor;
    return TokenizerJson(file.dump(), "t").encode("a");
  };
  const json roberta = {{"type", "RobertaProcessing"}, {"sep", {"</s>", 2}}, {"cls", {"<s>", 1}}};
  EXPECT_EQ(encode(roberta), (Ids{1, 0, 2}));
  EXPECT_EQ(encode({{"type", "BertProcessing"}, {"sep", {"</s>", 2}}, {"cls", {"<s>", 1}}}), (Ids{1, 0, 2}));
  EXPECT_EQ(encode({{"type", "ByteLevel"}, {"trim_offsets", true}}), Ids{0});
  const json bos = {{"type", "TemplateProcessing"},
                    {"single", {{{"SpecialToken", {{"id", "<b>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
                    {"special_tokens", {{"<b>", {{"ids", {3}}}}}}};
  EXPECT_EQ(encode(sequence("processors", {{{"type", "ByteLevel"}}, roberta, bos})), (Ids{3, 1, 0, 2}))
      << "the later stands around the earlier";
}

TEST(Decoders, EachByItself) {
  EXPECT_EQ(decoded({{"type", "ByteLevel"}}, {"Ġthe", "Ã", "©", "Ċ"}), " theé\n");
  EXPECT_EQ(decoded({{"type", "ByteLevel"}}, {"Ã"}), "\xEF\xBF\xBD");
  EXPECT_EQ(decoded({{"type", "ByteLevel"}}, {"a b", "Ġ"}), "a b ")
      << "no byte has a space for its character";
  EXPECT_EQ(
      decoded({{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}}, {"▁Hey▁", "▁you"}),
      "Hey you")
      << "all marks of the first token go";
  EXPECT_EQ(decoded({{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "never"}}, {"▁a"}),
            " a");
  EXPECT_EQ(
      decoded({{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}, {"do", "##g", "n't", "!", "ok"}),
      "dogn't! ok");
  EXPECT_EQ(decoded({{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", false}}, {"a", "!", "##b"}),
            "a !b");
  EXPECT_EQ(decoded({{"type", "BPEDecoder"}, {"suffix", "</w>"}}, {"he", "llo</w>", "you</w>"}), "hello you");
  EXPECT_EQ(
      decoded({{"type", "CTC"}, {"pad_token", "<pad>"}, {"word_delimiter_token", "|"}, {"cleanup", true}},
              {"<pad>", "h", "h", "<pad>", "h", "|", "o"}),
      "hh o");
  EXPECT_EQ(decoded({{"type", "Replace"}, {"pattern", {{"Regex", "[ab]"}}}, {"content", "."}}, {"abc"}),
            "..c");
  EXPECT_EQ(decoded({{"type", "Strip"}, {"content", "_"}, {"start", 1}, {"stop", 2}}, {"__a___"}), "_a_");
}

TEST(AddedTokens, SingleWordsAndOverlaps) {
  json file = tokenizer_file(spelling_model(), spelling_decoder());
  file["added_tokens"] = {{{"id", 256}, {"content", "ing"}, {"single_word", true}},
                          {{"id", 257}, {"content", "<a>"}, {"special", true}},
                          {{"id", 258}, {"content", "<a><b>"}}};
  const TokenizerJson tokenizer(file.dump(), "t");
  EXPECT_EQ(tokenizer.encode("ing"), Ids{256});
  EXPECT_EQ(tokenizer.encode("-ing!"), (Ids{'-', 256, '!'}));
  EXPECT_EQ(tokenizer.encode("sing"), (Ids{'s', 'i', 'n', 'g'}));
  EXPECT_EQ(tokenizer.encode("ing_"), (Ids{'i', 'n', 'g', '_'})) << "_ is a word character";
  EXPECT_EQ(tokenizer.encode("<a><b><a>"), (Ids{258, 257})) << "the longest wins";
  EXPECT_TRUE(tokenizer.is_special(257));
  EXPECT_FALSE(tokenizer.is_special(258));
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_FALSE(tokenizer.is_special(1 << 20));
  EXPECT_EQ(tokenizer.token_bytes(257), "");
  EXPECT_EQ(tokenizer.token_bytes(258), "<a><b>");
  EXPECT_EQ(tokenizer.token_bytes(0xC3), "\xC3");
  EXPECT_EQ(tokenizer.token_bytes(5000), "");
}

TEST(TokenizerComponents, LongRunsOfMarksAreOrdered) {
  // Each mark by itself composes with nothing; by hand: all of the lower class, then all of the higher one.
  const auto repeated = [](const std::string& unit, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += unit;
    return text;
  };
  for (const int times : {1, 31, 32, 33, 100, 150'000}) {
    const std::string mixed = repeated("\xCC\xBF\xCC\xA9", times);  // U+033F of class 230, U+0329 of 220
    const std::string ordered = repeated("\xCC\xA9", times) + repeated("\xCC\xBF", times);
    for (const char* form : {"NFC", "NFD", "NFKC", "NFKD"}) {
      EXPECT_TRUE(normalized({{"type", form}}, "x" + mixed + "y") == "x" + ordered + "y") << form << times;
    }
    // The two parts of U+0F73 (129, 130) go their own ways, and a half-width mark (8) goes first.
    EXPECT_TRUE(normalized({{"type", "NFD"}}, repeated("\xE0\xBD\xB3", times)) ==
                repeated("\xE0\xBD\xB1", times) + repeated("\xE0\xBD\xB2", times));
    EXPECT_TRUE(normalized({{"type", "NFKD"}}, repeated("\xCC\xA9\xEF\xBE\x9E", times)) ==
                repeated("\xE3\x82\x99", times) + repeated("\xCC\xA9", times));
    // Composes across the run: a, then marks below, then the acute accent.
    EXPECT_TRUE(normalized({{"type", "NFC"}}, "a\xCC\x81" + repeated("\xCC\xA9", times)) ==
                "\xC3\xA1" + repeated("\xCC\xA9", times));
  }
}

}  // namespace
}  // namespace caldera::testing
