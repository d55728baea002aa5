// Memory planning: intermediates at offsets of one arena. Space is reused as soon as its last reader is done,
// and by what that reader writes where it may be.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/compile/arena_layout.h"
#include "engine/compile/compile.h"
#include "engine/compile/step_graph.h"

namespace caldera {
namespace {

/// When a block is touched. Time counts dispatches: the steps of one run side by side.
struct Lifetime {
  static constexpr std::int64_t kNever = -1;
  std::int64_t first = kNever;
  std::int64_t last = kNever;
  std::int32_t first_touches = 0;  // steps of the first dispatch that touch it
  std::int32_t last_touches = 0;   // of the last
  std::int32_t place = -1;         // the place that it lies in

  void touch(std::int64_t now) {
    if (first == kNever) first = now;
    if (last != now) last_touches = 0;
    last = now;
    ++last_touches;
    if (first == now) ++first_touches;
  }
};

}  // namespace

void plan_memory(Plan& plan) {
  const StepGraph graph(plan);
  std::vector<Lifetime> lifetimes(graph.bytes.size());
  std::int64_t now = -1;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (!plan.steps[s].joined || now < 0) ++now;
    for (std::int32_t block : graph.touches[s]) lifetimes[static_cast<std::size_t>(block)].touch(now);
  }

  // A block lies in a new place, or in that of an operand which it takes over from its last reader.
  std::vector<ArenaBlock> places;
  now = -1;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (!plan.steps[s].joined || now < 0) ++now;
    match_replacements(
        graph.replacements[s],
        [&](std::int32_t output, std::int32_t operand) {
          const Lifetime& to = lifetimes[static_cast<std::size_t>(output)];
          const Lifetime& from = lifetimes[static_cast<std::size_t>(operand)];
          return to.first == now && to.first_touches == 1 && to.place < 0 && from.last == now &&
                 from.last_touches == 1 && from.place >= 0 && from.first < now;
        },
        [&](std::int32_t output, std::int32_t operand) {
          Lifetime& to = lifetimes[static_cast<std::size_t>(output)];
          to.place = lifetimes[static_cast<std::size_t>(operand)].place;
          places[static_cast<std::size_t>(to.place)].last = to.last;
        });
    for (std::int32_t block : graph.touches[s]) {
      Lifetime& lifetime = lifetimes[static_cast<std::size_t>(block)];
      if (lifetime.place >= 0) continue;
      lifetime.place = static_cast<std::int32_t>(places.size());
      places.push_back({graph.bytes[static_cast<std::size_t>(block)], lifetime.first, lifetime.last});
    }
  }

  const ArenaLayout layout = lay_out(places);
  for (std::size_t b = 0; b < lifetimes.size(); ++b) {
    const std::int32_t place = lifetimes[b].place;
    plan.buffers[static_cast<std::size_t>(graph.first_block) + b].arena_offset =
        place < 0 ? 0 : layout.offsets[static_cast<std::size_t>(place)];
  }
  plan.arena_bytes = layout.bytes;
  plan.peak_bytes = plan.arena_bytes;
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.role == BufferRole::output) plan.peak_bytes += buffer.bytes;
  }
}

}  // namespace caldera
