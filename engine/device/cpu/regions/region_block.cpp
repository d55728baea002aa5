#include "engine/device/cpu/regions/region_block.h"

#include <algorithm>

#include "engine/device/cpu/tiles/tile_routine.h"

namespace caldera::cpu {
namespace {

/// Shorter rows are taken together where they lie one behind the other; of others tiles do not cross rows.
constexpr std::int64_t kTogether = 256;

}  // namespace

RegionBlock::RegionBlock(std::shared_ptr<const RegionProgram> program, const Shape& space,
                         std::span<const Operand> operands, std::span<const std::int32_t> scalars,
                         Given given)
    : step_(std::move(program), space, operands, scalars, given.inputs, given.outputs),
      columns_(space.rank() == 0 ? 1 : space[space.rank() - 1]) {
  if (given.inputs == 1 && given.outputs == 0) find_places();
}

/// Nothing where its rows are not at equal distances, or a row's elements do not follow each other.
std::optional<RegionBlock::Place> RegionBlock::place_of(std::size_t location, const BoundOperand& bound,
                                                        bool by_row) const {
  const Access& access = bound.access;
  Place place{static_cast<std::uint16_t>(location),
              bound.buffer,
              static_cast<std::int64_t>(bound.size),
              access.offset,
              0,
              by_row ? 0 : 1};
  if (by_row) {
    // Its rows are those of tiles: the columns of the space, or all of it, for which there is one element.
    if (access.rank != 1 || (step_.layout_.row != columns_ && step_.layout_.row != step_.total_))
      return std::nullopt;
    place.row = step_.layout_.row == columns_ ? access.strides[0] : 0;
    return place;
  }
  if (access.inner_stride() != 1) return std::nullopt;
  if (access.rank == 1)
    place.row = columns_;
  else if (access.rank == 2 && access.inner_dim() == columns_)
    place.row = access.strides[0];
  else
    return std::nullopt;
  return place;
}

void RegionBlock::find_places() {
  const TileProgram& program = *step_.layout_.program;
  if (!program.indices.empty()) return;
  const auto add = [&](std::size_t location, const BoundOperand& bound, bool by_row) {
    if (bound.buffer < 0) return true;  // is given
    const std::optional<Place> place = place_of(location, bound, by_row);
    if (place) places_.push_back(*place);
    return place.has_value();
  };
  for (std::uint16_t i : program.point_inputs)
    if (!add(i, step_.layout_.inputs[i], false)) return;
  for (std::uint16_t i : program.row_inputs)
    if (!add(i, step_.layout_.inputs[i], true)) return;
  for (std::size_t i = 0; i < step_.layout_.outputs.size(); ++i)
    if (!add(program.first_output() + i, step_.layout_.outputs[i], false)) return;
  has_rows_in_memory_ = true;
}

BlockRunner::BlockRunner(const RegionBlock& block, const RunContext& context, Scratch& scratch,
                         std::int64_t points)
    : block_(block),
      layout_(block.step_.layout_),
      buffers_(context.buffers),
      machine_(
          machine_code_of(*layout_.program, static_cast<double>(points) * block.nanoseconds_per_point())),
      tiles_(layout_, context, scratch, machine_) {}

void BlockRunner::run_rows(const Rows& rows) {
  const auto size = static_cast<std::int64_t>(layout_.inputs[0].size);
  const auto* data = static_cast<const std::byte*>(rows.data);
  if (machine_ == nullptr || !block_.has_rows_in_memory_ || rows.width != block_.columns_) {
    const bool one_run =
        rows.columns == rows.width && rows.row_stride == rows.columns && rows.columns < kTogether;
    const std::int64_t together = one_run ? rows.rows : 1;
    for (std::int64_t r = 0; r < rows.rows; r += together) {
      const void* const input = data + r * rows.row_stride * size;
      run((rows.row + r) * rows.width + rows.column, together * rows.columns, {&input, 1});
    }
    return;
  }
  tiles_.place(0, const_cast<std::byte*>(data), rows.row_stride * size);  // is read alone
  for (const RegionBlock::Place& place : block_.places_) {
    const std::int64_t element = place.offset + rows.row * place.row + rows.column * place.column;
    tiles_.place(place.location, buffers_[static_cast<std::size_t>(place.buffer)] + element * place.size,
                 place.row * place.size);
  }
  tiles_.run_in_place(rows.rows, rows.columns);
}

void BlockRunner::run(std::int64_t position, std::int64_t n, std::span<const void* const> inputs,
                      std::span<void* const> outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) tiles_.give_input(i, inputs[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i) tiles_.give_output(i, outputs[i]);
  tiles_.seek(position);
  std::int64_t row = position / layout_.row;
  std::int64_t left = (row + 1) * layout_.row - position;  // of the row
  tiles_.seek_rows(row);
  tiles_.start_rows(1);
  while (n > 0) {
    const std::int64_t count = std::min({n, left, layout_.tile});
    tiles_.run(count);
    n -= count;
    left -= count;
    if (left > 0 || n == 0) continue;
    tiles_.start_rows(1);
    left = layout_.row;
  }
}

}  // namespace caldera::cpu
