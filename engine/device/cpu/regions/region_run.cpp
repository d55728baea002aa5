// Running a prepared region: the loops over tiles, and how partial results of reductions are put together.
#include <hwy/cache_control.h>

#include <algorithm>

#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/regions/region_step.h"
#include "engine/device/cpu/tiles/tile_runner.h"

namespace caldera::cpu {
namespace {

/// Elements of a transpose that are worth a thread.
constexpr std::int64_t kTurnedElements = 16 * 1024;

Scratch& column_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

void PreparedRegion::run(const RunContext& context) const {
  switch (mode_) {
    case Mode::nothing:
      return;
    case Mode::elementwise:
      if (copies_onto_itself(context)) return;
      if (!run_turned(context) && !run_direct(context)) run_elementwise(context);
      for (const auto& rest : rests_) rest->run(context);
      return;
    case Mode::short_rows:
      if (!run_direct(context)) run_short_rows(context);
      return;
    case Mode::long_rows:
      if (parts_ > 1 || !run_direct(context)) run_long_rows(context);
      return;
    case Mode::columns:
      return run_columns(context);
  }
}

/// A copy of a tensor that has been given the memory which it is a copy of: nothing is to be done.
bool PreparedRegion::copies_onto_itself(const RunContext& context) const {
  if (!copies_) return false;
  const auto at = [&](const BoundOperand& bound) {
    return context.buffers[static_cast<std::size_t>(bound.buffer)];
  };
  return at(layout_.inputs[0]) == at(layout_.outputs[0]);
}

/// Tiles of an element-wise kernel without a look at where operands are: small regions cost little else.
void PreparedRegion::run_contiguous(const RunContext& context, std::int64_t begin, std::int64_t end) const {
  const TileProgram& program = *layout_.program;
  const std::size_t locations = program.locations();
  const std::size_t pointer_bytes = (locations * sizeof(std::byte*) + 63) / 64 * 64;
  const std::size_t buffer_bytes = static_cast<std::size_t>(layout_.tile) * program.element_bytes + 64;
  const std::size_t buffers =
      program.scalars.size() + static_cast<std::size_t>(program.temporaries + program.row_temporaries);
  std::byte* memory = tile_scratch().get(pointer_bytes + buffers * buffer_bytes);
  auto** at = reinterpret_cast<std::byte**>(memory);
  memory += pointer_bytes;

  const std::int64_t first = begin * chunk_;
  const auto address = [&](const BoundOperand& bound, std::int64_t element) {
    return context.buffers[static_cast<std::size_t>(bound.buffer)] +
           (bound.access.offset + element) * static_cast<std::int64_t>(bound.size);
  };
  for (std::uint16_t i : program.row_inputs) at[i] = address(layout_.inputs[i], 0);
  for (std::uint16_t i : program.point_inputs) at[i] = address(layout_.inputs[i], first);
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i)
    at[program.first_output() + i] = address(layout_.outputs[i], first);
  for (std::size_t i = 0; i < program.scalars.size(); ++i, memory += buffer_bytes) {
    const std::uint64_t& bits = context.scalars[static_cast<std::size_t>(layout_.scalars[i])];
    at[program.first_scalar() + i] = memory;
    fill_tile(memory, reinterpret_cast<const std::byte*>(&bits), size_of(program.scalars[i]),
              program.expanded_scalars[i] ? layout_.tile : 1);
  }
  for (std::size_t l = program.first_temporary(); l < program.first_output(); ++l, memory += buffer_bytes)
    at[l] = memory;

  const auto execute = [&](TileProgram::Range range, std::int64_t n) {
    const MicroInstruction* m = program.code.data() + range.begin;
    for (const MicroInstruction* last = program.code.data() + range.end; m != last; ++m)
      m->fn(at[m->out], at[m->a], at[m->b], at[m->c], n);
  };
  execute(program.first_row_code, 1);
  for (std::int64_t t = begin;;) {
    const std::int64_t n = std::min(chunk_, total_ - t * chunk_);
    execute(program.passes.front().code, n);
    if (++t == end) return;
    for (std::uint16_t i : program.point_inputs)
      at[i] += n * static_cast<std::int64_t>(layout_.inputs[i].size);
    for (std::size_t i = 0; i < layout_.outputs.size(); ++i)
      at[program.first_output() + i] += n * static_cast<std::int64_t>(layout_.outputs[i].size);
  }
}

void PreparedRegion::run_elementwise(const RunContext& context) const {
  if (turned_) {
    const auto at = [&](const BoundOperand& bound) {
      return context.buffers[static_cast<std::size_t>(bound.buffer)];
    };
    const int threads = threads_for(nanoseconds_, total_ / kTurnedElements);
    return turned_->run(at(layout_.inputs[0]), at(layout_.outputs[0]), threads);
  }
  const RowFunction machine = machine_code();
  parallel_ranges(tiles_, threads_for(nanoseconds_, tiles_), [&](std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    if (contiguous_ && machine == nullptr) return run_contiguous(context, begin, end);
    TileRunner tiles(layout_, context, tile_scratch(), machine);
    const std::int64_t row = begin / chunks_;
    std::int64_t at = (begin - row * chunks_) * chunk_;
    if (begin > 0) {
      tiles.seek(row * layout_.row + at);
      tiles.seek_rows(row);
    }
    tiles.start_rows(1);
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t n = std::min(chunk_, layout_.row - at);
      tiles.run(n);
      at += n;
      if (at < layout_.row || t + 1 == end) continue;
      at = 0;
      tiles.start_rows(1);
    }
    if (layout_.outputs.front().access.past_caches) hwy::FlushStream();
  });
}

