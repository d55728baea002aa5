// Running a prepared region by machine code that goes through its operands where they are: no tiles, no
// copies.
//
// That takes operands whose rows are runs of memory at equal distances (or all the same row), as those of
// nearly every kernel are. Others are gathered into tiles, which machine code runs through one by one.
#include <algorithm>

#include "engine/device/cpu/host/cpu_info.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/regions/region_step.h"
#include "engine/device/cpu/tiles/tile_routine.h"
#include "engine/device/cpu/tiles/tile_runner.h"

namespace caldera::cpu {
namespace {

/// The longest row of which coordinates are written down.
constexpr std::int64_t kLongestCoordinates = 64 * 1024;

constexpr std::int64_t kLine = 64;  // bytes of a line of the cache, and of the widest register

/// Beside that of a TileRunner, which may be at work.
Scratch& direct_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

/// Elements from the place in a row to that in the next one; nothing where these are not equal, or a row's
/// points do not follow each other.
std::optional<std::int64_t> row_step(const Access& access, std::int64_t row, bool by_row) {
  const auto stride = [&](int d) { return access.strides[static_cast<std::size_t>(d)]; };
  if (by_row) return access.rank == 1 ? std::optional(stride(0)) : std::nullopt;
  if (access.inner_stride() != 1)
    return row == 1 && access.rank == 1 ? std::optional(stride(0)) : std::nullopt;
  if (access.rank == 1) return row;
  if (access.rank == 2 && access.inner_dim() == row) return stride(0);
  return std::nullopt;
}

}  // namespace

/// Whether coordinates are the same in every row, or one number for all of it: they are written down once.
bool PreparedRegion::has_direct_indices() const {
  const TileProgram& program = *layout_.program;
  if (program.point_indices.empty() && program.row_indices.empty()) return true;
  if (layout_.row > kLongestCoordinates) return false;
  return std::ranges::all_of(program.point_indices, [&](std::uint16_t i) {
    const Access& access = layout_.indices[i].access;
    return access.rank <= 2 && access.inner_dim() == layout_.row &&
           (access.rank == 1 || access.strides[0] == 0);
  });
}

void PreparedRegion::find_direct_operands() {
  const TileProgram& program = *layout_.program;
  if (!has_direct_indices()) return;
  std::vector<bool> is_taken(program.locations(), false);
  const auto add = [&](std::size_t location, const BoundOperand& bound, bool by_row) {
    const std::optional<std::int64_t> step = row_step(bound.access, layout_.row, by_row);
    if (bound.buffer < 0 || !step || is_taken[location]) return false;
    is_taken[location] = true;
    direct_operands_.push_back({static_cast<std::uint16_t>(location), by_row, bound.buffer,
                                static_cast<std::int64_t>(bound.size), bound.access.offset, *step});
    return true;
  };
  for (std::uint16_t i : program.point_inputs)
    if (!add(i, layout_.inputs[i], false)) return;
  for (std::uint16_t i : program.row_inputs)
    if (!add(i, layout_.inputs[i], true)) return;
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i) {
    const TileProgram::Output& output = program.outputs[i];
    const std::size_t location = output.per_row ? output.location : program.first_output() + i;
    if (!add(location, layout_.outputs[i], output.per_row)) return;
  }
  is_direct_ = true;
}

/// The function for rows that so many threads go through where they are. Rows are not asked for ahead where
/// all of them may be in near caches, which would only take time, nor where one is long for such a cache.
RowFunction PreparedRegion::machine_code_of_rows(int threads) const {
  const TileProgram& program = *layout_.program;
  std::int64_t point = 0;  // bytes of one of all operands and results
  for (const DirectOperand& o : direct_operands_)
    if (!o.by_row && o.step != 0) point += o.size;
  const bool is_far = program.passes.size() > 1 && layout_.row * point <= second_level_cache_bytes() / 16 &&
                      total_ * point > threads * second_level_cache_bytes();
  return machine_code(is_far ? CodeVersion::far : CodeVersion::plain);
}

RowFunction PreparedRegion::machine_code(CodeVersion version) const {
  return machine_code_of(*layout_.program, nanoseconds_, version);
}

/// That of parts of rows, of which only reductions come.
RowFunction PreparedRegion::machine_code_of_parts() const {
  const TileProgram& program = *layout_.program;
  const bool only_reduces = std::all_of(program.outputs.begin(), program.outputs.end(),
                                        [](const TileProgram::Output& output) { return output.per_row; });
  if (program.passes.size() > 1 || !only_reduces) return nullptr;
  return machine_code(CodeVersion::part);
}

/// Bytes of operands and results beyond which nothing is left in a cache for whoever reads it next, however
/// large the system says that the cache is: those of servers belong to many cores, and to other machines than
/// a virtual one.
constexpr std::int64_t kMostInCache = std::int64_t{48} << 20;

/// Whether results had better go past the caches: they would push out what is still to be read, and be pushed
/// out before anybody reads them.
bool PreparedRegion::may_stream(const RunContext& context) const {
  const TileProgram& program = *layout_.program;
  std::int64_t bytes = 0;
  for (const DirectOperand& o : direct_operands_)
    if (!o.by_row && o.step != 0) bytes += total_ * o.size;
  const std::int64_t most = std::min(last_level_cache_bytes(), kMostInCache);
  if (mode_ != Mode::elementwise || run_ > 0 || bytes <= most) return false;
  const auto address = [&](const DirectOperand& o) {
    return context.buffers[static_cast<std::size_t>(o.buffer)] + o.offset * o.size;
  };
  return std::all_of(direct_operands_.begin(), direct_operands_.end(), [&](const DirectOperand& o) {
    if (o.location < program.first_output()) return true;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(address(o)) % kLine == 0 &&
                            (total_ == layout_.row || o.step * o.size % kLine == 0);
    // Lines that were read are in the cache, and stores past it would first have to drive them out.
    return is_aligned && o.size == 4 &&
           std::none_of(direct_operands_.begin(), direct_operands_.end(), [&](const DirectOperand& other) {
             return other.location < program.first_output() && address(other) == address(o);
           });
  });
}

