// Several turns of a loop as one plan, so that a device gets them in one submit.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera {

/// Turns one after the other, all of whose buffers are bound from outside.
struct UnrolledTurns {
  enum class Is : std::uint8_t {
    first_carry,   // index: the carry, as it is before the first turn
    last_carry,    // as it is behind the last turn, and behind every other one before
    middle_carry,  // as it is behind the turns between
    parameter,     // index: of the step; the same in all turns
    slice,         // index: of the step: a slice, or a tensor of a list; turn
    result,        // index: of the part; turn
    arena,         // index: the buffer of the part's plan
  };
  struct Slot {
    Is is{};
    std::uint32_t index = 0;
    std::int64_t turn = 0;
  };
  std::shared_ptr<const Plan> plan;
  std::vector<Slot> slots;  // of the plan
};

/// `turns` of part `part` of the step, one of whose plans runs none of its own. The carries come first among
/// its results.
UnrolledTurns unroll(const ControlStep& step, std::size_t part, std::int64_t turns);

}  // namespace caldera
