#include "engine/device/cpu/tiles/tile_locations.h"

#include <algorithm>
#include <cstddef>

namespace caldera::cpu {
namespace {

/// Bytes that the tile buffers of a program may take together, so that they stay in the L1 cache.
constexpr std::size_t kTileBudget = 32 * 1024;
constexpr std::int64_t kLargestTile = 1024;

void list(const std::vector<bool>& flags, std::vector<std::uint16_t>& numbers) {
  for (std::size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) numbers.push_back(static_cast<std::uint16_t>(i));
}

}  // namespace

void number_locations(TileProgram& program) {
  const int plain = program.temporaries;
  program.temporaries += program.kept;
  const auto renumber = [&](std::uint16_t& l) {
    const auto from = [&](std::uint16_t base, std::size_t first) {
      l = static_cast<std::uint16_t>(l - base + first);
    };
    if (l >= kOutput)
      from(kOutput, program.first_output());
    else if (l >= kRow)
      from(kRow, program.first_row_temporary());
    else if (l >= kTemporary)
      from(kTemporary, program.first_row_temporary() - static_cast<std::size_t>(plain));
    else if (l >= kKept)
      from(kKept, program.first_temporary());
  };
  for (MicroInstruction& m : program.code)
    for (std::uint16_t* l : {&m.out, &m.a, &m.b, &m.c}) renumber(*l);
  for (TileProgram::Reduction& r : program.reductions) {
    renumber(r.in);
    renumber(r.out);
  }
  for (TileProgram::Output& o : program.outputs) renumber(o.location);
  renumber(program.result);
}

void find_direct_outputs(TileProgram& program) {
  bool read_later = false;
  const auto read = [&](std::uint16_t l) { read_later = read_later || l < program.inputs.size(); };
  const auto walk = [&](TileProgram::Range range) {
    for (std::uint32_t at = range.end; at-- > range.begin;) {
      const MicroInstruction& m = program.code[at];
      if (m.out >= program.first_output())
        program.outputs[m.out - program.first_output()].direct = !read_later;
      for (std::uint16_t l : {m.a, m.b, m.c}) read(l);
    }
  };
  const TileProgram::Pass& last = program.passes.back();
  walk(last.row_code);
  for (std::uint32_t r = last.reductions.begin; r < last.reductions.end; ++r) read(program.reductions[r].in);
  walk(last.code);
}

void list_operands(TileProgram& program, const std::vector<bool>& row_inputs,
                   const std::vector<bool>& row_indices, bool only_evaluates) {
  list(row_inputs, program.row_inputs);
  list(row_indices, program.row_indices);
  std::vector<bool> all_inputs(program.inputs.size(), false);
  std::vector<bool> all_indices(program.indices.size(), false);
  for (TileProgram::Pass& pass : program.passes) {
    std::vector<bool> inputs(program.inputs.size(), false);
    std::vector<bool> indices(program.indices.size(), false);
    const auto read = [&](std::uint16_t l) {
      if (l < program.inputs.size())
        all_inputs[l] = inputs[l] = !row_inputs[l];
      else if (l >= program.first_index() && l < program.first_temporary())
        all_indices[l - program.first_index()] = indices[l - program.first_index()] =
            !row_indices[l - program.first_index()];
    };
    for (std::uint32_t at = pass.code.begin; at < pass.code.end; ++at)
      for (std::uint16_t l : {program.code[at].a, program.code[at].b, program.code[at].c}) read(l);
    for (std::uint32_t r = pass.reductions.begin; r < pass.reductions.end; ++r)
      read(program.reductions[r].in);
    if (only_evaluates) read(program.result);
    list(inputs, pass.inputs);
    list(indices, pass.indices);
  }
  list(all_inputs, program.point_inputs);
  list(all_indices, program.point_indices);
}

void choose_tile(TileProgram& program, const Kernel& kernel) {
  std::size_t widest = 1;
  const auto widen = [&](DType t) { widest = std::max(widest, size_of(t)); };
  for (const Instruction& i : kernel.code) widen(i.type);
  for (DType t : program.inputs) widen(t);
  for (const auto& o : program.outputs) widen(o.type);
  program.element_bytes = widest;
  // Operands pass by; what is computed stays until it is used.
  const std::size_t buffers = static_cast<std::size_t>(program.temporaries) + program.outputs.size() +
                              std::min<std::size_t>(program.point_inputs.size(), 3);
  program.tile = kLargestTile;
  while (program.tile > kStretch && buffers * widest * static_cast<std::size_t>(program.tile) > kTileBudget)
    program.tile /= 2;
}

}  // namespace caldera::cpu
