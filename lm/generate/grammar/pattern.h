// Pattern: a regular expression of a JSON schema, as an automaton over characters.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lm/generate/grammar/json_text.h"

namespace caldera::grammar {

/// Returns all code points up to `last` that are not in the ranges.
std::vector<CodeRange> opposite_ranges(const std::vector<CodeRange>& ranges, char32_t last);

/// States that characters lead between; the first is where it begins.
struct CharacterAutomaton {
  struct Edge {
    std::vector<CodeRange> ranges;
    std::size_t to = 0;
  };
  struct Place {
    std::vector<Edge> edges;
    std::vector<std::size_t> skips;
    bool accepts = false;
  };
  std::vector<Place> places;
};

/// Reads an expression of the subset that is regular and that JavaScript and Python read alike: characters,
/// ".", classes, \d \w \s and their opposites (of ASCII), groups, "|", "*", "+", "?", "{n,m}", and the
/// anchors ^ and $ at the ends of a whole alternative. Without an anchor anything may stand before, or
/// behind; with `whole` the expression is for the whole text, as if both anchors were there. Throws
/// ValueError that names what else there is; `where` begins the message.
CharacterAutomaton read_pattern(std::string_view pattern, const std::string& where, bool whole = false);

/// Writes what an automaton accepts as plain text. Returns the state behind it.
StateId add_pattern(Rules& rules, StateId from, const CharacterAutomaton& automaton);

/// Writes what an automaton accepts as the content of a JSON string of `least` to `most` characters.
class PatternWriter {
 public:
  PatternWriter(Rules& rules, JsonText& json) : rules_(rules), json_(json) {}

  /// Returns the state behind the content.
  StateId write(StateId from, const CharacterAutomaton& automaton, std::size_t least,
                std::optional<std::size_t> most);

 private:
  RuleId set_rule(const std::vector<CodeRange>& ranges);

  Rules& rules_;
  JsonText& json_;
  std::map<std::vector<std::pair<char32_t, char32_t>>, RuleId> sets_;
};

}  // namespace caldera::grammar
