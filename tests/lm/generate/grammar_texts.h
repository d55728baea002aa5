// What tests of grammars share: a vocabulary, texts that are drawn of a grammar, and whether it takes one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lm/generate/grammar/grammar.h"

namespace caldera::testing {

inline constexpr std::int32_t kEnd = 256;

// Single bytes, an end, and pieces of texts such as vocabularies have: within characters and across pieces of
// JSON.
inline const std::vector<std::string>& token_bytes() {
  static const std::vector<std::string> kTokens = [] {
    std::vector<std::string> result(257);
    for (int i = 0; i < 256; ++i) result[static_cast<std::size_t>(i)] = std::string(1, static_cast<char>(i));
    for (const char* piece : {"{\"",
                              "\":",
                              "\": ",
                              "\",",
                              "\", \"",
                              "\"}",
                              "}}",
                              "]}",
                              "[[",
                              "{}",
                              "[]",
                              " {",
                              "true",
                              "fal",
                              "se",
                              "null",
                              "name",
                              "a",
                              "ab",
                              "abc",
                              "12",
                              "0.",
                              "-1",
                              "e+",
                              "\\u",
                              "\\ud83d",
                              "\\n",
                              "\xC3\xA9",
                              "\xC3",
                              "\xE6\x97",
                              "\xA5\xE6\x9C\xAC",
                              "\n  ",
                              "\n",
                              "  ",
                              " ",
                              "kind",
                              "\"kind\"",
                              "next",
                              "x\"",
                              "2024-",
                              "@",
                              "01",
                              "T12:"})
      result.emplace_back(piece);
    return result;
  }();
  return kTokens;
}

inline const GrammarVocabulary& vocabulary() {
  static const GrammarVocabulary kVocabulary(token_bytes(), {kEnd});
  return kVocabulary;
}

// Draws a text; after a while what ends things is preferred.
inline std::string draw_text(const Grammar& grammar, std::mt19937& random, int patience) {
  const std::unique_ptr<TokenConstraint> constraint = grammar.constraint();
  std::string text;
  for (int step = 0; step < 20000; ++step) {
    const TokenSet allowed = constraint->allowed();
    std::vector<std::int32_t> ids;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(token_bytes().size()); ++id)
      if (contains(allowed, id)) ids.push_back(id);
    std::int32_t id = ids[random() % ids.size()];
    if (step > patience) {
      for (const std::int32_t end : {kEnd, '"' + 0, '}' + 0, ']' + 0})
        if (contains(allowed, end) && random() % 8 != 0) {
          id = end;
          break;
        }
    }
    constraint->accept(id);
    if (id == kEnd) return text;
    text += token_bytes()[static_cast<std::size_t>(id)];
  }
  ADD_FAILURE() << "no end: " << text.substr(0, 300);
  return text;
}

// What is allowed is not less than what is meant: these texts can be written, byte by byte.
inline bool takes(const Grammar& grammar, const std::string& text) {
  const std::unique_ptr<TokenConstraint> constraint = grammar.constraint();
  for (const char c : text) {
    const std::int32_t id = static_cast<unsigned char>(c);
    if (!contains(constraint->allowed(), id)) return false;
    constraint->accept(id);
  }
  return contains(constraint->allowed(), kEnd);
}

}  // namespace caldera::testing
