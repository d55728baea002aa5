// What tests of tokenizers share: small files, golden cases, random texts.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "lm/tokenizers/sources/tokenizer_json.h"
#include "lm/tokenizers/tokenizer.h"

namespace caldera::testing {

using Ids = std::vector<std::int32_t>;

/// Ids 0..255 are the tokens "<0x00>".."<0xFF>": a model that spells out whatever text it is given.
nlohmann::json spelling_model();
/// What undoes it.
nlohmann::json spelling_decoder();

/// A tokenizer.json with these stages and no added tokens.
nlohmann::json tokenizer_file(const nlohmann::json& model, const nlohmann::json& decoder = nullptr);

/// The text that a normalizer makes of `text`, seen through a model that spells.
std::string normalized(const nlohmann::json& normalizer, const std::string& text);

/// The words that a pre-tokenizer makes of `text`: those of `expected` by their text, any other as "<unk>".
std::vector<std::string> words(const nlohmann::json& pre_tokenizer, const std::string& text,
                               const std::vector<std::string>& expected);

/// What a decoder makes of these tokens.
std::string decoded(const nlohmann::json& decoder, const std::vector<std::string>& tokens);

/// A text of up to `most` characters of many scripts, spaces, digits, punctuation and pieces of words.
std::string random_text(std::mt19937& random, int most);

/// How many random texts a test takes: `few`, or CALDERA_TOKENIZER_CASES where that is set.
int case_count(int few);

struct GoldenCase {
  std::string text;
  Ids ids;
};
/// The cases of a folder with golden.inp and golden.out.
std::vector<GoldenCase> golden_cases(const std::filesystem::path& dir);

/// Checks ids, the way back and the way back token by token.
void expect_golden(const Tokenizer& tokenizer, const std::vector<GoldenCase>& cases);

/// The text of `ids` piece by piece; each piece must be UTF-8.
std::string streamed(const Tokenizer& tokenizer, const Ids& ids);

std::string file_text(const std::filesystem::path& path);

}  // namespace caldera::testing
