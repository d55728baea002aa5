// JsonText: the rules of JSON's own pieces: strings, numbers, blanks, any value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lm/generate/grammar/rules.h"

namespace caldera::grammar {

/// Code points in [low, high].
struct CodeRange {
  char32_t low = 0;
  char32_t high = 0;
};

/// The rules of JSON's pieces, made as they are asked for.
class JsonText {
 public:
  explicit JsonText(Rules& rules) : rules_(rules) {}

  /// Blanks that may stand between two pieces: none, a space, or a line's end and an indentation.
  StateId blanks(StateId from);
  /// A character within a string, escaped or not.
  RuleId character();
  /// A string of any content.
  RuleId string();
  /// A string without escapes that is none of `names`: a key beside those that a schema lists.
  RuleId other_key(const std::vector<std::string>& names);
  RuleId number();
  /// A whole number without exponent.
  RuleId integer();
  RuleId value();
  RuleId object();
  RuleId array();

  /// A character of these within a string, each written in one way: escaped where it has to be.
  StateId characters(StateId from, const std::vector<CodeRange>& ranges, StateId to = kNone);
  /// A list of `item`s, any number, or an object of `member`s, from behind the opening bracket to in front of
  /// the closing one.
  StateId separated(StateId from, RuleId item);

 private:
  RuleId make(std::optional<RuleId>& rule);
  void add_number(StateId from, bool fraction, StateId to);

  Rules& rules_;
  std::optional<RuleId> blanks_;
  std::optional<RuleId> character_;
  std::optional<RuleId> string_;
  std::optional<RuleId> number_;
  std::optional<RuleId> integer_;
  std::optional<RuleId> value_;
  std::optional<RuleId> object_;
  std::optional<RuleId> array_;
};

/// Adds a path for each code point of the range, in UTF-8. Surrogates, which have none, are left out.
void add_utf8(Rules& rules, StateId from, CodeRange range, StateId to);

}  // namespace caldera::grammar