void PreparedRegion::reduce_column_chunk(TileRunner& tiles, std::int64_t outer, std::int64_t column,
                                         std::int64_t chunk, void* wide) const {
  const ReduceOps& ops = *layout_.program->reduce;
  const std::int64_t first = column * column_chunk_;
  const std::int64_t width = std::min(column_chunk_, width_ - first);
  const std::int64_t begin = chunk * part_;
  const std::int64_t end = std::min(reduced_, begin + part_);
  // Whole short rows share a tile, in groups that reach across no tile.
  const std::int64_t group = width <= kNarrowRow ? kGroupOfRows : 1;
  const std::int64_t rows_per_tile = one_row_a_tile_ ? 1 : layout_.tile / width / group * group;
  std::byte* acc = tiles.accumulator(2);
  ops.wide_identity(wide, width);
  ops.identity(acc, width);
  std::int64_t unfolded = 0;
  if (column_chunks_ == 1) tiles.seek((outer * reduced_ + begin) * width_);
  tiles.seek_rows(one_row_a_tile_ ? outer * reduced_ + begin : 0);
  if (!one_row_a_tile_) tiles.start_rows(1);
  for (std::int64_t r = begin; r < end;) {
    const std::int64_t rows = std::min({rows_per_tile, end - r, kStretchOfRows - unfolded});
    if (column_chunks_ > 1) tiles.seek((outer * reduced_ + r) * width_ + first);
    if (one_row_a_tile_) tiles.start_rows(1);
    tiles.run(rows * width);
    ops.columns(acc, tiles.result(), rows, width);
    r += rows;
    unfolded += rows;
    if (unfolded == kStretchOfRows) {
      ops.fold(wide, acc, width);
      unfolded = 0;
    }
  }
  if (unfolded > 0) ops.fold(wide, acc, width);
}

void PreparedRegion::store_columns(TileRunner& tiles, std::int64_t block, const std::byte* wide) const {
  const std::int64_t first = block % column_chunks_ * column_chunk_;
  const std::int64_t width = std::min(column_chunk_, width_ - first);
  std::byte* result = tiles.accumulator(1);
  layout_.program->reduce->finish(result, wide, width);
  if (const MicroFn narrow = layout_.program->narrow) {
    narrow(tiles.accumulator(2), result, result, result, width);
    result = tiles.accumulator(2);
  }
  tiles.store(block / column_chunks_ * width_ + first, result, width);
}

/// Merges the parts of each block of outputs, one after another in `partial`, and stores them.
void PreparedRegion::finish_columns(const RunContext& context, std::byte* partial) const {
  const std::int64_t block_bytes = column_chunk_ * kWideBytes;
  TileRunner tiles(layout_, context, tile_scratch());
  for (std::int64_t b = 0; b < outer_ * column_chunks_; ++b) {
    const std::int64_t width = std::min(column_chunk_, width_ - b % column_chunks_ * column_chunk_);
    std::byte* wide = partial + b * parts_ * block_bytes;
    for (std::int64_t p = 1; p < parts_; ++p)
      layout_.program->reduce->merge(wide, wide + p * block_bytes, width);
    store_columns(tiles, b, wide);
  }
}

void PreparedRegion::run_columns(const RunContext& context) const {
  const std::int64_t tasks = outer_ * column_chunks_ * parts_;  // a block of outputs has parts_ of them
  const RowFunction machine = machine_code();
  const bool is_whole = parts_ == 1;
  const std::int64_t block_bytes = column_chunk_ * kWideBytes;
  std::byte* partial =
      is_whole ? nullptr : column_scratch().get(static_cast<std::size_t>(tasks * block_bytes));
  parallel_ranges(tasks, threads_for(nanoseconds_, tasks), [&](std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    TileRunner tiles(layout_, context, tile_scratch(), machine);
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t b = t / parts_;
      std::byte* wide = is_whole ? tiles.accumulator(0) : partial + t * block_bytes;
      reduce_column_chunk(tiles, b / column_chunks_, b % column_chunks_, t % parts_, wide);
      if (is_whole) store_columns(tiles, b, wide);
    }
  });
  if (!is_whole) finish_columns(context, partial);
}

}  // namespace caldera::cpu
