// Running a prepared region: the loops over tiles, and how partial results of reductions are put together.
#include <algorithm>

#include "engine/device/cpu/region_step.h"
#include "engine/device/cpu/threads.h"
#include "engine/device/cpu/tile_runner.h"

namespace caldera::cpu {
namespace {

constexpr std::int64_t kWideBytes = 8;     // of an accumulator between tiles
constexpr std::int64_t kRowsPerFold = 32;  // rows added up in the data's type before they are widened

Scratch& partial_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

void RegionStep::run(const RunContext& context) const {
  switch (mode_) {
    case Mode::nothing:
      return;
    case Mode::elementwise:
      return run_elementwise(context);
    case Mode::identity:
      return run_identity(context);
    case Mode::rows:
      return reduced_ <= tile_ / 2 ? run_rows_short(context) : run_rows(context);
    case Mode::columns:
      return run_columns(context);
  }
}

void RegionStep::run_elementwise(const RunContext& context) const {
  parallel_ranges(tiles_, threads_for(nanoseconds_, tiles_), [&](std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    std::int64_t row = begin / chunks_;
    std::int64_t at = (begin - row * chunks_) * chunk_;
    TileRunner tiles(*this, context, row * row_ + at);
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t n = std::min(chunk_, row_ - at);
      tiles.run(n);
      at = at + n == row_ ? 0 : at + n;
    }
  });
}

void RegionStep::run_identity(const RunContext& context) const {
  TileRunner tiles(*this, context, 0);
  program_->reduce->identity(tiles.accumulator(0), 1);
  for (std::int64_t o = 0; o < outer_; ++o) tiles.store(o, tiles.accumulator(0), 1);
}

/// Several outputs a tile.
void RegionStep::run_rows_short(const RunContext& context) const {
  const ReduceOps& ops = *program_->reduce;
  const std::int64_t rows_per_tile = tile_ / reduced_;
  const std::int64_t tasks = (outer_ + rows_per_tile - 1) / rows_per_tile;
  const std::int64_t size = static_cast<std::int64_t>(outputs_[0].size);
  parallel_ranges(tasks, threads_for(nanoseconds_, tasks), [&](std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    TileRunner tiles(*this, context, begin * rows_per_tile * reduced_);
    std::byte* wide = tiles.accumulator(0);
    std::byte* narrow = tiles.accumulator(1);
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t first = t * rows_per_tile;
      const std::int64_t rows = std::min(rows_per_tile, outer_ - first);
      tiles.run(rows * reduced_);
      const std::byte* values = tiles.result();
      ops.wide_identity(wide, rows);
      for (std::int64_t r = 0; r < rows; ++r)
        ops.horizontal(wide + r * kWideBytes, values + r * reduced_ * size, reduced_);
      ops.finish(narrow, wide, rows);
      tiles.store(first, narrow, rows);
    }
  });
}

void RegionStep::reduce_row_chunk(TileRunner& tiles, std::int64_t output, std::int64_t chunk,
                                  void* wide) const {
  const ReduceOps& ops = *program_->reduce;
  const std::int64_t begin = chunk * part_;
  const std::int64_t end = std::min(reduced_, begin + part_);
  ops.wide_identity(wide, 1);
  tiles.seek(output * reduced_ + begin);
  for (std::int64_t at = begin; at < end; at += tile_) {
    const std::int64_t n = std::min(tile_, end - at);
    tiles.run(n);
    ops.horizontal(wide, tiles.result(), n);
  }
}

/// One output takes one or more tiles.
void RegionStep::run_rows(const RunContext& context) const {
  const ReduceOps& ops = *program_->reduce;
  const std::int64_t tasks = outer_ * parts_;
  const int threads = threads_for(nanoseconds_, tasks);
  if (parts_ == 1) {
    parallel_ranges(tasks, threads, [&](std::int64_t begin, std::int64_t end) {
      if (begin == end) return;
      TileRunner tiles(*this, context, begin * reduced_);
      for (std::int64_t o = begin; o < end; ++o) {
        reduce_row_chunk(tiles, o, 0, tiles.accumulator(0));
        ops.finish(tiles.accumulator(1), tiles.accumulator(0), 1);
        tiles.store(o, tiles.accumulator(1), 1);
      }
    });
    return;
  }
  std::byte* partial = partial_scratch().get(static_cast<std::size_t>(tasks * kWideBytes));
  parallel_ranges(tasks, threads, [&](std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    TileRunner tiles(*this, context, 0);
    for (std::int64_t t = begin; t < end; ++t)
      reduce_row_chunk(tiles, t / parts_, t % parts_, partial + t * kWideBytes);
  });
  TileRunner tiles(*this, context, 0);
  for (std::int64_t o = 0; o < outer_; ++o) {
    std::byte* wide = partial + o * parts_ * kWideBytes;
    for (std::int64_t p = 1; p < parts_; ++p) ops.merge(wide, wide + p * kWideBytes, 1);
    ops.finish(tiles.accumulator(1), wide, 1);
    tiles.store(o, tiles.accumulator(1), 1);
  }
}

