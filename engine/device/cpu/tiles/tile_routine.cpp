#include "engine/device/cpu/tiles/tile_routine.h"

#include <optional>

namespace caldera::cpu {
namespace {

std::vector<bool> uniform_locations(const TileProgram& program) {
  std::vector<bool> uniform(program.locations(), false);
  for (std::uint16_t i : program.row_inputs) uniform[i] = true;
  for (std::size_t i = 0; i < program.scalars.size(); ++i) uniform[program.first_scalar() + i] = true;
  for (std::uint16_t i : program.row_indices) uniform[program.first_index() + i] = true;
  for (std::size_t l = program.first_row_temporary(); l < program.first_output(); ++l) uniform[l] = true;
  return uniform;
}

std::vector<RoutineLine> lines_of(const TileProgram& program, TileProgram::Range range) {
  std::vector<RoutineLine> lines;
  for (std::uint32_t at = range.begin; at < range.end; ++at) {
    const MicroInstruction& m = program.code[at];
    lines.push_back({m.op, m.type, m.operand, m.out, m.a, m.b, m.c});
  }
  return lines;
}

}  // namespace

RowRoutine routine_of(const TileProgram& program, CodeVersion version) {
  const bool of_part = version == CodeVersion::part;
  RowRoutine routine;
  routine.stores_wide = of_part;
  routine.streams = version == CodeVersion::streaming;
  routine.asks_for_next_row = version == CodeVersion::far;
  routine.uniform = uniform_locations(program);
  routine.row_code = lines_of(program, program.first_row_code);
  const std::size_t first_kept = program.first_temporary();
  routine.own.assign(program.locations(), false);
  for (int k = 0; k < program.kept; ++k) routine.own[first_kept + static_cast<std::size_t>(k)] = true;
  for (const TileProgram::Pass& pass : program.passes) {
    RoutineWalk& walk = routine.walks.emplace_back();
    walk.code = lines_of(program, pass.code);
    walk.row_code = lines_of(program, pass.row_code);
    for (std::uint32_t r = pass.reductions.begin; r < pass.reductions.end; ++r) {
      const TileProgram::Reduction& reduction = program.reductions[r];
      walk.reductions.push_back({reduction.combine, reduction.type, reduction.in, reduction.out});
    }
    // What the walk computes last of a location lasts.
    std::vector<std::optional<DType>> written(program.locations());
    for (const RoutineLine& line : walk.code) written[line.out] = line.type;
    const auto store = [&](std::size_t location) {
      if (written[location])
        walk.stores.push_back({static_cast<std::uint16_t>(location), *written[location]});
    };
    for (int k = 0; k < program.kept; ++k) store(first_kept + static_cast<std::size_t>(k));
    for (std::size_t l = program.first_output(); l < program.locations(); ++l) store(l);
    if (program.reduce != nullptr && walk.reductions.empty()) store(program.result);
  }
  for (const TileProgram::Output& output : program.outputs)
    if (output.per_row && !of_part) routine.row_stores.push_back({output.location, output.type});
  return routine;
}

RowFunction machine_code_of(const TileProgram& program, double nanoseconds, CodeVersion version) {
  return program.machine->find(
      nanoseconds, [&] { return routine_of(program, version); }, version);
}

}  // namespace caldera::cpu
