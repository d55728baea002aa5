#include "engine/device/cpu/regions/region_step.h"

#include <algorithm>

#include "engine/device/cpu/regions/region_space.h"

namespace caldera::cpu {
namespace {

/// Points of a reduction that one task combines. Fixed, so that threads do not change results.
constexpr std::int64_t kReducePart = 64 * 1024;

/// Bytes that the values kept from pass to pass over a long row may take: they are to stay in the L2 cache.
constexpr std::int64_t kKeptBytes = 512 * 1024;

/// Rows that share a tile where operands are across them, and the most points of such a row: a tile of them
/// is to stay in the L2 cache.
constexpr std::int64_t kRowsAcross = 16;
constexpr std::int64_t kLongestAcross = 2048;

/// Shorter rows are not gone through one by one: operands that are one a row are expanded.
constexpr std::int64_t kShortRow = 24;

/// Shorter innermost runs share tiles.
constexpr std::int64_t kShortRun = 256;

/// Points of a run that machine code takes as a row.
constexpr std::int64_t kShortestRun = 16;

}  // namespace

void PreparedRegion::list_operands(std::span<const Operand> operands, std::size_t given_inputs,
                                   std::size_t given_outputs) {
  const Kernel& kernel = region_->kernel();
  layout_.inputs.resize(kernel.inputs.size());
  layout_.indices.resize(static_cast<std::size_t>(kernel.index_count));
  layout_.outputs.resize(kernel.outputs.size());
  std::size_t o = 0;
  for (std::size_t i = 0; i < layout_.inputs.size(); ++i) {
    layout_.inputs[i].size = size_of(kernel.inputs[i]);
    if (i >= given_inputs) layout_.inputs[i].buffer = operands[o++].buffer;
  }
  o += layout_.indices.size();
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i) {
    layout_.outputs[i].size = size_of(kernel.outputs[i].type);
    if (i >= given_outputs) layout_.outputs[i].buffer = operands[o++].buffer;
  }
}

PreparedRegion::PreparedRegion(std::shared_ptr<const RegionProgram> program, const Shape& space,
                               std::span<const Operand> operands, std::span<const std::int32_t> scalars,
                               int given_inputs, int given_outputs)
    : region_(std::move(program)) {
  layout_.scalars.assign(scalars.begin(), scalars.end());
  list_operands(operands, static_cast<std::size_t>(given_inputs), static_cast<std::size_t>(given_outputs));
  Space points(space, operands, space.rank());
  total_ = points_of(points.dims);
  points.collapse();
  prepare_elementwise(points);
}

PreparedRegion::PreparedRegion(const Step& step, const RegionStep& region,
                               std::shared_ptr<const RegionProgram> program)
    : region_(std::move(program)) {
  layout_.scalars = step.scalars;
  list_operands(step.operands, 0, 0);
  const Kernel& kernel = region_->kernel();
  Space space(step.dims, step.operands, step.dims.rank() - region.reduce_rank);
  total_ = points_of(space.dims);
  nanoseconds_ = static_cast<double>(total_) * region_->nanoseconds_per_element;
  copies_ = is_copy(step);
  space.collapse();
  if (kernel.reduce || kernel.has_rows()) {
    prepare_reduction(std::move(space));
  } else if (total_ > 0) {
    if (moves_only(step))
      turned_ = TurnedCopy::of(space.dims, space.strides[0], space.strides[1], step.operands[0].offset,
                               step.operands[1].offset, layout_.inputs[0].size);
    prepare_across(std::move(space), total_);
  }
}

void PreparedRegion::prepare_reduction(Space space) {
  const auto kept = static_cast<std::size_t>(space.kept);
  outer_ = points_of(std::span(space.dims).first(kept));
  reduced_ = points_of(std::span(space.dims).subspan(kept));
  if (outer_ == 0) return;
  // The kept dim that most inputs run along, if it beats the innermost reduced one. Indices count as inputs:
  // what is generated is combined in the order in which it would be read.
  if (region_->kernel().reduce && reduced_ > 0 && kept > 0 && kept < space.dims.size()) {
    const std::size_t inputs = layout_.inputs.size() + layout_.indices.size();
    std::size_t best = 0;
    for (std::size_t d = 1; d < kept; ++d)
      if (space.unit_strides(d, inputs) >= space.unit_strides(best, inputs)) best = d;
    if (space.unit_strides(best, inputs) > space.unit_strides(space.dims.size() - 1, inputs)) {
      width_ = space.dims[best];
      outer_ /= width_;
      space.rotate_to_end(best);
      return prepare_columns(space);
    }
  }
  prepare_rows(space);
}