void RegionStep::reduce_column_chunk(TileRunner& tiles, std::int64_t outer, std::int64_t column,
                                     std::int64_t chunk, void* wide) const {
  const ReduceOps& ops = *program_->reduce;
  const std::int64_t first = column * column_chunk_;
  const std::int64_t width = std::min(column_chunk_, width_ - first);
  const std::int64_t begin = chunk * part_;
  const std::int64_t end = std::min(reduced_, begin + part_);
  // Whole narrow rows share a tile.
  const std::int64_t rows_per_tile = column_chunks_ == 1 ? tile_ / width : 1;
  std::byte* acc = tiles.accumulator(2);
  ops.wide_identity(wide, width);
  ops.identity(acc, width);
  std::int64_t unfolded = 0;
  if (column_chunks_ == 1) tiles.seek((outer * reduced_ + begin) * width_);
  for (std::int64_t r = begin; r < end;) {
    const std::int64_t rows = std::min({rows_per_tile, end - r, kRowsPerFold});
    if (column_chunks_ > 1) tiles.seek((outer * reduced_ + r) * width_ + first);
    tiles.run(rows * width);
    ops.columns(acc, tiles.result(), rows, width);
    r += rows;
    unfolded += rows;
    if (unfolded >= kRowsPerFold) {
      ops.fold(wide, acc, width);
      unfolded = 0;
    }
  }
  if (unfolded > 0) ops.fold(wide, acc, width);
}

void RegionStep::run_columns(const RunContext& context) const {
  const ReduceOps& ops = *program_->reduce;
  const std::int64_t blocks = outer_ * column_chunks_;  // of outputs
  const std::int64_t tasks = blocks * parts_;
  const int threads = threads_for(nanoseconds_, tasks);
  const auto store_block = [&](TileRunner& tiles, std::int64_t block, const std::byte* wide) {
    const std::int64_t first = block % column_chunks_ * column_chunk_;
    const std::int64_t width = std::min(column_chunk_, width_ - first);
    ops.finish(tiles.accumulator(1), wide, width);
    tiles.store(block / column_chunks_ * width_ + first, tiles.accumulator(1), width);
  };
  if (parts_ == 1) {
    parallel_ranges(tasks, threads, [&](std::int64_t begin, std::int64_t end) {
      if (begin == end) return;
      TileRunner tiles(*this, context, 0);
      for (std::int64_t b = begin; b < end; ++b) {
        reduce_column_chunk(tiles, b / column_chunks_, b % column_chunks_, 0, tiles.accumulator(0));
        store_block(tiles, b, tiles.accumulator(0));
      }
    });
    return;
  }
  const std::int64_t block_bytes = column_chunk_ * kWideBytes;
  std::byte* partial = partial_scratch().get(static_cast<std::size_t>(tasks * block_bytes));
  parallel_ranges(tasks, threads, [&](std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    TileRunner tiles(*this, context, 0);
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t b = t / parts_;
      reduce_column_chunk(tiles, b / column_chunks_, b % column_chunks_, t % parts_,
                          partial + t * block_bytes);
    }
  });
  TileRunner tiles(*this, context, 0);
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t first = b % column_chunks_ * column_chunk_;
    const std::int64_t width = std::min(column_chunk_, width_ - first);
    std::byte* wide = partial + b * parts_ * block_bytes;
    for (std::int64_t p = 1; p < parts_; ++p) ops.merge(wide, wide + p * block_bytes, width);
    store_block(tiles, b, wide);
  }
}

}  // namespace caldera::cpu
