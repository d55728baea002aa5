#include "lm/tokenizers/pipeline/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/unicode/characters.h"
#include "lm/tokenizers/vocabulary/token_table.h"

namespace caldera::detail {
namespace {

/// Whether a word character ends or begins a text.
bool ends_with_word(std::string_view text) { return !text.empty() && is_word(last_character(text).value); }
bool starts_with_word(std::string_view text) { return !text.empty() && is_word(first_character(text).value); }

std::size_t trailing_space(std::string_view text) {
  const std::size_t size = text.size();
  while (!text.empty() && is_white_space(last_character(text).value)) {
    text.remove_suffix(last_character(text).bytes);
  }
  return size - text.size();
}

std::size_t leading_space(std::string_view text) {
  const std::size_t size = text.size();
  while (!text.empty() && is_white_space(first_character(text).value)) {
    text.remove_prefix(first_character(text).bytes);
  }
  return size - text.size();
}

}  // namespace

AddedToken read_added_token(const JsonFields& fields, std::int64_t id) {
  if (id < 0 || id > kMaxTokenId) fields.fail("id", fmt::format("is {}, out of range", id));
  const bool special = fields.boolean("special").value_or(false);
  AddedToken token{.id = static_cast<std::int32_t>(id),
                   .content = fields.require_string("content"),
                   .single_word = fields.boolean("single_word").value_or(false),
                   .lstrip = fields.boolean("lstrip").value_or(false),
                   .rstrip = fields.boolean("rstrip").value_or(false),
                   .normalized = fields.boolean("normalized").value_or(false),
                   .special = special};
  if (token.content.size() > kMaxTokenBytes) {
    fields.fail("content",
                fmt::format("has {} bytes; the limit is {}", token.content.size(), kMaxTokenBytes));
  }
  return token;
}

std::vector<AddedToken> read_added_tokens(const nlohmann::json& list, const std::string& where) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) return tokens;
  if (!list.is_array()) throw FileError(fmt::format("{}: field 'added_tokens' must be a list", where));
  const std::string entry_where = where + ": added_tokens";
  for (const auto& entry : list) {
    const JsonFields fields(entry, entry_where);
    tokens.push_back(read_added_token(fields, fields.require_integer("id")));
  }
  return tokens;
}

TokenFinder::TokenFinder(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {
  std::vector<ByteTrie::Entry> entries;
  // Of equal texts the trie keeps the last; the first of them is meant.
  for (std::size_t i = patterns_.size(); i-- > 0;) {
    entries.emplace_back(patterns_[i].text, static_cast<std::int32_t>(i));
  }
  trie_ = ByteTrie(std::move(entries));
}

void TokenFinder::split(std::string_view text, const std::function<void(std::string_view)>& on_text,
                        const std::function<void(const AddedToken&)>& on_token) const {
  std::size_t done = 0;       // everything before is handed out
  std::size_t space_end = 0;  // of the white space that a token took along last
  const auto hand_out_text = [&](std::size_t end) {
    if (end > done) on_text(text.substr(done, end - done));
  };
  for (std::size_t at = 0; !patterns_.empty() && at < text.size();) {
    if (!trie_.begins(text[at])) {
      ++at;
      continue;
    }
    std::size_t length = 0;
    std::int32_t index = -1;
    trie_.for_each_prefix(text.substr(at), [&](std::size_t bytes, std::int32_t value) {
      length = bytes;
      index = value;
    });
    if (index < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = *patterns_[static_cast<std::size_t>(index)].token;
    std::size_t begin = at;
    std::size_t end = at + length;
    at = end;
    if (token.single_word && (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (token.lstrip && begin > done) begin -= trailing_space(text.substr(done, begin - done));
    if (token.rstrip) {
      // A token of white space may be within it: then its end is known, and not looked for at each place.
      space_end = end < space_end ? space_end : end + leading_space(text.substr(end));
      end = space_end;
    }
    hand_out_text(begin);
    on_token(token);
    done = end;
  }
  hand_out_text(text.size());
}

}  // namespace caldera::detail