TileForm PreparedRegion::form_of(const Space& space, std::size_t row_dims) const {
  TileForm form;
  const bool empty = points_of(std::span(space.dims).subspan(row_dims)) < 2;
  std::size_t o = 0;
  const auto uniform = [&](const BoundOperand& bound, bool index) {
    if (bound.buffer < 0 && !index) return false;  // given at run time, one a point
    const auto& strides = space.strides[o++];
    return !empty && std::all_of(strides.begin() + static_cast<std::ptrdiff_t>(row_dims), strides.end(),
                                 [](std::int64_t s) { return s == 0; });
  };
  for (const BoundOperand& b : layout_.inputs) form.uniform_inputs.push_back(uniform(b, false));
  for (const BoundOperand& b : layout_.indices) form.uniform_indices.push_back(uniform(b, true));
  return form;
}

void PreparedRegion::bind(const Space& space, std::size_t row_dims) {
  const TileProgram& program = *layout_.program;
  const std::span<const std::int64_t> dims(space.dims);
  std::size_t o = 0;
  const auto access = [&](bool by_row) {
    const std::span<const std::int64_t> strides(space.strides[o]);
    const std::size_t rank = by_row ? row_dims : dims.size();
    return make_access(dims.first(rank), strides.first(rank), space.offsets[o++]);
  };
  const auto contains = [](const std::vector<std::uint16_t>& list, std::size_t i) {
    return std::find(list.begin(), list.end(), i) != list.end();
  };
  for (std::size_t i = 0; i < layout_.inputs.size(); ++i)
    if (layout_.inputs[i].buffer >= 0) layout_.inputs[i].access = access(contains(program.row_inputs, i));
  for (std::size_t i = 0; i < layout_.indices.size(); ++i)
    layout_.indices[i].access = access(contains(program.row_indices, i));
  for (auto* list : {&layout_.inputs, &layout_.indices})
    for (BoundOperand& b : *list) b.repeats = b.access.rank <= 2 && b.access.strides[0] == 0;
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i) {
    if (layout_.outputs[i].buffer < 0) continue;
    if (mode_ != Mode::columns) {
      layout_.outputs[i].access = access(program.outputs[i].per_row);
      continue;
    }
    // The dims but the reduced ones, which are between the others.
    std::vector<std::int64_t> kept_dims(dims.begin(), dims.begin() + space.kept - 1);
    std::vector<std::int64_t> strides(space.strides[o].begin(), space.strides[o].begin() + space.kept - 1);
    kept_dims.push_back(dims.back());
    strides.push_back(space.strides[o].back());
    layout_.outputs[i].access = make_access(kept_dims, strides, space.offsets[o++]);
  }
}

void PreparedRegion::prepare_elementwise(const Space& space) {
  mode_ = Mode::elementwise;
  // Tiles within rows let every operand be used in place; short rows share tiles.
  const std::int64_t inner = space.dims.empty() ? 1 : space.dims.back();
  const bool by_row = space.dims.size() > 1 && inner >= kShortRun;
  const std::size_t row_dims = by_row ? space.dims.size() - 1 : 0;
  layout_.program = region_->decoded(form_of(space, row_dims));
  bind(space, row_dims);
  layout_.row = by_row ? inner : total_;
  layout_.tile = std::min(layout_.program->tile, ceil_div(layout_.row, 16) * 16);
  if (total_ == 0) return;
  chunks_ = ceil_div(layout_.row, layout_.tile);
  chunk_ = std::min(layout_.tile, ceil_div(ceil_div(layout_.row, chunks_), 16) * 16);
  // Tiles of whole short runs all read the same of what repeats from run to run.
  if (!by_row && inner > 1 && inner < chunk_) chunk_ -= chunk_ % inner;
  chunks_ = ceil_div(layout_.row, chunk_);
  tiles_ = total_ / layout_.row * chunks_;
  contiguous_ = row_dims == 0 && is_contiguous();
  find_direct_operands();
  if (!is_direct_ && !by_row && !turns_) find_short_runs(space);
}

