#include "engine/compile/order/memory_plan.h"

#include <cstdint>
#include <numeric>
#include <vector>

namespace caldera {
namespace {

/// When a block is touched.
struct Lifetime {
  static constexpr std::int64_t kNever = -1;
  std::int64_t first = kNever;
  std::int64_t last = kNever;
  std::int32_t first_touches = 0;  // steps of the first time that touch it
  std::int32_t last_touches = 0;   // of the last

  void touch(std::int64_t now) {
    if (first == kNever) first = now;
    if (last != now) last_touches = 0;
    last = now;
    ++last_touches;
    if (first == now) ++first_touches;
  }
};

}  // namespace

Timeline one_after_the_other(const Plan& plan) {
  Timeline timeline;
  timeline.order.resize(plan.steps.size());
  std::iota(timeline.order.begin(), timeline.order.end(), 0U);
  timeline.times.reserve(plan.steps.size());
  std::int64_t now = -1;
  for (const Step& step : plan.steps) {
    if (!step.joined || now < 0) ++now;
    timeline.times.push_back(now);
  }
  return timeline;
}

Places find_places(const StepGraph& graph, const Timeline& timeline) {
  std::vector<Lifetime> lifetimes(graph.bytes.size());
  for (std::size_t i = 0; i < timeline.order.size(); ++i) {
    for (std::int32_t block : graph.touches[timeline.order[i]])
      lifetimes[static_cast<std::size_t>(block)].touch(timeline.times[i]);
  }

  // A block is in a new place, or in that of an operand which it takes over from its last reader.
  Places found;
  found.place_of.assign(graph.bytes.size(), -1);
  for (std::size_t i = 0; i < timeline.order.size(); ++i) {
    const std::uint32_t s = timeline.order[i];
    const std::int64_t now = timeline.times[i];
    match_replacements(
        graph.replacements[s],
        [&](std::int32_t output, std::int32_t operand) {
          const Lifetime& to = lifetimes[static_cast<std::size_t>(output)];
          const Lifetime& from = lifetimes[static_cast<std::size_t>(operand)];
          return to.first == now && to.first_touches == 1 &&
                 found.place_of[static_cast<std::size_t>(output)] < 0 && from.last == now &&
                 from.last_touches == 1 && found.place_of[static_cast<std::size_t>(operand)] >= 0 &&
                 from.first < now;
        },
        [&](std::int32_t output, std::int32_t operand) {
          const std::int32_t place = found.place_of[static_cast<std::size_t>(operand)];
          found.place_of[static_cast<std::size_t>(output)] = place;
          found.places[static_cast<std::size_t>(place)].last =
              lifetimes[static_cast<std::size_t>(output)].last;
        });
    for (std::int32_t block : graph.touches[s]) {
      const auto b = static_cast<std::size_t>(block);
      if (found.place_of[b] >= 0) continue;
      found.place_of[b] = static_cast<std::int32_t>(found.places.size());
      found.places.push_back({graph.bytes[b], lifetimes[b].first, lifetimes[b].last});
    }
  }
  return found;
}

void apply(Plan& plan, const StepGraph& graph, const Places& places, const ArenaLayout& layout) {
  for (std::size_t b = 0; b < places.place_of.size(); ++b) {
    const std::int32_t place = places.place_of[b];
    plan.buffers[static_cast<std::size_t>(graph.first_block) + b].arena_offset =
        place < 0 ? 0 : layout.offsets[static_cast<std::size_t>(place)];
  }
  plan.arena_bytes = layout.bytes;
  plan.arena_cuts = layout.cuts;
  plan.peak_bytes = plan.arena_bytes;
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.role == BufferRole::output) plan.peak_bytes += buffer.bytes;
  }
}

}  // namespace caldera
