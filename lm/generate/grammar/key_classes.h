// KeyClasses: keys of an object, told apart by the patterns that they match.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lm/generate/grammar/pattern.h"

namespace caldera::grammar {

/// Writes keys that are none of some names, and leads each on by the patterns that it matches.
class KeyClasses {
 public:
  using Class = std::set<std::size_t>;  ///< the patterns that match, by number

  KeyClasses(const std::vector<CharacterAutomaton>& patterns, const std::vector<std::string>& names);

  /// Finds the patterns that match a text.
  Class class_of(const std::string& text) const;
  /// Writes keys, without escapes, from the opening quotation mark to the closing one. `behind` says where
  /// keys of a class lead to, or kNone for those that are not to come. Throws ValueError where the patterns
  /// have too many states together.
  void write(Rules& rules, StateId from, const std::function<StateId(const Class&)>& behind) const;

 private:
  using Places = std::set<std::pair<std::size_t, std::size_t>>;  // an automaton, a place in it

  Places closed(Places places) const;
  Places next(const Places& places, char32_t code) const;
  Class class_of(const Places& places) const;
  bool is_name(const Places& places) const;

  std::vector<CharacterAutomaton> automata_;  // the names' as the last
  std::size_t patterns_;
};

}  // namespace caldera::grammar
