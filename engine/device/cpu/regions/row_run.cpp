// Running a region whose rows are reduced: softmax, normalisations, sums along rows.
//
// A row that fits a tile is gone through once, with all its values in tile buffers; several short rows share
// a tile. A longer row takes a walk for each pass. What a later pass needs of an earlier one is kept where it
// fits the L2 cache, and computed again from the operands where it does not.
#include <algorithm>
#include <array>
#include <cstring>

#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/regions/region_step.h"
#include "engine/device/cpu/tiles/tile_runner.h"

namespace caldera::cpu {
namespace {

Scratch& row_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

std::uint32_t reductions_of(const TileProgram::Pass& pass) {
  return pass.reductions.end - pass.reductions.begin;
}

}  // namespace

void PreparedRegion::run_short_rows(const RunContext& context) const {
  const std::int64_t tasks = (outer_ + layout_.rows - 1) / layout_.rows;
  const RowFunction machine = machine_code();
  parallel_ranges(tasks, threads_for(nanoseconds_, tasks), [&](std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    TileRunner tiles(layout_, context, tile_scratch(), machine);
    if (begin > 0) {
      tiles.seek(begin * layout_.rows * layout_.row);
      tiles.seek_rows(begin * layout_.rows);
    }
    for (std::int64_t t = begin; t < end; ++t)
      tiles.run_rows(std::min(layout_.rows, outer_ - t * layout_.rows));
  });
}

/// One part of one pass over a row. `wide` receives what its reductions give for the part.
void PreparedRegion::run_part(const PartRunner& runner, std::size_t pass, std::int64_t row, std::int64_t part,
                              std::byte* wide) const {
  const TileProgram& program = *layout_.program;
  const TileProgram::Pass& p = program.passes[pass];
  for (std::uint32_t r = 0; r < reductions_of(p); ++r)
    program.reductions[p.reductions.begin + r].ops->wide_identity(wide + r * kWideBytes, 1);
  const std::int64_t begin = part * part_;
  const std::int64_t end = std::min(reduced_, begin + part_);
  if (runner.machine != nullptr && is_direct_)
    return run_direct_rows(runner.machine, runner.context, row, 1, begin, end - begin, wide);
  TileRunner& tiles = runner.tiles;
  tiles.seek(row * reduced_ + begin);
  for (std::int64_t at = begin; at < end; at += layout_.tile)
    tiles.run_pass(p, at, std::min(layout_.tile, end - at), wide, runner.machine);
}

/// The parts' results, one after another, merged into the first in their order.
void PreparedRegion::merge_parts(std::size_t pass, std::byte* wide, std::int64_t parts) const {
  const TileProgram& program = *layout_.program;
  const TileProgram::Pass& p = program.passes[pass];
  const std::int64_t part_bytes = reductions_of(p) * kWideBytes;
  for (std::int64_t part = 1; part < parts; ++part)
    for (std::uint32_t r = 0; r < reductions_of(p); ++r)
      program.reductions[p.reductions.begin + r].ops->merge(wide + r * kWideBytes,
                                                            wide + part * part_bytes + r * kWideBytes, 1);
}

void PreparedRegion::run_long_rows(const RunContext& context) const {
  // Rows of several parts are shared by the threads where there are too few to go round.
  const int threads = threads_for(nanoseconds_, outer_ * parts_);
  if (parts_ > 1 && threads > 1 && outer_ < 2 * threads) return run_split_rows(context, threads);
  const RowFunction machine = machine_code_of_parts();
  const TileProgram& program = *layout_.program;
  parallel_ranges(outer_, threads_for(nanoseconds_, outer_), [&](std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    std::byte* wide = row_scratch().get(2 * (program.reductions.size() + 1) * kWideBytes);
    std::byte* next = wide + (program.reductions.size() + 1) * kWideBytes;
    TileRunner tiles(layout_, context, tile_scratch());
    const PartRunner runner{tiles, context, machine};
    tiles.seek_rows(begin);
    for (std::int64_t row = begin; row < end; ++row) {
      tiles.start_rows(1);
      for (std::size_t p = 0; p < program.passes.size(); ++p) {
        run_part(runner, p, row, 0, wide);
        for (std::int64_t part = 1; part < parts_; ++part) {
          run_part(runner, p, row, part, next);
          const TileProgram::Range range = program.passes[p].reductions;
          for (std::uint32_t r = range.begin; r < range.end; ++r)
            program.reductions[r].ops->merge(wide + (r - range.begin) * kWideBytes,
                                             next + (r - range.begin) * kWideBytes, 1);
        }
        tiles.finish_pass(program.passes[p], wide);
      }
      tiles.store_rows(1);
    }
  });
}

/// Row by row and pass by pass, the threads share the parts. Every thread computes what is one a row for
/// itself, from the results of the passes before.
void PreparedRegion::run_split_rows(const RunContext& context, int threads) const {
  const RowFunction machine = machine_code_of_parts();
  const TileProgram& program = *layout_.program;
  const auto reductions = static_cast<std::int64_t>(program.reductions.size());
  // Of each reduction its parts; a pass's reductions are side by side in every part.
  std::byte* all = row_scratch().get(static_cast<std::size_t>(reductions * parts_ * kWideBytes + 1));
  const auto results_of = [&](const TileProgram::Pass& p) {
    return all + static_cast<std::int64_t>(p.reductions.begin) * parts_ * kWideBytes;
  };
  for (std::int64_t row = 0; row < outer_; ++row) {
    const auto start = [&](TileRunner& tiles, std::size_t finished) {
      tiles.seek_rows(row);
      tiles.start_rows(1);
      for (std::size_t p = 0; p < finished; ++p)
        tiles.finish_pass(program.passes[p], results_of(program.passes[p]));
    };
    for (std::size_t p = 0; p < program.passes.size(); ++p) {
      const TileProgram::Pass& pass = program.passes[p];
      parallel_ranges(parts_, threads, [&](std::int64_t begin, std::int64_t end) {
        if (begin == end) return;
        TileRunner tiles(layout_, context, tile_scratch());
        start(tiles, p);
        for (std::int64_t part = begin; part < end; ++part)
          run_part({tiles, context, machine}, p, row, part,
                   results_of(pass) + part * reductions_of(pass) * kWideBytes);
      });
      merge_parts(p, results_of(pass), parts_);
    }
    TileRunner tiles(layout_, context, tile_scratch());
    start(tiles, program.passes.size());
    tiles.store_rows(1);
  }
}

}  // namespace caldera::cpu
