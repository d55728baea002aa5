// Running a prepared region piece by piece. Reductions have the same parts as when they run as a whole, so
// they give the same bits.
#include <algorithm>

#include "engine/device/cpu/regions/region_step.h"
#include "engine/device/cpu/tiles/tile_runner.h"

namespace caldera::cpu {

std::int64_t PreparedRegion::piece() const {
  if (total_ == 0) return 0;
  switch (mode_) {
    case Mode::nothing:
      return 0;
    case Mode::elementwise:
      if (!is_direct_ || turned_ || turns_ || run_ > 0 || copies_ || !rests_.empty()) return 0;
      return total_ == layout_.row ? kShare : layout_.row;
    case Mode::short_rows:
      return is_direct_ ? reduced_ : 0;
    case Mode::long_rows:
      if (parts_ == 1) return is_direct_ ? reduced_ : 0;
      return outer_ == 1 && layout_.program->passes.size() == 1 ? part_ : 0;
    case Mode::columns:
      return outer_ == 1 && parts_ > 1 ? part_ * width_ : 0;
  }
  return 0;
}

std::size_t PreparedRegion::partial_bytes() const {
  if (!merges_pieces()) return 0;
  const auto reductions = static_cast<std::int64_t>(layout_.program->reductions.size());
  const std::int64_t values = mode_ == Mode::columns ? column_chunks_ * column_chunk_ : reductions;
  return static_cast<std::size_t>(values * parts_ * kWideBytes);
}

RowFunction PreparedRegion::piece_function(int threads) const {
  if (mode_ == Mode::columns) return machine_code();
  return merges_pieces() ? machine_code_of_parts() : machine_code_of_rows(threads);
}

void PreparedRegion::run_piece(const RunContext& context, RowFunction function, std::int64_t begin,
                               std::int64_t end, std::byte* partial) const {
  if (mode_ == Mode::elementwise && total_ == layout_.row)
    return run_direct_rows(function, context, 0, 1, begin, end - begin);
  if (!merges_pieces())
    return run_direct_rows(function, context, begin / layout_.row, (end - begin) / layout_.row, 0,
                           layout_.row);
  const std::int64_t part = begin / piece();
  if (mode_ == Mode::columns) {
    TileRunner tiles(layout_, context, tile_scratch(), function);
    for (std::int64_t b = 0; b < column_chunks_; ++b)
      reduce_column_chunk(tiles, 0, b, part, partial + (b * parts_ + part) * column_chunk_ * kWideBytes);
    return;
  }
  TileRunner tiles(layout_, context, tile_scratch());
  tiles.seek_rows(0);
  tiles.start_rows(1);
  const auto reductions = static_cast<std::int64_t>(layout_.program->reductions.size());
  run_part({tiles, context, function}, 0, 0, part, partial + part * reductions * kWideBytes);
}

void PreparedRegion::finish_pieces(const RunContext& context, std::byte* partial) const {
  if (mode_ == Mode::columns) return finish_columns(context, partial);
  merge_parts(0, partial, parts_);
  TileRunner tiles(layout_, context, tile_scratch());
  tiles.seek_rows(0);
  tiles.start_rows(1);
  tiles.finish_pass(layout_.program->passes[0], partial);
  tiles.store_rows(1);
}

std::vector<PreparedRegion::Use> PreparedRegion::reads() const {
  std::vector<Use> uses;
  for (const BoundOperand& b : layout_.inputs) uses.push_back({b.buffer, std::nullopt});
  for (const std::uint16_t i : layout_.program->point_inputs) {
    const Access& access = layout_.inputs[i].access;
    if (access.contiguous()) uses[i].offset = access.offset;
  }
  return uses;
}

std::vector<PreparedRegion::Use> PreparedRegion::writes() const {
  std::vector<Use> uses;
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i) {
    const BoundOperand& b = layout_.outputs[i];
    const bool by_point = !merges_pieces() && !layout_.program->outputs[i].per_row && b.access.contiguous();
    uses.push_back({b.buffer, by_point ? std::optional(b.access.offset) : std::nullopt});
  }
  return uses;
}

}  // namespace caldera::cpu