/// Rows of a few points that lie in every operand as runs, in blocks at equal distances: machine code takes
/// them where they are, where tiles would have to gather them.
void PreparedRegion::find_short_runs(const Space& space) {
  const TileProgram& program = *layout_.program;
  const std::size_t rank = space.dims.size();
  direct_operands_.clear();
  if (rank < 2 || space.dims.back() < kShortestRun || !layout_.indices.empty()) return;
  std::size_t o = 0;
  const auto add = [&](std::size_t location, const BoundOperand& bound, bool by_row) {
    if (bound.buffer < 0) return false;
    const auto& strides = space.strides[o];
    if (strides.back() != (by_row ? 0 : 1)) return false;
    direct_operands_.push_back({static_cast<std::uint16_t>(location),
                                by_row,
                                bound.buffer,
                                static_cast<std::int64_t>(bound.size),
                                space.offsets[o++],
                                strides[rank - 2],
                                {strides.begin(), strides.end() - 2}});
    return true;
  };
  for (std::size_t i = 0; i < layout_.inputs.size(); ++i) {
    const bool by_row = std::ranges::find(program.row_inputs, i) != program.row_inputs.end();
    if (!add(i, layout_.inputs[i], by_row)) return;
  }
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i)
    if (!add(program.first_output() + i, layout_.outputs[i], false)) return;
  run_ = space.dims.back();
  block_rows_ = space.dims[rank - 2];
  block_dims_.assign(space.dims.begin(), space.dims.end() - 2);
  is_direct_ = true;
}

bool PreparedRegion::is_contiguous() const {
  const TileProgram& program = *layout_.program;
  const auto in_one_run = [&](std::uint16_t i) {
    return layout_.inputs[i].buffer >= 0 && layout_.inputs[i].access.contiguous();
  };
  bool all = program.point_indices.empty() && program.row_indices.empty() &&
             std::all_of(program.point_inputs.begin(), program.point_inputs.end(), in_one_run);
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i)
    all = all && layout_.outputs[i].buffer >= 0 && layout_.outputs[i].access.contiguous() &&
          program.outputs[i].direct;
  return all;
}

void PreparedRegion::prepare_rows(const Space& space) {
  const auto row_dims = static_cast<std::size_t>(space.kept);
  TileForm form = form_of(space, row_dims);
  form.reduces_rows = true;
  form.expand = reduced_ < kShortRow;
  auto program = region_->decoded(form);
  layout_.row = reduced_;
  layout_.rows = reduced_ == 0 ? program->tile : program->tile / reduced_;
  // Operands that run through memory across the rows are read a line of the cache at a time.
  const std::size_t inputs = layout_.inputs.size();
  if (row_dims > 0 && reduced_ > 1 && reduced_ <= kLongestAcross &&
      space.unit_strides(row_dims - 1, inputs) > space.unit_strides(space.dims.size() - 1, inputs))
    layout_.rows = std::max(layout_.rows, kRowsAcross);
  mode_ = layout_.rows > 0 ? Mode::short_rows : Mode::long_rows;
  if (mode_ == Mode::short_rows) {
    layout_.rows = std::min(layout_.rows, outer_);
    layout_.tile = ceil_div(layout_.rows * std::max<std::int64_t>(reduced_, 1), 16) * 16;
  } else {
    part_ = kReducePart;
    parts_ = ceil_div(reduced_, part_);
    // A row that threads share is gone through by each of them from the start.
    const std::int64_t kept = program->kept * static_cast<std::int64_t>(program->element_bytes) * reduced_;
    if (parts_ > 1 || kept > kKeptBytes) {
      form.recompute = true;
      program = region_->decoded(form);
    }
    layout_.tile = program->tile;
    layout_.rows = 1;
  }
  layout_.program = std::move(program);
  bind(space, row_dims);
  find_direct_operands();
}

void PreparedRegion::prepare_columns(const Space& space) {
  mode_ = Mode::columns;
  one_row_a_tile_ = width_ >= kShortRun;
  const std::size_t row_dims = one_row_a_tile_ ? space.dims.size() - 1 : 0;
  TileForm form;
  if (one_row_a_tile_) form = form_of(space, row_dims);
  layout_.program = region_->decoded(form);
  bind(space, row_dims);
  layout_.tile = layout_.program->tile;
  layout_.row = width_;
  part_ = std::max<std::int64_t>(kReducePart / width_, 64);
  parts_ = ceil_div(reduced_, part_);
  column_chunks_ = ceil_div(width_, layout_.tile);
  column_chunk_ = std::min(layout_.tile, ceil_div(ceil_div(width_, column_chunks_), 16) * 16);
  column_chunks_ = ceil_div(width_, column_chunk_);
}

}  // namespace caldera::cpu