/// Whether it ran.
bool PreparedRegion::run_direct(const RunContext& context) const {
  if (!is_direct_ || turned_) return false;
  const std::int64_t rows = total_ == 0 ? outer_ : total_ / (run_ > 0 ? run_ : layout_.row);
  const bool is_one_row = rows == 1 && mode_ == Mode::elementwise;
  const std::int64_t shares = is_one_row ? (layout_.row + kShare - 1) / kShare : rows;
  const int threads = threads_for(nanoseconds_, shares);
  // Tiles let threads share rows that are too few to go round.
  if (mode_ == Mode::elementwise && threads < threads_for(nanoseconds_, tiles_)) return false;
  RowFunction function = nullptr;
  if (may_stream(context)) function = machine_code(CodeVersion::streaming);
  if (function == nullptr) function = machine_code_of_rows(threads);
  if (function == nullptr) return false;
  parallel_ranges(shares, threads, [&](std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    if (run_ > 0) return run_short_runs(function, context, begin, end);
    if (!is_one_row) return run_direct_rows(function, context, begin, end - begin, 0, layout_.row);
    const std::int64_t first = begin * kShare;
    run_direct_rows(function, context, 0, 1, first, std::min(layout_.row, end * kShare) - first);
  });
  return true;
}

/// Rows [begin, end) of all blocks.
void PreparedRegion::run_short_runs(RowFunction function, const RunContext& context, std::int64_t begin,
                                    std::int64_t end) const {
  while (begin < end) {
    const std::int64_t row = begin % block_rows_;
    const std::int64_t rows = std::min(block_rows_ - row, end - begin);
    run_direct_rows(function, context, row, rows, 0, run_, nullptr, begin / block_rows_);
    begin += rows;
  }
}

void PreparedRegion::run_direct_rows(RowFunction function, const RunContext& context, std::int64_t first_row,
                                     std::int64_t rows, std::int64_t first_point, std::int64_t points,
                                     std::byte* wide, std::int64_t block) const {
  const TileProgram& program = *layout_.program;
  const std::size_t locations = program.locations();
  const std::size_t table_bytes = (2 * locations * sizeof(std::byte*) + 63) / 64 * 64;
  const std::size_t kept_bytes =
      (static_cast<std::size_t>(layout_.row) * program.element_bytes + 63) / 64 * 64 + 64;
  const auto kept = static_cast<std::size_t>(program.kept);
  const auto bytes_of = [&](std::uint16_t index, std::int64_t count) {
    return (static_cast<std::size_t>(count) * size_of(program.indices[index]) + 63) / 64 * 64 + 64;
  };
  std::size_t index_bytes = 0;
  for (std::uint16_t i : program.point_indices) index_bytes += bytes_of(i, points);
  for (std::uint16_t i : program.row_indices) index_bytes += bytes_of(i, rows);
  std::byte* memory = direct_scratch().get(table_bytes + index_bytes + kept * kept_bytes);
  auto** at = reinterpret_cast<std::byte**>(memory);
  auto* steps = reinterpret_cast<std::int64_t*>(at + locations);
  memory += table_bytes;
  std::fill_n(steps, locations, 0);
  for (const DirectOperand& o : direct_operands_) {
    std::int64_t element = o.offset + first_row * o.step + (o.by_row ? 0 : first_point);
    std::int64_t place = block;
    for (std::size_t d = block_dims_.size(); d-- > 0; place /= block_dims_[d])
      element += place % block_dims_[d] * o.outer[d];
    at[o.location] = context.buffers[static_cast<std::size_t>(o.buffer)] + element * o.size;
    steps[o.location] = o.step * o.size;
  }
  const auto write_down = [&](std::uint16_t i, std::int64_t first, std::int64_t count, std::int64_t step) {
    const std::size_t location = program.first_index() + i;
    Cursor cursor;
    cursor.seek(layout_.indices[i].access, first);
    generate_tile(layout_.indices[i].access, cursor, program.indices[i], memory, count);
    at[location] = memory;
    steps[location] = step;
    memory += bytes_of(i, count);
  };
  for (std::uint16_t i : program.point_indices) write_down(i, first_point, points, 0);
  for (std::uint16_t i : program.row_indices)
    write_down(i, first_row, rows, static_cast<std::int64_t>(size_of(program.indices[i])));
  for (std::size_t i = 0; i < program.scalars.size(); ++i) {
    const std::uint64_t& bits = context.scalars[static_cast<std::size_t>(layout_.scalars[i])];
    at[program.first_scalar() + i] =
        const_cast<std::byte*>(reinterpret_cast<const std::byte*>(&bits));  // is read alone
  }
  for (std::size_t k = 0; k < kept; ++k, memory += kept_bytes) at[program.first_temporary() + k] = memory;
  if (wide != nullptr)
    for (const TileProgram::Reduction& reduction : program.reductions) {
      at[reduction.out] = wide;
      wide += kWideBytes;
    }
  function(at, steps, rows, points);
}

}  // namespace caldera::cpu
