// Holds what a plan becomes before any handle is bound: dispatches, and the image of their argument table.
//
// The table holds one block a dispatch, or an array of them. Everything in it but addresses and scalar
// arguments is fixed, so a replay writes only those (the patches) and the recorded commands stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/vulkan/open/vk.h"
#include "engine/device/vulkan/pipelines/pipeline.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

struct Dispatch {
  PipelinePtr pipeline;
  std::uint32_t groups = 0;     // along x; shaders share out their work among any number
  std::uint32_t instances = 1;  // along y; each has its own block of arguments
  std::uint32_t block = 0;      // offset of the (first) arguments in the table
  bool barrier_before = false;
  std::int64_t iterations = 0;  // of all loops in the busiest invocation
  // Counts for an invocation that takes points how often it does so from the beginning, and the turns of each
  // of its walks over them. 0: it does something else.
  std::int64_t rounds = 0, turns = 0;
  /// Describes regions at its end: the offset of their arguments, and the number of a counter (Counters);
  /// none: < 0.
  std::uint32_t finish_block = 0;
  std::int32_t finish_counter = -1;
};

/// Eight bytes of the table that hold an address: base of a slot (or of a segment of the arena) plus an
/// offset.
struct AddressPatch {
  /// Stands for a segment of the arena in place of a slot.
  static constexpr std::int32_t arena(std::size_t segment) { return -1 - static_cast<std::int32_t>(segment); }
  static constexpr bool is_arena(std::int32_t slot) { return slot < 0; }
  static constexpr std::size_t segment_of(std::int32_t slot) { return static_cast<std::size_t>(-1 - slot); }

  std::uint32_t at = 0;
  std::int32_t slot = 0;    // of Bindings::slots, or arena(segment)
  std::int64_t offset = 0;  // bytes
};

/// A patch of an operand that a position of the plan moves.
struct MovedPatch {
  AddressPatch address;
  std::int32_t position = 0;
  std::int64_t element = 0;  // bytes of one
};

/// A dispatch that does nothing but copy buffers: not needed where each of them is where it is copied to.
struct CopyDispatch {
  std::uint32_t dispatch = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> slots;  // from, to
};

/// Eight bytes of the table that hold a scalar argument of the plan.
struct ScalarPatch {
  std::uint32_t at = 0;
  std::int32_t scalar = 0;
};

/// The dispatches of a step and of those that are joined to it. A step without work has none.
struct DispatchRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t own = 0;  // of these, the one that computes the step

  std::uint32_t own_dispatch() const { return first + own; }
};

/// Names what was chosen for a matrix product.
struct ChosenVariant {
  std::size_t step = 0;  // of the plan
  StepVariant variant;
};

struct Recording {
  std::vector<Dispatch> dispatches;
  std::vector<DispatchRange> steps;     // one a step of the plan
  std::vector<ChosenVariant> variants;  // in the order of steps
  std::vector<std::byte> table;
  std::vector<AddressPatch> addresses;
  std::vector<MovedPatch> moved;
  std::vector<ScalarPatch> scalars;
  std::vector<CopyDispatch> copies;
  std::uint32_t barriers = 0;
  std::int32_t counters = 0;  // of dispatches at whose end regions run
};

/// Appends one argument block after another. Slots of eight bytes come before the integers of a block.
class TableWriter {
 public:
  TableWriter(const Plan& plan, Recording& recording)
      : plan_(plan), recording_(recording), segments_(plan.arena_segments()) {}

  /// Starts a block and returns its offset.
  std::uint32_t begin();
  /// The address of the operand's element number 0 less `bias` elements: see `bias()`.
  void address(const Operand& operand, std::int64_t bias = 0);
  void scalar(std::int32_t index);
  /// Throws ShapeError naming the step when the value does not fit into 32 bits.
  static void check_fits(std::int64_t value, const Step& step);
  void integer(std::int64_t value, const Step& step);
  /// Fills up to where the next block of an array of blocks starts.
  void align() { grow((8 - recording_.table.size() % 8) % 8); }

 private:
  std::uint32_t grow(std::size_t bytes);

  const Plan& plan_;
  Recording& recording_;
  const std::vector<ArenaSegment> segments_;
};

/// Returns what to add to an element number so that it is never negative, where strides are: minus the least
/// sum of coordinate times stride. The block's address is lowered by as much.
std::int64_t bias(const Dims& dims, const Dims& strides);

}  // namespace caldera::vulkan
