// Rules: a grammar over bytes, as automata that call one another.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace caldera::grammar {

using StateId = std::int32_t;
using RuleId = std::int32_t;
inline constexpr StateId kNone = -1;

/// A step from one state to another: over a byte in [low, high], or, with a rule, over a text of that rule.
struct Step {
  StateId to = kNone;
  RuleId rule = kNone;  ///< kNone: a byte
  std::uint8_t low = 0;
  std::uint8_t high = 0;
};

/// A state. `skips` lead on over nothing. An accepting state ends its rule.
struct State {
  std::vector<Step> steps;
  std::vector<StateId> skips;
  bool accepts = false;
};

/// A grammar that is being built: states, and rules, which begin at one of them each. A rule may call rules
/// that have no content yet, itself too. A fragment is built from a state on: each function leads from `from`
/// to the state that it returns, a new one unless it is given.
class Rules {
 public:
  /// Throws ValueError where the grammar grows beyond `most` states.
  explicit Rules(std::size_t most = 200000) : most_(most) {}

  StateId add_state();
  /// A rule without content: it begins at a state without steps.
  RuleId add_rule();
  /// `nests`: texts of the rule count as a level of nesting.
  void set_nests(RuleId rule) { nests_[static_cast<std::size_t>(rule)] = true; }
  StateId begin(RuleId rule) const { return begins_[static_cast<std::size_t>(rule)]; }
  bool nests(RuleId rule) const { return nests_[static_cast<std::size_t>(rule)]; }
  std::size_t rules() const { return begins_.size(); }
  const std::vector<State>& states() const { return states_; }

  void accept(StateId state) { at(state).accepts = true; }
  void skip(StateId from, StateId to) { at(from).skips.push_back(to); }
  StateId bytes(StateId from, std::uint8_t low, std::uint8_t high, StateId to = kNone);
  StateId text(StateId from, std::string_view text, StateId to = kNone);
  StateId call(StateId from, RuleId rule, StateId to = kNone);

  /// Takes away what cannot end, so that every state that is reached has a way to an end. Throws ValueError
  /// where `root` itself cannot end, and where a rule calls itself before any byte.
  void prune(RuleId root);

 private:
  State& at(StateId state) { return states_[static_cast<std::size_t>(state)]; }
  void refuse_left_recursion() const;

  std::size_t most_;
  std::vector<State> states_;
  std::vector<StateId> begins_;
  std::vector<bool> nests_;
};

}  // namespace caldera::grammar
