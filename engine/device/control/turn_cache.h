// TurnCache: stretches of turns of a loop that a device gets in one submit, made when they are first needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/control/unroll.h"

namespace caldera {

/// Thread-safe. `backend` and `step` must outlive it.
class TurnCache {
 public:
  struct Turns {
    std::unique_ptr<Executable> executable;
    std::vector<UnrolledTurns::Slot> slots;
  };

  TurnCache(Backend& backend, const ControlStep& step) : backend_(backend), step_(step) {}

  /// Returns the most turns of a part that the device gets at once: a power of two; 1 where it computes as it
  /// is called, or where the part runs plans of its own.
  std::int64_t most_turns(std::size_t part) const;
  /// Returns `turns` turns of a part, made ready. Throws as Backend::prepare does.
  Turns& turns_of(std::size_t part, std::int64_t turns);
  /// Estimates what it keeps, as Executable::bytes does.
  std::size_t bytes() const;

 private:
  Backend& backend_;
  const ControlStep& step_;
  std::map<std::pair<std::size_t, std::int64_t>, Turns> turns_;
  mutable std::mutex mutex_;
};

}  // namespace caldera
