// A pattern of a tokenizer.json: a string or a regular expression. Private to lm/.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lm/base/json_file.h"
#include "lm/base/regex/regex.h"

namespace caldera::detail {

class TextPattern {
 public:
  /// A string, not empty, as it stands.
  explicit TextPattern(std::string text) : text_(std::move(text)) {}
  explicit TextPattern(std::unique_ptr<Regex> regex) : regex_(std::move(regex)) {}

  /// Calls `on_match(Regex::Match)` for the matches in `text`, from left to right.
  template <typename OnMatch>
  void for_each_match(std::string_view text, OnMatch&& on_match) const {
    if (regex_) return regex_->for_each_match(text, on_match);
    for (auto at = text.find(text_); at != std::string_view::npos; at = text.find(text_, at + text_.size())) {
      on_match(Regex::Match{at, at + text_.size()});
    }
  }

  /// `text` with `content` for each match.
  std::string replace_all(std::string_view text, std::string_view content) const;

 private:
  std::string text_;
  std::unique_ptr<Regex> regex_;
};

/// Reads field `pattern`, {"String": S} or {"Regex": R}. Throws FileError for another and for an empty
/// string.
TextPattern read_pattern(const JsonFields& fields);

}  // namespace caldera::detail
