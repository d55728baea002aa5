#include "engine/device/control/turn_cache.h"

#include <algorithm>

namespace caldera {

std::int64_t TurnCache::most_turns(std::size_t part) const {
  // What a submit costs is little beside so many steps; a table of arguments for more takes megabytes.
  constexpr std::int64_t kMostSteps = 4096, kMostTurns = 512;
  const Plan& plan = *step_.parts[part].plan;
  if (!backend_.runs_ahead() || has_control(plan)) return 1;
  const auto steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(plan.steps.size()));
  std::int64_t turns = 1;
  while (2 * turns <= kMostTurns && 2 * turns * steps <= kMostSteps) turns *= 2;
  return turns;
}

TurnCache::Turns& TurnCache::turns_of(std::size_t part, std::int64_t turns) {
  const std::scoped_lock lock(mutex_);
  Turns& made = turns_[{part, turns}];
  if (made.executable == nullptr) {
    UnrolledTurns unrolled = unroll(step_, part, turns);
    made = {backend_.prepare(std::move(unrolled.plan)), std::move(unrolled.slots)};
  }
  return made;
}

std::size_t TurnCache::bytes() const {
  const std::scoped_lock lock(mutex_);
  std::size_t bytes = 0;
  for (const auto& [key, turns] : turns_) {
    if (turns.executable != nullptr) bytes += turns.executable->bytes();
  }
  return bytes;
}

}  // namespace caldera
