// Regular expressions of Oniguruma's syntax: what each matches is what its documentation says.
#include <gtest/gtest.h>

#include "tests/lm/base/io_test_support.h"
#include "tests/lm/tokenizers/tokenizer_tests.h"

namespace caldera::testing {
namespace {

/// The matches of an expression, joined by "|".
std::string matches(const std::string& expression, const std::string& text) {
  const nlohmann::json split = {
      {"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Removed"}, {"invert", true}};
  nlohmann::json file = tokenizer_file(spelling_model(), spelling_decoder());
  file["pre_tokenizer"] = split;
  // A step that puts a bar before each word shows where words end.
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       nlohmann::json::array(
           {split, {{"type", "Metaspace"}, {"replacement", "|"}, {"prepend_scheme", "always"}}})}};
  const TokenizerJson tokenizer(file.dump(), "tokenizer.json");
  return tokenizer.decode(tokenizer.encode(text));
}

TEST(Expressions, ClassesAreUnicodes) {
  EXPECT_EQ(matches("\\w+", "aé1_-你\xE2\x80\xBF!"), "|aé1_|你\xE2\x80\xBF")
      << "U+203F is connector punctuation";
  EXPECT_EQ(matches("\\s", "a\xC2\x85\xE1\xA0\x8E\xE3\x80\x80"), "|\xC2\x85|\xE3\x80\x80")
      << "U+180E is no white space any more";
  EXPECT_EQ(matches("\\h+", "xfa9Gz"), "|fa9") << "hexadecimal digits";
  EXPECT_EQ(matches("\\d+", "a12\xD9\xA3"), "|12\xD9\xA3");
  EXPECT_EQ(matches("[[:alpha:]]+|[[:^alpha:]]", "aé1"), "|aé|1");
  EXPECT_EQ(matches("\\p{Uppercase_Letter}|\\p{Nd}|\\p{^L}", "aB1-"), "|B|1|-");
  EXPECT_EQ(matches("\\p{Han}+", "a你。ー"), "|你") << "the script, not its extensions";
  EXPECT_EQ(matches("\\bab\\b", "ab abc éab ab"), "|ab|ab");
}

// Letters and numbers of Unicode 15 and 16, as Oniguruma knows them: they stand apart from symbols, as older
// ones do.
TEST(Expressions, NewCharactersAreOfTheirCategories) {
  const char* const words = "\\p{L}+|\\p{N}|[^\\s\\p{L}\\p{N}]+";
  for (const char* letter :
       {"\xF0\xB1\x9A\xA0", "\xF0\x93\x91\xA0", "\xF0\x91\xBC\x84", "\xEA\x9F\x8B", "\xE1\xB2\x8A"}) {
    EXPECT_EQ(matches(words, std::string("!") + letter + "!"), std::string("|!|") + letter + "|!");
    EXPECT_EQ(matches(words, std::string("a") + letter + "b?"), std::string("|a") + letter + "b|?");
  }
  const std::string digit = "\xF0\x91\xBD\x90";  // U+11F50
  EXPECT_EQ(matches(words, "a" + digit + digit + "."), "|a|" + digit + "|" + digit + "|.");
  EXPECT_EQ(matches("\\p{Han}+", "a\xF0\xB1\x9A\xA0"), "|\xF0\xB1\x9A\xA0");
}

TEST(Expressions, ClassesNest) {
  EXPECT_EQ(matches(" ?[^(\\s|[.,!?])]+", "Hi, (you|me)"), "|Hi|you|me")
      << "the inner class is a part of the outer";
  EXPECT_EQ(matches("[a-z&&[^aeiou]]+", "hello"), "|h|ll");
  EXPECT_EQ(matches("[\\p{L}&&[^\\p{Han}]]+", "ab你c"), "|ab|c");
  EXPECT_EQ(matches("[^a-z&&[^aeiou]]+", "hEllo-"), "|E|o-") << "all but consonants of ASCII";
  EXPECT_EQ(matches("[x[^a-y]]+", "axz1"), "|xz1");
  EXPECT_EQ(matches("[]a]+", "]ab"), "|]a");
  EXPECT_EQ(matches("[a\\-c]+|[\\w-]", "a-c!"), "|a-c");
}

TEST(Expressions, LinesAndQuantifiers) {
  EXPECT_EQ(matches("^.", "ab\ncd"), "|a|c");
  EXPECT_EQ(matches("b$", "ab\nb"), "|b|b");
  EXPECT_EQ(matches("(?m)a.b", "a\nb"), "|a\nb") << "m lets . match a new line";
  EXPECT_EQ(matches("a.b", "a\nb"), "");
  EXPECT_EQ(matches("a{1,2}+", "aaaaa"), "|aaaaa") << "a quantifier of a quantified a";
  EXPECT_EQ(matches("ba{2}?", "baab"), "|baa|b");
  EXPECT_EQ(matches("a{,2}b", "aaab"), "|aab");
  EXPECT_EQ(matches("a++b|a", "aab a"), "|aab|a");
  EXPECT_EQ(matches("(?i:'S|\\u0041)", "'sa'ſ"), "|'s|a|'ſ");
  EXPECT_EQ(matches("x{a", "x{a"), "|x{a") << "no quantifier: a brace";
  EXPECT_EQ(matches("(?<=a)b|c(?!d)", "ab cd c"), "|b|c");
}

}  // namespace
}  // namespace caldera::testing
