#include "engine/compile/order/order_and_place.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "engine/compile/order/hazards.h"
#include "engine/compile/order/levels.h"
#include "engine/compile/order/memory_plan.h"
#include "engine/compile/program/limits.h"

namespace caldera {
namespace {

/// What the arena may take so that there are fewer barriers.
std::int64_t most_bytes(std::int64_t arena_bytes) {
  const auto share =
      static_cast<std::int64_t>(static_cast<double>(arena_bytes) * kArenaShareForFewerBarriers);
  return arena_bytes + std::max(share, kBytesForFewerBarriers);
}

/// An order, and where blocks are in it.
struct Candidate {
  Timeline timeline;
  Places places;
  std::int64_t peak = std::numeric_limits<std::int64_t>::max();
};

/// The order of least depth that has the lowest peak.
Candidate best_of(const Levels& levels, const StepGraph& graph) {
  Candidate best;
  for (Timeline& timeline : levels.orders()) {
    Places places = find_places(graph, timeline);
    const std::int64_t peak = peak_of(places.places);
    if (peak < best.peak) best = {std::move(timeline), std::move(places), peak};
  }
  return best;
}

/// Moves dispatches side by side, if that takes away barriers and is worth its memory.
void move_side_by_side(Plan& plan, const StepGraph& graph) {
  const int barriers = plan.barrier_count();
  if (barriers == 0) return;
  const Levels levels(plan, graph);
  if (barriers < levels.depth()) return;
  const Candidate best = best_of(levels, graph);
  const std::int64_t most = most_bytes(plan.arena_bytes);
  if (best.peak > most) return;
  const ArenaLayout layout = lay_out(best.places.places, plan.arena_segment);
  if (layout.bytes > most) return;
  apply(plan, graph, best.places, layout);
  put_in_order(plan, best.timeline.order);
  plan_barriers(plan);
}

}  // namespace

void place_in_order(Plan& plan, const StepGraph& graph) {
  const Places places = find_places(graph, one_after_the_other(plan));
  apply(plan, graph, places, lay_out(places.places, plan.arena_segment));
  plan_barriers(plan);
}

void order_and_place(Plan& plan, bool barriers_cost) {
  const StepGraph graph(plan);
  place_in_order(plan, graph);
  if (barriers_cost) move_side_by_side(plan, graph);
}

}  // namespace caldera
