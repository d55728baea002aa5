#include "lm/generate/grammar/automaton.h"

#include <algorithm>
#include <set>

#include "engine/base/error.h"

namespace caldera::grammar {
namespace {

// Objects and lists are entered down to this many open rules, some of which are no level of nesting: readers
// of JSON have bounds of their own.
constexpr std::int32_t kMostNestedRules = 192;
constexpr std::size_t kMostAutomatonPlaces = 100000;

}  // namespace

std::size_t Automaton::HashPlaces::operator()(const Places& places) const {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const Place& place : places) {
    hash ^= (static_cast<std::uint64_t>(static_cast<std::uint32_t>(place.state)) << 32) |
            static_cast<std::uint32_t>(place.stack);
    hash *= 0x100000001b3ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

Automaton::Automaton(Rules rules, RuleId root) : rules_(std::move(rules)), root_(root) { clear(); }

void Automaton::clear() {
  table_.clear();
  sets_.clear();
  accepts_.clear();
  numbers_.clear();
  stacks_.clear();
  stack_numbers_.clear();
  number({{rules_.begin(root_), kEmpty}});
}

bool Automaton::only_ends(StateId state) const {
  const State& s = rules_.states()[static_cast<std::size_t>(state)];
  return s.accepts && s.steps.empty() && s.skips.empty();
}

std::int32_t Automaton::push(StateId to, std::int32_t below) {
  // What has nothing left to do needs no place to return to.
  if (only_ends(to)) return below;
  const std::uint64_t key =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(to)) << 32) | static_cast<std::uint32_t>(below);
  const auto [found, is_new] = stack_numbers_.try_emplace(key, static_cast<std::int32_t>(stacks_.size()));
  if (is_new) stacks_.push_back({to, below, depth(below) + 1});
  return found->second;
}

// Follows what takes no byte, and numbers what is left.
Automaton::Set Automaton::number(const Places& places) {
  Places open = places;
  std::set<Place> seen(places.begin(), places.end());
  Places result;
  bool accepts = false;
  const auto add = [&](Place place) {
    if (seen.insert(place).second) open.push_back(place);
  };
  while (!open.empty()) {
    if (seen.size() > kMostAutomatonPlaces)
      throw ValueError("grammar: too many ways to read the text; make it simpler");
    const Place place = open.back();
    open.pop_back();
    const State& state = rules_.states()[static_cast<std::size_t>(place.state)];
    bool has_bytes = false;
    for (const StateId to : state.skips) add({to, place.stack});
    for (const Step& step : state.steps) {
      if (step.rule == kNone) {
        has_bytes = true;
      } else if (!rules_.nests(step.rule) || depth(place.stack) < kMostNestedRules) {
        add({rules_.begin(step.rule), push(step.to, place.stack)});
      }
    }
    if (state.accepts && place.stack == kEmpty) accepts = true;
    if (state.accepts && place.stack != kEmpty) {
      const Stack top = stacks_[static_cast<std::size_t>(place.stack)];
      add({top.to, top.below});
    }
    if (has_bytes) result.push_back(place);
  }
  if (result.empty() && !accepts) return kDead;
  std::sort(result.begin(), result.end());
  if (accepts) result.push_back({kNone, kEmpty});  // so that sets differ that accept or do not
  const auto [found, is_new] = numbers_.try_emplace(result, static_cast<Set>(sets_.size()));
  if (is_new) {
    if (accepts) result.pop_back();
    sets_.push_back(std::move(result));
    accepts_.push_back(accepts);
    table_.emplace_back().fill(kUnknown);
  }
  return found->second;
}

Automaton::Set Automaton::compute_next(Set from, std::uint8_t byte) {
  Places places;
  for (const Place& place : sets_[static_cast<std::size_t>(from)])
    for (const Step& step : rules_.states()[static_cast<std::size_t>(place.state)].steps)
      if (step.rule == kNone && step.low <= byte && byte <= step.high)
        places.push_back({step.to, place.stack});
  const Set to = places.empty() ? kDead : number(places);
  table_[static_cast<std::size_t>(from)][byte] = to;
  return to;
}

}  // namespace caldera::grammar
