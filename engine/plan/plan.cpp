#include "engine/plan/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace caldera {

std::vector<ArenaSegment> Plan::arena_segments() const {
  std::vector<ArenaSegment> segments;
  if (arena_bytes == 0) return segments;
  std::int64_t begin = 0;
  for (const std::int64_t cut : arena_cuts) segments.push_back({std::exchange(begin, cut), cut});
  segments.push_back({begin, arena_bytes});
  return segments;
}

std::size_t Plan::arena_segment_at(std::int64_t offset) const {
  return static_cast<std::size_t>(std::upper_bound(arena_cuts.begin(), arena_cuts.end(), offset) -
                                  arena_cuts.begin());
}

int Plan::barrier_count() const {
  return static_cast<int>(
      std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.barrier_before; }));
}

int Plan::dispatch_count() const {
  return static_cast<int>(
      std::count_if(steps.begin(), steps.end(), [](const Step& s) { return !s.joined && !s.finishes; }));
}

std::vector<StoredValue> Plan::stored_among(std::span<const std::uint32_t> nodes) const {
  std::vector<StoredValue> found;
  auto next = stored_values.begin();
  for (const std::uint32_t node : nodes) {
    while (next != stored_values.end() && next->node < node) ++next;
    if (next == stored_values.end()) break;
    if (next->node == node) found.push_back(*next);
  }
  if (found.size() < 2) return found;
  std::stable_sort(found.begin(), found.end(),
                   [](const StoredValue& a, const StoredValue& b) { return a.value < b.value; });
  const auto shared = [](const StoredValue& a, const StoredValue& b) { return a.value == b.value; };
  found.erase(std::unique(found.begin(), found.end(), shared), found.end());
  std::sort(found.begin(), found.end(),
            [](const StoredValue& a, const StoredValue& b) { return a.node < b.node; });
  return found;
}

std::string Plan::to_string() const {
  std::string text = fmt::format("plan for {}: {} nodes, {} steps, {} barriers, {} bytes of arena",
                                 device.to_string(), node_count, steps.size(), barrier_count(), arena_bytes);
  if (!arena_cuts.empty()) text += fmt::format(" in {} segments", arena_cuts.size() + 1);
  text += '\n';
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    text += fmt::format("  {}{}: {} {}",
                        step.finishes         ? "* "
                        : step.barrier_before ? "| "
                        : step.follows        ? "> "
                        : step.joined         ? "+ "
                                              : "  ",
                        i, step.name(), step.dims.to_string());
    for (const Operand& operand : step.operands) {
      text += fmt::format(" b{}+{}", operand.buffer, operand.offset);
      if (operand.position >= 0) text += fmt::format("+p{}", operand.position);
    }
    text += '\n';
  }
  return text;
}

}  // namespace caldera
