// An element-wise kernel run over blocks of points, where some of its operands are not in buffers of the plan
// but in memory that the caller names for each block: the accumulators of a product before they are stored
// (epilogue), the scores of a tile of queries and keys (attention).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/tiles/region_step.h"
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
  PreparedRegion step_;
};

/// Runs blocks on one thread. Keeps its tile buffers in `scratch`, which nobody else may use as long as the
/// runner lives; what was filled once (scalars) stays filled from block to block.
class BlockRunner {
 public:
  BlockRunner(const RegionBlock& block, const RunContext& context, Scratch& scratch)
      : layout_(block.step_.layout_), tiles_(layout_, context, scratch, block.step_.machine_code()) {}

  /// Evaluates the points [position, position + n) of the space. `inputs[i]` and `outputs[i]` are the memory
  /// of the i-th given operand: n contiguous elements of the kernel's type. A given output may be the memory
  /// of a given input of the same element size. Blocks may come in any order.
  void run(std::int64_t position, std::int64_t n, std::span<const void* const> inputs,
           std::span<void* const> outputs = {});

 private:
  const TileLayout& layout_;
  TileRunner tiles_;
};

}  // namespace caldera::cpu
