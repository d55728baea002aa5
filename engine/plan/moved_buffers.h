// Moved buffers: a plan for devices that find operands by buffer alone.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera {

/// A buffer that starts where another does, moved by one of Plan::positions.
struct MovedBuffer {
  std::int32_t of = -1;
  std::int32_t position = -1;
};

/// The plan with a buffer more, at the end, for every place that some operand is moved to; the operands name
/// those, and none has a position any more. `moved` receives what the further buffers are.
Plan with_moved_buffers(const Plan& plan, std::vector<MovedBuffer>& moved);

}  // namespace caldera
