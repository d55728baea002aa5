// Grammars of other notations than JSON schemas: regular expressions and GBNF.
#include <gtest/gtest.h>

#include <random>

#include "engine/base/error.h"
#include "tests/lm/generate/grammar_texts.h"

namespace caldera {
namespace {

using testing::takes;
using testing::vocabulary;

TEST(Notations, TakesExpressionsAsAWhole) {
  const Grammar part = Grammar::pattern("ab+|\\d{2}[^x]", vocabulary());
  for (const char* text : {"ab", "abbb", "12y", "12\xC3\xA9", "12\""}) EXPECT_TRUE(takes(part, text)) << text;
  for (const char* text : {"", "a", "xab", "abx", "12", "12x", "12yy"})
    EXPECT_FALSE(takes(part, text)) << text;
  EXPECT_TRUE(takes(Grammar::pattern("^a$|b", vocabulary()), "b"));
  EXPECT_THROW(Grammar::pattern("(?=a)", vocabulary()), ValueError);
}

// The grammars of llama.cpp's README and of its tests, in short.
TEST(Notations, TakesTheNotationOfLlamaCpp) {
  const auto of = [](const char* text) { return Grammar::gbnf(text, vocabulary()); };
  const Grammar sums = of(R"g(# sums
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws   # what is added
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)g");
  EXPECT_TRUE(takes(sums, "1+2=3\n"));
  EXPECT_TRUE(takes(sums, "(a_1 +22)*b = 3\n4=x\n"));
  for (const char* text : {"", "1+2=3", "1++2=3\n", "(1=2\n"}) EXPECT_FALSE(takes(sums, text)) << text;
  const Grammar parts = of("root ::= \"a\"{2} b{1,3} [^\\x00-\\x7F]? | .\nb ::= |\n \"b\"\n");
  for (const char* text : {"aa", "aabbb", "aa\xC3\xA9", "x", "\n"}) EXPECT_TRUE(takes(parts, text)) << text;
  for (const char* text : {"a\x01", "aabbbb", "aax"}) EXPECT_FALSE(takes(parts, text)) << text;
  // A list that ends with itself may be long, what nests has a bound.
  const Grammar list = of("root ::= \"a\" root | \"b\"");
  EXPECT_TRUE(takes(list, std::string(5000, 'a') + "b"));
  const Grammar nested = of("root ::= \"(\" root \")\" | \"x\"");
  EXPECT_TRUE(takes(nested, std::string(100, '(') + "x" + std::string(100, ')')));
  EXPECT_FALSE(takes(nested, std::string(300, '(') + "x" + std::string(300, ')')));
  std::string chain = "root ::= r20000\nr0 ::= \"x\"\n";
  for (int i = 1; i <= 20000; ++i) chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i - 1) + "\n";
  EXPECT_TRUE(takes(of(chain.c_str()), "x"));
}

TEST(Notations, RefusesWhatIsNoNotationOfLlamaCpp) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"", "no rule 'root'"},
      {"a ::= \"x\"", "no rule 'root'"},
      {"root ::= b", "line 1: there is no rule 'b'"},
      {"root = \"x\"", "'::=' is expected"},
      {"root ::= \"x\"\nroot ::= \"y\"", "there twice"},
      {"root ::=\n \"x", "line 2: a '\"' has no end"},
      {"root ::= [a", "a '[' has no ']'"},
      {"root ::= (\"a\"", "a '(' has no ')'"},
      {"root ::= \"a\" )", "goes on with what is none"},
      {"root ::= [z-a]", "out of order"},
      {"root ::= \"\\q\"", "not known"},
      {"root ::= \"\\ud800\"", "no character"},
      {"root ::= \"a\"{3,1}", "out of order"},
      {"root ::= \"a\"{999999}", "repetitions"},
      {"root ::= ((\"\"{2000}){2000}){2000}", "states"},
      {"root ::= root \"a\" | \"b\"", "itself"},
      {"root ::= e root \"a\" | \"b\"\ne ::= \"x\"?", "itself"},
      {"root ::= \"a\" root", "nothing of finite length"},
      {"root ::= *", "goes on with what is none"}};
  for (const auto& [text, message] : cases) {
    try {
      Grammar::gbnf(text, vocabulary());
      ADD_FAILURE() << text << " was taken";
    } catch (const ValueError& error) {
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << text << ": " << error.what();
    }
  }
  EXPECT_THROW(Grammar::gbnf("root ::= " + std::string(5000, '(') + std::string(5000, ')'), vocabulary()),
               ValueError);
  EXPECT_THROW(Grammar::gbnf("root ::= \"a\"" + std::string(5000, '*'), vocabulary()), ValueError);
  // Damaged at random, it is refused or taken, and does no harm.
  const std::string whole =
      "root ::= (e \"=\" [a-z\\x41]{1,3} \"\\n\")+ # c\ne ::= \"(\" e? \")\" | [^0-9] . | e2*\ne2 ::= "
      "\"\\u00e9\"";
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (unsigned k = 1 + random() % 4; k > 0; --k) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text.erase(at, 1 + random() % 5);
      else
        text.insert(at, 1, "(){}[]\"\\|:=#\n*+?,-.9a\xFF"[random() % 22]);
      if (text.empty()) break;
    }
    try {
      const auto constraint = Grammar::gbnf(text, vocabulary()).constraint();
      constraint->allowed();
    } catch (const ValueError&) {
    }
  }
}

}  // namespace
}  // namespace caldera
