// A region step made ready: its iteration space collapsed, every operand's access computed, the order of work
// fixed. Running it needs base addresses and scalars only.
//
// The order of combination of a reduction depends on the shapes and on how the inputs lie in memory, never on
// the threads or on what else the kernel computes: results are bit-identical for any thread count, and a
// value that is computed again beside others is what it was.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/device/cpu/regions/region_program.h"
#include "engine/device/cpu/tiles/tile_layout.h"
#include "engine/device/cpu/tiles/turned_copy.h"
#include "engine/plan/plan.h"

namespace caldera::cpu {

class TileRunner;
struct RegionSpace;  // collapsed dims and strides, while preparing

class PreparedRegion {
 public:
  PreparedRegion(const Step& step, const RegionStep& region, std::shared_ptr<const RegionProgram> program);
  /// An element-wise kernel to be run block by block (RegionBlock): no operands for its first inputs and
  /// outputs, whose memory is named at run time.
  PreparedRegion(std::shared_ptr<const RegionProgram> program, const Shape& space,
                 std::span<const Operand> operands, std::span<const std::int32_t> scalars, int given_inputs,
                 int given_outputs);
  void run(const RunContext& context) const;

  // ---- Piece by piece, in any order and side by side: see region_chain.h ----

  /// Returns how many points a piece has, in the order in which tiles run; 0: it runs as a whole alone.
  std::int64_t piece() const;
  std::int64_t points() const { return total_; }
  double nanoseconds() const { return nanoseconds_; }  // rough, on one thread
  /// Whether pieces give partial results, of which finish_pieces() makes the outputs; else they store theirs.
  bool merges_pieces() const { return mode_ == Mode::columns || parts_ > 1; }
  std::size_t partial_bytes() const;
  /// Returns what run_piece() is given: all pieces of a run have the same.
  RowFunction piece_function(int threads) const;
  /// Runs points [begin, end): whole pieces, one of them where they are merged.
  void run_piece(const RunContext& context, RowFunction function, std::int64_t begin, std::int64_t end,
                 std::byte* partial) const;
  void finish_pieces(const RunContext& context, std::byte* partial) const;
  /// Says where an operand's elements are: that of point p at `offset` + p, or somewhere else.
  struct Use {
    std::int32_t buffer = 0;
    std::optional<std::int64_t> offset;
    friend bool operator==(const Use&, const Use&) = default;
  };
  std::vector<Use> reads() const;
  std::vector<Use> writes() const;

 private:
  friend class RegionBlock;
  friend class BlockRunner;

  enum class Mode : std::uint8_t {
    nothing,      // no elements to store
    elementwise,  // tiles over the whole space
    short_rows,   // row reductions: a tile holds one or more rows
    long_rows,    // row reductions: a row takes several tiles
    columns,      // a reduction, a kept dim innermost: tiles run along it, accumulating
  };
  using Space = RegionSpace;
  /// Threads, and pieces, divide an only row by so many points.
  static constexpr std::int64_t kShare = 64;

  void list_operands(std::span<const Operand> operands, std::size_t given_inputs, std::size_t given_outputs);
  void prepare_across(Space space, std::int64_t points);
  void prepare_elementwise(const Space& space);
  bool is_contiguous() const;
  void prepare_reduction(Space space);
  void prepare_rows(const Space& space);
  void prepare_columns(const Space& space);
  /// Finds the innermost dims over which each operand is to be one a row: all dims from `row_dims` on.
  TileForm form_of(const Space& space, std::size_t row_dims) const;
  void bind(const Space& space, std::size_t row_dims);
  bool has_direct_indices() const;
  void find_direct_operands();
  void find_short_runs(const Space& space);
  void find_turned_blocks(const Space& space);

