#include "lm/generate/grammar/key_classes.h"

#include <array>
#include <map>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/unicode/utf8.h"

namespace caldera::grammar {
namespace {

constexpr std::size_t kMostKeyStates = 2000;
constexpr char32_t kLastKeyCode = 0x10FFFF;

/// What leads from character to character of each name.
CharacterAutomaton automaton_of(const std::vector<std::string>& names) {
  CharacterAutomaton automaton;
  automaton.places.emplace_back();
  for (const std::string& name : names) {
    std::size_t place = 0;
    for (std::string_view rest = name; !rest.empty();) {
      const caldera::detail::Character c = caldera::detail::first_character(rest);
      rest.remove_prefix(c.bytes);
      automaton.places.emplace_back();
      automaton.places[place].edges.push_back({{{c.value, c.value}}, automaton.places.size() - 1});
      place = automaton.places.size() - 1;
    }
    automaton.places[place].accepts = true;
  }
  return automaton;
}

}  // namespace

KeyClasses::KeyClasses(const std::vector<CharacterAutomaton>& patterns, const std::vector<std::string>& names)
    : automata_(patterns), patterns_(patterns.size()) {
  automata_.push_back(automaton_of(names));
}

KeyClasses::Places KeyClasses::closed(Places places) const {
  std::vector<std::pair<std::size_t, std::size_t>> open(places.begin(), places.end());
  while (!open.empty()) {
    const auto [automaton, place] = open.back();
    open.pop_back();
    for (const std::size_t to : automata_[automaton].places[place].skips)
      if (places.emplace(automaton, to).second) open.emplace_back(automaton, to);
  }
  return places;
}

KeyClasses::Places KeyClasses::next(const Places& places, char32_t code) const {
  Places result;
  for (const auto& [automaton, place] : places)
    for (const CharacterAutomaton::Edge& edge : automata_[automaton].places[place].edges)
      for (const CodeRange range : edge.ranges)
        if (range.low <= code && code <= range.high) result.emplace(automaton, edge.to);
  return closed(std::move(result));
}

KeyClasses::Class KeyClasses::class_of(const Places& places) const {
  Class result;
  for (const auto& [automaton, place] : places)
    if (automaton < patterns_ && automata_[automaton].places[place].accepts) result.insert(automaton);
  return result;
}

bool KeyClasses::is_name(const Places& places) const {
  for (const auto& [automaton, place] : places)
    if (automaton == patterns_ && automata_[automaton].places[place].accepts) return true;
  return false;
}

KeyClasses::Class KeyClasses::class_of(const std::string& text) const {
  Places places;
  for (std::size_t i = 0; i < automata_.size(); ++i) places.emplace(i, 0);
  places = closed(std::move(places));
  for (std::string_view rest = text; !rest.empty();) {
    const caldera::detail::Character c = caldera::detail::first_character(rest);
    rest.remove_prefix(c.bytes);
    places = next(places, c.value);
  }
  return class_of(places);
}

void KeyClasses::write(Rules& rules, StateId from, const std::function<StateId(const Class&)>& behind) const {
  std::map<Places, StateId> states;
  std::vector<Places> open;
  const auto state_of = [&](Places places) {
    const auto [found, is_new] = states.try_emplace(std::move(places), kNone);
    if (is_new) {
      if (states.size() > kMostKeyStates)
        throw ValueError("grammar: the patterns of keys have too many states together");
      found->second = rules.add_state();
      open.push_back(found->first);
    }
    return found->second;
  };
  Places begin;
  for (std::size_t i = 0; i < automata_.size(); ++i) begin.emplace(i, 0);
  rules.text(from, "\"", state_of(closed(std::move(begin))));
  std::map<Class, StateId> ends;
  constexpr std::array<CodeRange, 3> kUnescaped{
      {{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, kLastKeyCode}}};
  while (!open.empty()) {
    const Places places = std::move(open.back());
    open.pop_back();
    const StateId state = states.at(places);
    if (!is_name(places)) {
      const Class matched = class_of(places);
      const auto [end, is_new] = ends.try_emplace(matched, kNone);
      if (is_new) end->second = behind(matched);
      if (end->second != kNone) rules.text(state, "\"", end->second);
    }
    // Between two cuts all characters lead to the same places.
    std::set<char32_t> cuts;
    for (const auto& [automaton, place] : places)
      for (const CharacterAutomaton::Edge& edge : automata_[automaton].places[place].edges)
        for (const CodeRange range : edge.ranges) {
          cuts.insert(range.low);
          cuts.insert(range.high + 1);
        }
    for (const CodeRange plain : kUnescaped) {
      for (char32_t low = plain.low; low <= plain.high;) {
        const auto cut = cuts.upper_bound(low);
        const char32_t high = cut == cuts.end() ? plain.high : std::min<char32_t>(plain.high, *cut - 1);
        add_utf8(rules, state, {low, high}, state_of(next(places, low)));
        low = high + 1;
      }
    }
  }
}

}  // namespace caldera::grammar
