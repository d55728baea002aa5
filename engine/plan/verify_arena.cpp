#include "engine/plan/verify_arena.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/plan/kernel/fault.h"

namespace caldera::verify {
namespace {

void check_cuts(const Plan& plan) {
  std::int64_t before = 0;
  for (const std::int64_t cut : plan.arena_cuts) {
    if (cut <= before || cut >= plan.arena_bytes || cut % kArenaAlignment != 0)
      throw Fault{
          fmt::format("the arena of {} bytes cannot be cut at {} after {}", plan.arena_bytes, cut, before)};
    before = cut;
  }
}

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

}  // namespace

void check_arena(const Plan& plan) {
  check_cuts(plan);
  const std::vector<ArenaSegment> segments = plan.arena_segments();
  std::vector<std::int64_t> largest(segments.size(), 0);  // buffer of each
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const PlanBuffer& buffer = plan.buffers[b];
    if (buffer.role != BufferRole::arena) continue;
    const std::int64_t begin = buffer.arena_offset;
    if (begin % kArenaAlignment != 0) throw Fault{fmt::format("buffer {} is not aligned", b)};
    if (begin < 0 || begin > plan.arena_bytes || buffer.bytes > plan.arena_bytes - begin)
      throw Fault{fmt::format("buffer {} leaves the arena", b)};
    if (buffer.bytes == 0) continue;
    const std::size_t s = plan.arena_segment_at(begin);
    if (begin + buffer.bytes > segments[s].end)
      throw Fault{fmt::format("buffer {} lies across the arena's cut at {}", b, segments[s].end)};
    largest[s] = std::max(largest[s], buffer.bytes);
  }
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::int64_t bytes = segments[s].end - segments[s].begin;
    if (bytes > plan.arena_segment && bytes > aligned(largest[s]))
      throw Fault{
          fmt::format("segment {} of the arena has {} bytes, more than {} and than its largest buffer", s,
                      bytes, plan.arena_segment)};
  }
}

}  // namespace caldera::verify
