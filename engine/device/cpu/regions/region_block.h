// An element-wise kernel run over blocks of points, where some of its operands are not in buffers of the plan
// but in memory that the caller names for each block: the accumulators of a product before they are stored
// (epilogue), the scores of a tile of queries and keys (attention).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/regions/region_step.h"
#include "engine/device/cpu/tiles/tile_runner.h"

namespace caldera::cpu {

/// A kernel made ready for one iteration space. Immutable; shared by threads.
class RegionBlock {
 public:
  /// Says how many of the kernel's first inputs and first outputs the caller gives at each call.
  struct Given {
    int inputs = 1;
    int outputs = 0;
  };

  /// `space`: row-major extents of the points. `operands`: those of the inputs that are not given, then index
  /// operands, then those of the outputs that are not given; strides beyond the rank of `space` are left out
  /// (the K of a contraction). `scalars`: the plan's scalar for each scalar argument of the kernel. `program`
  /// comes from decode_cached(kernel, ...).
  RegionBlock(std::shared_ptr<const RegionProgram> program, const Shape& space,
              std::span<const Operand> operands, std::span<const std::int32_t> scalars, Given given);

  /// Rough time of one point on one thread.
  double nanoseconds_per_point() const { return step_.region_->nanoseconds_per_element; }

 private:
  friend class BlockRunner;
  /// Says where an operand of the plan has its elements, for machine code that goes through it there.
  struct Place {
    std::uint16_t location = 0;
    std::int32_t buffer = 0;
    std::int64_t size = 4;    // of an element
    std::int64_t offset = 0;  // elements
    std::int64_t row = 0;     // elements from row to row
    std::int64_t column = 0;  // from column to column: 1, or 0 where there is one element a row
  };
  void find_places();
  std::optional<Place> place_of(std::size_t location, const BoundOperand& bound, bool by_row) const;

  PreparedRegion step_;
  std::int64_t columns_;             // of the space: its innermost extent
  std::vector<Place> places_;        // of operands that are not given
  bool has_rows_in_memory_ = false;  // every operand's rows are runs of memory at equal distances
};

/// Runs blocks on one thread. Keeps its tile buffers in `scratch`, which nobody else may use as long as the
/// runner lives; what was filled once (scalars) stays filled from block to block.
class BlockRunner {
 public:
  /// `points`: how many the runner is made for, about; more of them are worth compiling the kernel.
  BlockRunner(const RegionBlock& block, const RunContext& context, Scratch& scratch, std::int64_t points);

  /// Evaluates the points [position, position + n) of the space. `inputs[i]` and `outputs[i]` are the memory
  /// of the i-th given operand: n contiguous elements of the kernel's type. A given output may be the memory
  /// of a given input of the same element size. Blocks may come in any order.
  void run(std::int64_t position, std::int64_t n, std::span<const void* const> inputs,
           std::span<void* const> outputs = {});

  /// A part of the space, seen as rows of `width` points: its innermost extent, or several of them one behind
  /// the other. Elements of the only given operand, an input, are at data[r * row_stride + c].
  struct Rows {
    const void* data = nullptr;
    std::int64_t row_stride = 0;
    std::int64_t width = 0;
    std::int64_t row = 0, rows = 0;
    std::int64_t column = 0, columns = 0;
  };
  void run_rows(const Rows& rows);

 private:
  const RegionBlock& block_;
  const TileLayout& layout_;
  const std::span<std::byte* const> buffers_;
  const RowFunction machine_;
  TileRunner tiles_;
};

}  // namespace caldera::cpu
