#include "lm/tokenizers/pre_tokenizers/read_pre_tokenizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/base/unicode/characters.h"
#include "lm/tokenizers/pre_tokenizers/byte_level.h"
#include "lm/tokenizers/pre_tokenizers/character_splits.h"
#include "lm/tokenizers/pre_tokenizers/metaspace.h"
#include "lm/tokenizers/pre_tokenizers/pattern_split.h"

namespace caldera::detail {
namespace {

/// What the pre-tokenizer Whitespace takes for words; the rest goes.
constexpr std::string_view kWhitespaceWords = R"(\w+|[^\w\s]+)";

constexpr std::int64_t kDefaultFixedLength = 5;

/// Most steps of a sequence, which take some stack each.
constexpr std::size_t kMostPreTokenizers = 64;

SplitBehavior read_behavior(const JsonFields& fields, const char* otherwise) {
  struct Entry {
    std::string_view name;
    SplitBehavior behavior;
  };
  static constexpr Entry kEntries[] = {{"Removed", SplitBehavior::removed},
                                       {"Isolated", SplitBehavior::isolated},
                                       {"MergedWithPrevious", SplitBehavior::merged_with_previous},
                                       {"MergedWithNext", SplitBehavior::merged_with_next},
                                       {"Contiguous", SplitBehavior::contiguous}};
  const auto name = otherwise == nullptr ? fields.require_string("behavior")
                                         : fields.string("behavior").value_or(otherwise);
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.behavior;
  }
  fields.fail("behavior", fmt::format("is '{}', which is none of Removed, Isolated, MergedWithPrevious, "
                                      "MergedWithNext, Contiguous",
                                      printable(name)));
}

std::size_t read_length(const JsonFields& fields) {
  const auto length = fields.integer("length").value_or(kDefaultFixedLength);
  if (length < 1) fields.fail("length", "must be at least 1");
  return static_cast<std::size_t>(length);
}

/// Reads a field that holds one character, as UTF-8.
std::string read_character(const JsonFields& fields, const char* field, const char* otherwise) {
  auto text = otherwise == nullptr ? fields.require_string(field) : fields.string(field).value_or(otherwise);
  if (text.empty() || first_character(text).bytes != text.size()) fields.fail(field, "must be one character");
  return text;
}

/// Reads `prepend_scheme` and, of older files, `add_prefix_space`.
PrependScheme read_prepend_scheme(const JsonFields& fields) {
  const auto name = fields.string("prepend_scheme");
  if (!name) {
    return fields.boolean("add_prefix_space").value_or(true) ? PrependScheme::always : PrependScheme::never;
  }
  if (*name == "always") return PrependScheme::always;
  if (*name == "first") return PrependScheme::first;
  if (*name != "never") {
    fields.fail("prepend_scheme",
                fmt::format("is '{}', which is none of always, first, never", printable(*name)));
  }
  return PrependScheme::never;
}

/// Appends the steps of a Sequence, those of Sequences within it too.
void read_steps(const JsonFields& fields, std::vector<std::unique_ptr<PreTokenizer>>& steps) {
  for (const auto& step : fields.require_array("pretokenizers")) {
    if (step.is_null()) continue;
    const JsonFields inner(step, fields.where());
    if (inner.require_string("type") == "Sequence") {
      read_steps(inner, steps);
      continue;
    }
    if (steps.size() == kMostPreTokenizers) {
      fields.fail("pretokenizers", fmt::format("has more than {} steps", kMostPreTokenizers));
    }
    steps.push_back(read_pre_tokenizer(step, fields.where()));
  }
}

}  // namespace

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const nlohmann::json& config, const std::string& where) {
  if (config.is_null()) return nullptr;
  const JsonFields fields(config, where);
  const auto type = fields.require_string("type");
  if (type == "Sequence") {
    std::vector<std::unique_ptr<PreTokenizer>> steps;
    read_steps(fields, steps);
    return make_sequence(std::move(steps));
  }
  if (type == "ByteLevel") {
    return make_byte_level(fields.boolean("add_prefix_space").value_or(true),
                           fields.boolean("use_regex").value_or(true));
  }
  if (type == "Split") {
    return make_split(read_pattern(fields), read_behavior(fields, nullptr),
                      fields.boolean("invert").value_or(false));
  }
  if (type == "Whitespace") {
    auto words = std::make_unique<Regex>(kWhitespaceWords, Regex::Syntax::oniguruma, where);
    return make_split(TextPattern(std::move(words)), SplitBehavior::removed, true);
  }
  if (type == "WhitespaceSplit") return make_white_space_split();
  if (type == "Metaspace") {
    return make_metaspace(read_character(fields, "replacement", "\xE2\x96\x81"), read_prepend_scheme(fields),
                          fields.boolean("split").value_or(true));
  }
  if (type == "BertPreTokenizer") return make_bert_pre_tokenizer();
  if (type == "Digits") return make_digits(fields.boolean("individual_digits").value_or(false));
  if (type == "Punctuation") return make_punctuation_split(read_behavior(fields, "Isolated"));
  if (type == "CharDelimiterSplit" || type == "Delimiter") {
    return make_delimiter_split(first_character(read_character(fields, "delimiter", nullptr)).value);
  }
  if (type == "UnicodeScripts") return make_unicode_scripts();
  if (type == "FixedLength") return make_fixed_length(read_length(fields));
  throw FileError(fmt::format(
      "{}: pre_tokenizer '{}' is not supported (supported: Sequence, ByteLevel, Split, Whitespace, "
      "WhitespaceSplit, Metaspace, BertPreTokenizer, Digits, Punctuation, CharDelimiterSplit, "
      "UnicodeScripts, "
      "FixedLength)",
      where, printable(type)));
}

}  // namespace caldera::detail
