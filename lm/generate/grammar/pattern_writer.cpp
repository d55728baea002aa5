#include <map>
#include <utility>

#include "lm/generate/grammar/pattern.h"

namespace caldera::grammar {

RuleId PatternWriter::set_rule(const std::vector<CodeRange>& ranges) {
  std::vector<std::pair<char32_t, char32_t>> key;
  key.reserve(ranges.size());
  for (const CodeRange range : ranges) key.emplace_back(range.low, range.high);
  const auto found = sets_.find(key);
  if (found != sets_.end()) return found->second;
  const RuleId rule = rules_.add_rule();
  rules_.accept(json_.characters(rules_.begin(rule), ranges));
  sets_.emplace(std::move(key), rule);
  return rule;
}

StateId add_pattern(Rules& rules, StateId from, const CharacterAutomaton& automaton) {
  const StateId end = rules.add_state();
  std::vector<StateId> states;
  for (std::size_t i = 0; i < automaton.places.size(); ++i) states.push_back(rules.add_state());
  rules.skip(from, states.front());
  for (std::size_t i = 0; i < states.size(); ++i) {
    const CharacterAutomaton::Place& place = automaton.places[i];
    if (place.accepts) rules.skip(states[i], end);
    for (const std::size_t to : place.skips) rules.skip(states[i], states[to]);
    for (const CharacterAutomaton::Edge& edge : place.edges)
      for (const CodeRange range : edge.ranges) add_utf8(rules, states[i], range, states[edge.to]);
  }
  return end;
}

// A state for each place and number of characters so far; where there is no most, numbers end at the least.
StateId PatternWriter::write(StateId from, const CharacterAutomaton& automaton, std::size_t least,
                             std::optional<std::size_t> most) {
  using Key = std::pair<std::size_t, std::size_t>;
  const StateId end = rules_.add_state();
  std::map<Key, StateId> states;
  std::vector<Key> open;
  const auto state_of = [&](Key key) {
    const auto [found, is_new] = states.try_emplace(key, kNone);
    if (is_new) {
      found->second = rules_.add_state();
      open.push_back(key);
    }
    return found->second;
  };
  rules_.skip(from, state_of({0, 0}));
  while (!open.empty()) {
    const Key key = open.back();
    open.pop_back();
    const auto [at, count] = key;
    const StateId state = states.at(key);
    const CharacterAutomaton::Place& place = automaton.places[at];
    if (place.accepts && count >= least) rules_.skip(state, end);
    for (const std::size_t to : place.skips) rules_.skip(state, state_of({to, count}));
    if (most && count == *most) continue;
    const std::size_t next = most ? count + 1 : std::min(count + 1, least);
    for (const CharacterAutomaton::Edge& edge : place.edges)
      rules_.call(state, set_rule(edge.ranges), state_of({edge.to, next}));
  }
  return end;
}

}  // namespace caldera::grammar
