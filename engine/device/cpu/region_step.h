// A region step made ready: its iteration space collapsed, every operand's access computed, the order of work
// fixed. Running it needs base addresses and scalars only.
//
// The order of combination of a reduction depends on the shapes and on the kernel, never on the threads:
// results are bit-identical for any thread count.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/compile/plan.h"
#include "engine/device/cpu/region_program.h"
#include "engine/device/cpu/tile_access.h"

namespace caldera::cpu {

/// What a step is run with: the address of each plan buffer and the plan's scalar arguments.
struct RunContext {
  std::span<std::byte* const> buffers;
  std::span<const std::uint64_t> scalars;
};

class RegionStep {
 public:
  RegionStep(const Step& step, std::shared_ptr<const RegionProgram> program);
  void run(const RunContext& context) const;

 private:
  friend class TileRunner;

  enum class Mode : std::uint8_t {
    nothing,      // no elements to store
    elementwise,  // tiles over the whole space
    identity,     // a reduction over nothing
    rows,         // reduced dims innermost: tiles run along them
    columns,      // a kept dim innermost: tiles run along it, accumulating
  };
  struct Bound {
    std::int32_t buffer = -1;
    std::size_t size = 4;  // of an element
    Access access;
  };
  struct Space;  // collapsed dims and strides, while preparing

  void prepare_elementwise(const Space& space);
  void prepare_reduction(Space space);
  void bind(const Space& space, int kept);

  void run_elementwise(const RunContext& context) const;
  void run_identity(const RunContext& context) const;
  void run_rows(const RunContext& context) const;
  void run_rows_short(const RunContext& context) const;
  void run_columns(const RunContext& context) const;
  void reduce_row_chunk(class TileRunner& tiles, std::int64_t output, std::int64_t chunk, void* wide) const;
  void reduce_column_chunk(class TileRunner& tiles, std::int64_t outer, std::int64_t column,
                           std::int64_t chunk, void* wide) const;

  std::shared_ptr<const RegionProgram> program_;
  Mode mode_ = Mode::nothing;
  std::vector<Bound> inputs_;
  std::vector<Bound> indices_;
  std::vector<Bound> outputs_;
  std::vector<std::int32_t> scalars_;  // plan scalar of each scalar argument
  double nanoseconds_ = 0;
  std::int64_t total_ = 0;  // points of the iteration space
  std::int64_t tile_ = 0;

  // elementwise: tiles of `chunk_` elements within rows of `row_`, `chunks_` a row.
  std::int64_t row_ = 0;
  std::int64_t chunk_ = 0;
  std::int64_t chunks_ = 0;
  std::int64_t tiles_ = 0;

  // reductions: outer_ x reduced_ x width_ points in the order that tiles run (width_ = 1 for rows).
  std::int64_t outer_ = 0;
  std::int64_t reduced_ = 0;
  std::int64_t width_ = 1;
  std::int64_t part_ = 0;  // reduced points a task; tasks' results are merged in order
  std::int64_t parts_ = 1;
  std::int64_t column_chunk_ = 1;  // columns: outputs a task
  std::int64_t column_chunks_ = 1;
};

}  // namespace caldera::cpu
