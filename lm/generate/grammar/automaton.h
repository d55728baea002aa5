// Automaton: follows a text byte by byte through the rules of a grammar.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lm/generate/grammar/rules.h"

namespace caldera::grammar {

/// A pushdown automaton whose sets of places are numbered as they are met, so that a step that has been made
/// before is one look into a table. A place is a state and a stack of the states to return to; the stacks
/// share their beginnings. Not for use from several threads at once.
class Automaton {
 public:
  /// A set of places. Numbers hold until clear().
  using Set = std::int32_t;
  static constexpr Set kDead = -1;  ///< no place: the text is none of the grammar's

  /// `rules` have been pruned, and begin at `root`.
  Automaton(Rules rules, RuleId root);

  Set start() const { return 0; }
  /// Returns where a byte leads to.
  Set next(Set from, std::uint8_t byte) {
    const Set to = table_[static_cast<std::size_t>(from)][byte];
    return to != kUnknown ? to : compute_next(from, byte);
  }
  /// Whether the text may end here.
  bool accepts(Set set) const { return accepts_[static_cast<std::size_t>(set)]; }

  /// Sets that are numbered: each takes about a kilobyte.
  std::size_t size() const { return sets_.size(); }
  /// Forgets all sets but the first.
  void clear();

 private:
  struct Place {
    StateId state;
    std::int32_t stack;  // a number of stacks_, or kEmpty
    bool operator==(const Place&) const = default;
    auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr): of the comparison
  };
  using Places = std::vector<Place>;
  struct Stack {
    StateId to;  // where the rule on top returns to
    std::int32_t below;
    std::int32_t depth;
  };
  struct HashPlaces {
    std::size_t operator()(const Places& places) const;
  };

  static constexpr Set kUnknown = -2;
  static constexpr std::int32_t kEmpty = -1;

  Set compute_next(Set from, std::uint8_t byte);
  Set number(const Places& places);
  std::int32_t push(StateId to, std::int32_t below);
  std::int32_t depth(std::int32_t stack) const {
    return stack == kEmpty ? 0 : stacks_[static_cast<std::size_t>(stack)].depth;
  }
  bool only_ends(StateId state) const;

  Rules rules_;
  RuleId root_;
  std::vector<std::array<Set, 256>> table_;
  std::vector<Places> sets_;
  std::vector<bool> accepts_;
  std::unordered_map<Places, Set, HashPlaces> numbers_;
  std::vector<Stack> stacks_;
  std::unordered_map<std::uint64_t, std::int32_t> stack_numbers_;
};

}  // namespace caldera::grammar
