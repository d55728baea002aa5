// Plan: what a graph becomes. Steps over buffers, in order, with arena offsets and hazards; replayed with new
// inputs.
//
// A plan names no concrete memory. Its buffers are inputs (bound at replay), outputs (allocated by the
// runtime for each replay, dense row-major) and intermediates, which are in one arena at planned offsets. A
// large arena is cut into segments, so that a device may make an allocation of each: no buffer is in two.
// All operands of a step are (buffer, offset, strides) over the step's iteration space, in elements of the
// operand's type. What each kind of step computes stands in steps/, a header a kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/plan/steps/operand.h"
#include "engine/plan/steps/step.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"

namespace caldera {

/// An output that may be bound to the memory of an input, if nobody needs the input's value after the replay:
/// the step that first touches the output is the last to touch the input, reads exactly the elements that it
/// writes, and a barrier stands between it and earlier readers of the input. An input and an output may stand
/// in several; a replay makes use of each at most once.
struct Donation {
  std::int32_t output = -1;  // buffers
  std::int32_t input = -1;
};

/// A value of the graph that the plan stores anyway: all of it, dense and row-major, in its own type, in a
/// buffer that holds nothing else.
struct StoredValue {
  std::uint32_t node = 0;   // its position in the graph
  std::uint32_t value = 0;  // equal for nodes with one value, which differ in their extents at most
};

/// A part of the arena that may be an allocation of its own. Bytes of the arena, `end` excluded.
struct ArenaSegment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct Plan {
  Device device;
  std::vector<PlanBuffer> buffers;  // inputs first, then outputs, then arena
  std::int32_t input_count = 0;
  std::int32_t output_count = 0;         // those that were asked for, then the optional ones
  std::vector<DType> scalars;            // scalar arguments: those bound at replay, then the constants
  std::vector<std::uint64_t> constants;  // bits of the last of them
  std::vector<Position> positions;       // of operands that scalar arguments move
  std::vector<Step> steps;
  std::vector<Donation> donations;
  std::vector<StoredValue> stored_values;       // by ascending node; neither inputs nor what was asked for
  std::vector<std::uint32_t> optional_outputs;  // of those, what was wanted as well: a node each, ascending
  std::int64_t arena_bytes = 0;
  std::vector<std::int64_t> arena_cuts;        // where its segments begin but for the first, ascending
  std::int64_t arena_segment = kArenaSegment;  // none has more bytes, unless a single buffer has
  std::int64_t peak_bytes = 0;                 // arena and outputs
  std::int64_t node_count = 0;                 // nodes of the graph it was made from

  /// The segments of the arena, in order; none where it is empty.
  std::vector<ArenaSegment> arena_segments() const;
  /// The number of the segment that a byte of the arena is in.
  std::size_t arena_segment_at(std::int64_t offset) const;
  int barrier_count() const;
  /// Steps that are neither joined to another nor finish one.
  int dispatch_count() const;
  /// Which stored values would be optional outputs if `nodes`, ascending, were wanted: of nodes that share a
  /// value, the first.
  std::vector<StoredValue> stored_among(std::span<const std::uint32_t> nodes) const;
  std::string to_string() const;
};

}  // namespace caldera
