#include "lm/generate/grammar/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.h"

namespace caldera::grammar {

StateId Rules::add_state() {
  if (states_.size() >= most_)
    throw ValueError(fmt::format("grammar: more than {} states; simplify the schema", most_));
  states_.emplace_back();
  return static_cast<StateId>(states_.size() - 1);
}

RuleId Rules::add_rule() {
  begins_.push_back(add_state());
  nests_.push_back(false);
  return static_cast<RuleId>(begins_.size() - 1);
}

StateId Rules::bytes(StateId from, std::uint8_t low, std::uint8_t high, StateId to) {
  if (to == kNone) to = add_state();
  at(from).steps.push_back({to, kNone, low, high});
  return to;
}

StateId Rules::text(StateId from, std::string_view text, StateId to) {
  if (text.empty()) {
    if (to == kNone) return from;
    skip(from, to);
    return to;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    from = bytes(from, byte, byte, i + 1 == text.size() ? to : kNone);
  }
  return from;
}

StateId Rules::call(StateId from, RuleId rule, StateId to) {
  if (to == kNone) to = add_state();
  at(from).steps.push_back({to, rule, 0, 0});
  return to;
}

namespace {

// Which states have a way to the end of their rule, and which rules have an end: the least such sets.
std::vector<bool> states_that_end(const Rules& rules) {
  const std::vector<State>& states = rules.states();
  std::vector<bool> ends(states.size());
  const auto ended = [&](StateId state) { return ends[static_cast<std::size_t>(state)]; };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = states.size(); i-- > 0;) {
      if (ends[i]) continue;
      const State& state = states[i];
      const bool now = state.accepts || std::any_of(state.skips.begin(), state.skips.end(), ended) ||
                       std::any_of(state.steps.begin(), state.steps.end(), [&](const Step& step) {
                         return ended(step.to) && (step.rule == kNone || ended(rules.begin(step.rule)));
                       });
      if (now) changed = ends[i] = true;
    }
  }
  return ends;
}

}  // namespace

void Rules::prune(RuleId root) {
  refuse_left_recursion();
  const std::vector<bool> ends = states_that_end(*this);
  const auto never_ends = [&](StateId state) { return !ends[static_cast<std::size_t>(state)]; };
  if (never_ends(begin(root)))
    throw ValueError("grammar: nothing matches the schema, or nothing of finite length");
  for (State& state : states_) {
    std::erase_if(state.skips, never_ends);
    std::erase_if(state.steps, [&](const Step& step) {
      return never_ends(step.to) || (step.rule != kNone && never_ends(begin(step.rule)));
    });
  }
}

// A rule that can begin with itself would be called for ever.
void Rules::refuse_left_recursion() const {
  enum class Mark : std::uint8_t { none, open, closed };
  std::vector<Mark> marks(begins_.size());
  struct Frame {
    RuleId rule;
    std::vector<RuleId> calls;
  };
  // The rules that a rule can begin with. What is called first always has a byte here: no rule is empty.
  const auto first_calls = [&](RuleId rule) {
    std::vector<RuleId> calls;
    std::vector<StateId> open{begin(rule)};
    std::vector<StateId> seen = open;
    while (!open.empty()) {
      const State& state = states_[static_cast<std::size_t>(open.back())];
      open.pop_back();
      for (const Step& step : state.steps)
        if (step.rule != kNone) calls.push_back(step.rule);
      for (const StateId next : state.skips) {
        if (std::find(seen.begin(), seen.end(), next) != seen.end()) continue;
        seen.push_back(next);
        open.push_back(next);
      }
    }
    return calls;
  };
  for (std::size_t i = 0; i < begins_.size(); ++i) {
    if (marks[i] != Mark::none) continue;
    std::vector<Frame> frames{{static_cast<RuleId>(i), first_calls(static_cast<RuleId>(i))}};
    marks[i] = Mark::open;
    while (!frames.empty()) {
      Frame& frame = frames.back();
      if (frame.calls.empty()) {
        marks[static_cast<std::size_t>(frame.rule)] = Mark::closed;
        frames.pop_back();
        continue;
      }
      const RuleId next = frame.calls.back();
      frame.calls.pop_back();
      Mark& mark = marks[static_cast<std::size_t>(next)];
      if (mark == Mark::open)
        throw ValueError("grammar: a $ref leads back to itself with nothing in between");
      if (mark == Mark::closed) continue;
      mark = Mark::open;
      frames.push_back({next, first_calls(next)});
    }
  }
}

}  // namespace caldera::grammar
