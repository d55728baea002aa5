// Runs a decoded kernel over one tile after another, on one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/tiles/tile_layout.h"

namespace caldera::cpu {

/// Bytes of an accumulator between tiles.
inline constexpr std::int64_t kWideBytes = 8;

class TileRunner {
 public:
  /// At point 0 and row 0. The runner is in `scratch`, which nobody else may use as long as it lives.
  /// `machine`: runs tiles of whole programs (run, run_rows) instead of the interpreter.
  TileRunner(const TileLayout& layout, const RunContext& context, Scratch& scratch,
             RowFunction machine = nullptr);

  // ---- Where the next tile is
  // ----------------------------------------------------------------------------------

  /// Moves what is one a point to a point, what is one a row to a row.
  void seek(std::int64_t point);
  void seek_rows(std::int64_t row);
  /// Takes the operands of the next q rows, and computes what is one a row ahead of the first pass.
  void start_rows(std::int64_t q);
  /// The memory of an input or output that has no operand: contiguous, used up by the tiles that follow.
  void give_input(std::size_t i, const void* memory) {
    bases_[i] = static_cast<std::byte*>(const_cast<void*>(memory));
  }
  void give_output(std::size_t i, void* memory) {
    bases_[layout_.inputs.size() + i] = static_cast<std::byte*>(memory);
  }

  // ---- Operands where they are
  // ----------------------------------------------------------------------------

  /// Says where a location is in the first row, and how many bytes are from there to its place in the next.
  void place(std::uint16_t location, std::byte* at, std::int64_t step) {
    pointers_[location] = at;
    steps_[location] = step;
  }
  /// Calls the machine code, with every operand placed. No tile may follow.
  void run_in_place(std::int64_t rows, std::int64_t n) const { machine_(pointers_, steps_, rows, n); }

  // ---- Tiles
  // ---------------------------------------------------------------------------------------------------

  /// The next n points of a kernel without row reductions, within the rows that were started. Outputs are
  /// stored; with Kernel::reduce nothing is, and `result` holds the values.
  void run(std::int64_t n);
  /// The next q whole rows of a kernel of the row form, from the first pass to the last.
  void run_rows(std::int64_t q);
  /// The next n points of one pass over a row, `at` points from its start. What is to be combined goes into
  /// `wide`: 8 bytes for each of the pass's reductions. `machine`, or null: the function of a part of a row,
  /// of a program of one pass of which only reductions come.
  void run_pass(const TileProgram::Pass& pass, std::int64_t at, std::int64_t n, std::byte* wide,
                RowFunction machine);
  /// Ends a pass over one row with the results of its reductions (`wide`, as above).
  void finish_pass(const TileProgram::Pass& pass, const std::byte* wide);
  /// Stores the outputs that are one a row.
  void store_rows(std::int64_t q);

  /// The tile's values of the location that is combined.
  const std::byte* result() const { return pointers_[program_.result]; }
  /// Scratch for accumulators beside the tile buffers: room for a tile of 8-byte elements each.
  std::byte* accumulator(int which) const { return accumulators_ + which * accumulator_bytes_; }
  /// Stores n finished values of output 0 at position `at` of the kept space.
  void store(std::int64_t at, const std::byte* values, std::int64_t n) const;

 private:
  void place_inputs(const std::vector<std::uint16_t>& inputs, std::int64_t n) {
    for (std::uint16_t i : inputs) place_input(i, n);
  }
  void place_indices(const std::vector<std::uint16_t>& indices, std::int64_t n) {
    for (std::uint16_t i : indices) place_index(i, n);
  }
  struct Filled {  // what a tile buffer holds of an operand that repeats
    std::int64_t element;
    std::int64_t count;
  };
  bool is_filled(std::size_t operand, const Access& access, std::int64_t n) const;

  void place_input(std::size_t i, std::int64_t n);
  void place_index(std::size_t i, std::int64_t n);
  void place_outputs(std::int64_t n);
  void store_outputs(std::int64_t n);
  Cursor& output_cursor(std::size_t i) const {
    return cursors_[layout_.inputs.size() + layout_.indices.size() + i];
  }
  void find_steps();
  void execute(TileProgram::Range range, std::int64_t n) const;
  void execute_by_row(const MicroInstruction& m) const;

  const TileLayout& layout_;
  const TileProgram& program_;
  const RowFunction machine_;
  std::int64_t rows_ = 1;           // of the tile at hand
  std::byte** pointers_ = nullptr;  // of each location
  std::byte** buffers_ = nullptr;   // tile buffer of each location
  std::byte** bases_ = nullptr;     // operand memory: inputs, then outputs
  std::int64_t* steps_ = nullptr;   // bytes from row to row of each location, for machine code
  Cursor* cursors_ = nullptr;       // inputs, indices, outputs
  Filled* filled_ = nullptr;        // inputs, indices
  bool* by_row_ = nullptr;          // inputs, indices, outputs: one a row
  std::byte* accumulators_ = nullptr;
  std::int64_t accumulator_bytes_ = 0;
};

/// Scratch of the calling thread for the runner of the step that is being run.
Scratch& tile_scratch();

}  // namespace caldera::cpu
