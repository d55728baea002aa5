// Memory planning: intermediates at offsets of one arena, for the order that a plan has or one that is only
// considered yet. Space is reused as soon as its last reader is done, and by what that reader writes where it
// may be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/compile/arena/arena_layout.h"
#include "engine/compile/order/step_graph.h"

namespace caldera {

/// An order of the steps of a plan, and for each position in it a time, never falling. What is touched at one
/// time is alive together: memory is reused only from one time to a later one, and by a step in the place of
/// an operand that nobody else touches at that time.
struct Timeline {
  std::vector<std::uint32_t> order;
  std::vector<std::int64_t> times;
};

/// The steps in the order that they have, a time for each dispatch.
Timeline one_after_the_other(const Plan& plan);

/// Arena blocks in places: a place is taken over from an operand, or new.
struct Places {
  std::vector<ArenaBlock> places;
  std::vector<std::int32_t> place_of;  // of each block of the graph; -1 where nothing touches it
};
Places find_places(const StepGraph& graph, const Timeline& timeline);

/// Gives the plan's arena buffers their offsets, and sets its arena_bytes, arena_cuts and peak_bytes.
void apply(Plan& plan, const StepGraph& graph, const Places& places, const ArenaLayout& layout);

}  // namespace caldera