  bool run_direct(const RunContext& context) const;
  void run_direct_rows(RowFunction function, const RunContext& context, std::int64_t first_row,
                       std::int64_t rows, std::int64_t first_point, std::int64_t points,
                       std::byte* wide = nullptr, std::int64_t block = 0) const;
  bool run_turned(const RunContext& context) const;
  void run_turned_blocks(RowFunction function, const RunContext& context, std::int64_t begin,
                         std::int64_t end) const;
  void run_short_runs(RowFunction function, const RunContext& context, std::int64_t begin,
                      std::int64_t end) const;
  RowFunction machine_code_of_rows(int threads) const;
  bool may_stream(const RunContext& context) const;
  RowFunction machine_code(CodeVersion version = CodeVersion::plain) const;
  RowFunction machine_code_of_parts() const;
  void run_elementwise(const RunContext& context) const;
  bool copies_onto_itself(const RunContext& context) const;
  void run_contiguous(const RunContext& context, std::int64_t begin, std::int64_t end) const;
  void run_short_rows(const RunContext& context) const;
  void run_long_rows(const RunContext& context) const;
  void run_split_rows(const RunContext& context, int threads) const;
  /// Runs parts of rows: tile by tile, or whole where there is machine code and operands are where it takes
  /// them.
  struct PartRunner {
    TileRunner& tiles;
    const RunContext& context;
    RowFunction machine;
  };
  void run_part(const PartRunner& runner, std::size_t pass, std::int64_t row, std::int64_t part,
                std::byte* wide) const;
  void merge_parts(std::size_t pass, std::byte* wide, std::int64_t parts) const;
  void run_columns(const RunContext& context) const;
  void store_columns(TileRunner& tiles, std::int64_t block, const std::byte* wide) const;
  void finish_columns(const RunContext& context, std::byte* partial) const;
  void reduce_column_chunk(TileRunner& tiles, std::int64_t outer, std::int64_t column, std::int64_t chunk,
                           void* wide) const;

  std::shared_ptr<const RegionProgram> region_;
  TileLayout layout_;
  Mode mode_ = Mode::nothing;
  double nanoseconds_ = 0;
  std::int64_t total_ = 0;  // points of the iteration space

  // elementwise: tiles of `chunk_` elements within rows, `chunks_` a row.
  std::int64_t chunk_ = 0;
  std::int64_t chunks_ = 0;
  std::int64_t tiles_ = 0;
  bool contiguous_ = false;           // every operand is one run of memory, or one element
  bool copies_ = false;               // see is_copy()
  std::optional<TurnedCopy> turned_;  // instead of tiles
  // Holds what fills no block of transposed operands, as regions of their own.
  std::vector<std::shared_ptr<const PreparedRegion>> rests_;

  // Operands of machine code that goes through all rows where they are: see direct_run.cpp.
  struct DirectOperand {
    std::uint16_t location = 0;
    bool by_row = false;
    std::int32_t buffer = 0;
    std::int64_t size = 4;            // of an element
    std::int64_t offset = 0;          // elements
    std::int64_t step = 0;            // elements from row to row
    std::vector<std::int64_t> outer;  // elements along each of block_dims_
  };
  std::vector<DirectOperand> direct_operands_;
  bool is_direct_ = false;
  // elementwise, of short runs: blocks of rows of `run_` points, a block for each place in `block_dims_`.
  std::int64_t run_ = 0;
  std::int64_t block_rows_ = 1;
  std::vector<std::int64_t> block_dims_;
  bool turns_ = false;  // the runs are those of the inputs, each a column of every output: see turned_run.cpp

  // row reductions: outer_ rows. columns: outer_ x reduced_ x width_ points in the order that tiles run.
  std::int64_t outer_ = 0;
  std::int64_t reduced_ = 0;
  std::int64_t width_ = 1;
  std::int64_t part_ = 0;  // reduced points a task; tasks' results are merged in order
  std::int64_t parts_ = 1;
  bool one_row_a_tile_ = false;    // columns
  std::int64_t column_chunk_ = 1;  // columns: outputs a task
  std::int64_t column_chunks_ = 1;
};

}  // namespace caldera::cpu
