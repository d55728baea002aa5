// Runs a region's micro-operations over one tile after another, on one thread.
#pragma once

#include <cstdint>

#include "engine/device/cpu/region_step.h"
#include "engine/device/cpu/scratch.h"

namespace caldera::cpu {

/// Bound to the calling thread's scratch: one at a time per thread.
class TileRunner {
 public:
  /// Places every input at linear position `start` of the step's space.
  TileRunner(const RegionStep& step, const RunContext& context, std::int64_t start);

  /// Moves to a linear position.
  void seek(std::int64_t position);
  /// Evaluates the next n elements and, unless the step reduces, stores them.
  void run(std::int64_t n);
  /// The tile's values of the location that is combined.
  const std::byte* result() const { return pointers_[step_.program_->result]; }
  /// Scratch for accumulators beside the tile buffers: room for a tile of 8-byte elements each.
  std::byte* accumulator(int which) const { return accumulators_ + which * accumulator_bytes_; }
  /// Stores n finished values of output 0 at position `at` of the kept space.
  void store(std::int64_t at, const std::byte* values, std::int64_t n) const;

 private:
  struct Filled {  // what a location's tile buffer already holds: one element, repeated
    std::int64_t element;
    std::int64_t count;
  };

  void place_input(std::size_t i, std::int64_t n);
  void place_index(std::size_t i, std::int64_t n);
  void place_output(std::size_t i, std::int64_t n);
  void store_output(std::size_t i, std::int64_t n);

  const RegionStep& step_;
  const RegionProgram& program_;
  std::byte** pointers_ = nullptr;  // of each location
  std::byte** buffers_ = nullptr;   // tile buffer of each location
  std::byte** bases_ = nullptr;     // operand memory: inputs, then outputs
  Cursor* cursors_ = nullptr;       // inputs, indices, outputs
  Filled* filled_ = nullptr;        // inputs
  std::byte* accumulators_ = nullptr;
  std::int64_t accumulator_bytes_ = 0;
};

}  // namespace caldera::cpu
