#include "lm/generate/grammar/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "engine/base/error.h"

namespace caldera::grammar {

StateId Rules::add_state() {
  if (states_.size() >= most_)
    throw ValueError(fmt::format("grammar: more than {} states; make it simpler", most_));
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

// Which states have a way to the end of their rule: the least such set. `by_bytes`: over bytes too, else over
// nothing alone.
std::vector<bool> states_that_end(const Rules& rules, bool by_bytes) {
  // What leads on once the states that it needs are known to end.
  struct Lead {
    std::size_t from;
    int needs;
  };
  const std::vector<State>& states = rules.states();
  std::vector<Lead> leads;
  std::vector<std::vector<std::size_t>> leads_by(states.size());  // those that need a state
  std::vector<bool> ends(states.size());
  std::vector<std::size_t> open;
  const auto need = [&](StateId state) {
    leads_by[static_cast<std::size_t>(state)].push_back(leads.size() - 1);
  };
  const auto add = [&](std::size_t state) {
    if (ends[state]) return;
    ends[state] = true;
    open.push_back(state);
  };
  for (std::size_t i = 0; i < states.size(); ++i) {
    for (const StateId to : states[i].skips) {
      leads.push_back({i, 1});
      need(to);
    }
    for (const Step& step : states[i].steps) {
      if (step.rule == kNone && !by_bytes) continue;
      leads.push_back({i, step.rule == kNone ? 1 : 2});
      need(step.to);
      if (step.rule != kNone) need(rules.begin(step.rule));
    }
    if (states[i].accepts) add(i);
  }
  while (!open.empty()) {
    const std::size_t state = open.back();
    open.pop_back();
    for (const std::size_t lead : leads_by[state])
      if (--leads[lead].needs == 0) add(leads[lead].from);
  }
  return ends;
}

}  // namespace

void Rules::prune(RuleId root) {
  refuse_left_recursion();
  const std::vector<bool> ends = states_that_end(*this, true);
  const auto never_ends = [&](StateId state) { return !ends[static_cast<std::size_t>(state)]; };
  if (never_ends(begin(root))) throw ValueError("grammar: nothing matches it, or nothing of finite length");
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
  const std::vector<bool> empty = states_that_end(*this, false);
  // The rules that a rule can begin with, before any byte.
  const auto first_calls = [&](RuleId rule) {
    std::vector<RuleId> calls;
    std::vector<StateId> open{begin(rule)};
    std::unordered_set<StateId> seen(open.begin(), open.end());
    const auto go_on = [&](StateId next) {
      if (seen.insert(next).second) open.push_back(next);
    };
    while (!open.empty()) {
      const State& state = states_[static_cast<std::size_t>(open.back())];
      open.pop_back();
      for (const Step& step : state.steps) {
        if (step.rule == kNone) continue;
        calls.push_back(step.rule);
        if (empty[static_cast<std::size_t>(begin(step.rule))]) go_on(step.to);
      }
      for (const StateId next : state.skips) go_on(next);
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
        throw ValueError("grammar: a rule or a $ref leads back to itself with nothing in between");
      if (mark == Mark::closed) continue;
      mark = Mark::open;
      frames.push_back({next, first_calls(next)});
    }
  }
}

}  // namespace caldera::grammar
