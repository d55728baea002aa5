#include "engine/device/cpu/tiles/tile_runner.h"

#include <cstring>

namespace caldera::cpu {
namespace {

constexpr int kAccumulators = 3;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Scratch& tile_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

TileRunner::TileRunner(const TileLayout& layout, const RunContext& context, Scratch& scratch,
                       RowFunction machine)
    : layout_(layout), program_(*layout.program), machine_(machine) {
  const std::size_t inputs = layout.inputs.size();
  const std::size_t indices = layout.indices.size();
  const std::size_t outputs = layout.outputs.size();
  const std::size_t operands = inputs + indices + outputs;
  const std::size_t locations = program_.locations();
  const std::size_t pointer_bytes = aligned((3 * locations + inputs + outputs) * sizeof(std::byte*));
  const std::size_t cursor_bytes = aligned(operands * sizeof(Cursor));
  const std::size_t filled_bytes = aligned((inputs + indices) * sizeof(Filled));
  const std::size_t flag_bytes = aligned(operands);
  // Odd multiples of the cache line keep buffers of a power of two from sharing cache sets.
  const auto buffer_of = [&](std::int64_t elements) {
    return aligned(static_cast<std::size_t>(elements) * program_.element_bytes) + 64;
  };
  const std::size_t tile_bytes = buffer_of(layout.tile);
  const std::size_t kept_bytes = buffer_of(std::max(layout.tile, layout.row));
  const std::size_t row_bytes = buffer_of(layout.rows);
  const auto kept = static_cast<std::size_t>(program_.kept);
  const auto row_temporaries = static_cast<std::size_t>(program_.row_temporaries);
  accumulator_bytes_ = program_.reduce == nullptr ? 0 : layout.tile * kWideBytes + 64;
  std::byte* memory =
      scratch.get(pointer_bytes + cursor_bytes + filled_bytes + flag_bytes + kept * kept_bytes +
                  row_temporaries * row_bytes + (locations - kept - row_temporaries) * tile_bytes +
                  kAccumulators * static_cast<std::size_t>(accumulator_bytes_));

  pointers_ = reinterpret_cast<std::byte**>(memory);
  buffers_ = pointers_ + locations;
  bases_ = buffers_ + locations;
  steps_ = reinterpret_cast<std::int64_t*>(bases_ + inputs + outputs);
  memory += pointer_bytes;
  cursors_ = reinterpret_cast<Cursor*>(memory);
  memory += cursor_bytes;
  filled_ = reinterpret_cast<Filled*>(memory);
  memory += filled_bytes;
  by_row_ = reinterpret_cast<bool*>(memory);
  memory += flag_bytes;
  const std::size_t first_temporary = program_.first_temporary();
  const std::size_t first_row = program_.first_row_temporary();
  for (std::size_t l = 0; l < locations; ++l) {
    pointers_[l] = buffers_[l] = memory;
    memory += l >= first_temporary && l < first_temporary + kept  ? kept_bytes
              : l >= first_row && l < first_row + row_temporaries ? row_bytes
                                                                  : tile_bytes;
  }
  accumulators_ = memory;

  std::fill_n(filled_, inputs + indices, Filled{0, 0});
  std::fill_n(by_row_, operands, false);
  for (std::uint16_t i : program_.row_inputs) by_row_[i] = true;
  for (std::uint16_t i : program_.row_indices) by_row_[inputs + i] = true;
  for (std::size_t i = 0; i < outputs; ++i) by_row_[inputs + indices + i] = program_.outputs[i].per_row;

  const auto address = [&](std::int32_t buffer) {
    return buffer < 0 ? nullptr : context.buffers[static_cast<std::size_t>(buffer)];
  };
  for (std::size_t i = 0; i < inputs; ++i) bases_[i] = address(layout.inputs[i].buffer);
  for (std::size_t i = 0; i < outputs; ++i) bases_[inputs + i] = address(layout.outputs[i].buffer);
  for (std::size_t i = 0; i < layout.scalars.size(); ++i) {
    const std::uint64_t& bits = context.scalars[static_cast<std::size_t>(layout.scalars[i])];
    fill_tile(buffers_[program_.first_scalar() + i], reinterpret_cast<const std::byte*>(&bits),
              size_of(program_.scalars[i]), program_.expanded_scalars[i] ? layout.tile : layout.rows);
  }
  if (machine_ != nullptr) find_steps();
  seek(0);
  seek_rows(0);
}

void TileRunner::find_steps() {
  const auto step = [&](std::size_t location, std::size_t size, bool by_row) {
    steps_[location] = static_cast<std::int64_t>(size) * (by_row ? 1 : layout_.row);
  };
  std::fill_n(steps_, program_.locations(), 0);
  const std::size_t inputs = layout_.inputs.size();
  for (std::size_t i = 0; i < inputs; ++i) step(i, layout_.inputs[i].size, by_row_[i]);
  for (std::size_t i = 0; i < layout_.indices.size(); ++i)
    step(program_.first_index() + i, size_of(program_.indices[i]), by_row_[inputs + i]);
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i) {
    const TileProgram::Output& output = program_.outputs[i];
    step(output.per_row ? output.location : program_.first_output() + i, layout_.outputs[i].size,
         output.per_row);
  }
}

void TileRunner::seek(std::int64_t point) {
  std::size_t k = 0;
  for (const auto* list : {&layout_.inputs, &layout_.indices, &layout_.outputs})
    for (const BoundOperand& bound : *list) {
      if (!by_row_[k]) cursors_[k].seek(bound.access, point);
      ++k;
    }
}

void TileRunner::seek_rows(std::int64_t row) {
  std::size_t k = 0;
  for (const auto* list : {&layout_.inputs, &layout_.indices, &layout_.outputs})
    for (const BoundOperand& bound : *list) {
      if (by_row_[k]) cursors_[k].seek(bound.access, row);
      ++k;
    }
}

void TileRunner::start_rows(std::int64_t q) {
  rows_ = q;
  place_inputs(program_.row_inputs, q);
  place_indices(program_.row_indices, q);
  if (machine_ == nullptr) execute(program_.first_row_code, q);
}

/// Whether an operand's tile buffer holds its next n elements already. Moves on if so.
bool TileRunner::is_filled(std::size_t operand, const Access& access, std::int64_t n) const {
  Cursor& cursor = cursors_[operand];
  Filled& filled = filled_[operand];
  if (filled.element != cursor.element || filled.count < n) {
    filled = {cursor.element, n};
    return false;
  }
  const auto last = static_cast<std::size_t>(access.rank - 1);
  std::int64_t at = cursor.at[last] + n;
  if (at >= access.dims[last]) at %= access.dims[last];
  cursor.element += (at - cursor.at[last]) * access.strides[last];
  cursor.at[last] = at;
  return true;
}

void TileRunner::place_input(std::size_t i, std::int64_t n) {
  const BoundOperand& bound = layout_.inputs[i];
  const auto size = static_cast<std::int64_t>(bound.size);
  if (bound.buffer < 0) {
    pointers_[i] = bases_[i];
    bases_[i] += n * size;
    return;
  }
  Cursor& cursor = cursors_[i];
  if ((bound.access.inner_stride() == 1 || n == 1) && cursor.run_left(bound.access) >= n) {
    pointers_[i] = bases_[i] + cursor.element * size;
    cursor.step(bound.access, n);
    return;
  }
  pointers_[i] = buffers_[i];
  if (bound.repeats && is_filled(i, bound.access, n)) return;
  gather_tile(bound.access, cursor, bases_[i], bound.size, buffers_[i], n);
}

void TileRunner::place_index(std::size_t i, std::int64_t n) {
  const Access& access = layout_.indices[i].access;
  const std::size_t operand = layout_.inputs.size() + i;
  Cursor& cursor = cursors_[operand];
  if (layout_.indices[i].repeats && is_filled(operand, access, n)) return;
  std::byte* out = buffers_[program_.first_index() + i];
  generate_tile(access, cursor, program_.indices[i], out, n);
}

void TileRunner::place_outputs(std::int64_t n) {
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i) {
    const BoundOperand& bound = layout_.outputs[i];
    const TileProgram::Output& output = program_.outputs[i];
    if (output.per_row) continue;
    const std::size_t location = program_.first_output() + i;
    std::byte* base = bases_[layout_.inputs.size() + i];
    pointers_[location] = buffers_[location];
    if (!output.direct) continue;
    const Cursor& cursor = output_cursor(i);
    if (bound.buffer < 0)
      pointers_[location] = base;
    else if ((bound.access.inner_stride() == 1 || n == 1) && cursor.run_left(bound.access) >= n)
      pointers_[location] = base + cursor.element * static_cast<std::int64_t>(bound.size);
  }
}

void TileRunner::store_outputs(std::int64_t n) {
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i) {
    const BoundOperand& bound = layout_.outputs[i];
    if (program_.outputs[i].per_row) continue;
    const std::size_t location = program_.first_output() + i;
    const bool buffered = pointers_[location] == buffers_[location];
    std::byte*& base = bases_[layout_.inputs.size() + i];
    if (bound.buffer < 0) {
      const std::int64_t bytes = n * static_cast<std::int64_t>(bound.size);
      if (buffered) std::memcpy(base, buffers_[location], static_cast<std::size_t>(bytes));
      base += bytes;
    } else if (buffered) {
      scatter_tile(bound.access, output_cursor(i), base, bound.size, buffers_[location], n);
    } else {
      output_cursor(i).step(bound.access, n);
    }
  }
}

void TileRunner::store_rows(std::int64_t q) {
  for (std::size_t i = 0; i < layout_.outputs.size(); ++i) {
    if (!program_.outputs[i].per_row) continue;
    const BoundOperand& bound = layout_.outputs[i];
    scatter_tile(bound.access, output_cursor(i), bases_[layout_.inputs.size() + i], bound.size,
                 pointers_[program_.outputs[i].location], q);
  }
}

void TileRunner::store(std::int64_t at, const std::byte* values, std::int64_t n) const {
  const BoundOperand& bound = layout_.outputs[0];
  Cursor cursor;
  cursor.seek(bound.access, at);
  scatter_tile(bound.access, cursor, bases_[layout_.inputs.size()], bound.size, values, n);
}

void TileRunner::execute(TileProgram::Range range, std::int64_t n) const {
  if (n == 0) return;
  const MicroInstruction* m = program_.code.data() + range.begin;
  const MicroInstruction* end = program_.code.data() + range.end;
  for (; m != end; ++m) {
    if (m->by_row && rows_ > 1)
      execute_by_row(*m);
    else
      m->fn(pointers_[m->out], pointers_[m->a], pointers_[m->b], pointers_[m->c], n);
  }
}

void TileRunner::execute_by_row(const MicroInstruction& m) const {
  if (m.spread != nullptr) return m.spread(pointers_[m.out], pointers_[m.a], rows_, layout_.row);
  const std::uint16_t locations[] = {m.out, m.a, m.b, m.c};
  std::byte* at[4];
  std::int64_t step[4];
  for (unsigned k = 0; k < 4; ++k) {
    at[k] = pointers_[locations[k]];
    step[k] = m.size[k] * ((m.points >> k & 1U) != 0 ? layout_.row : 1);
  }
  for (std::int64_t r = 0; r < rows_; ++r) {
    m.fn(at[0], at[1], at[2], at[3], layout_.row);
    for (unsigned k = 0; k < 4; ++k) at[k] += step[k];
  }
}

void TileRunner::run(std::int64_t n) {
  const TileProgram::Pass& pass = program_.passes.front();
  place_inputs(pass.inputs, n);
  place_indices(pass.indices, n);
  if (program_.reduce == nullptr) place_outputs(n);
  if (machine_ != nullptr)
    machine_(pointers_, steps_, 1, n);
  else
    execute(pass.code, n);
  if (program_.reduce == nullptr) store_outputs(n);
}

void TileRunner::run_rows(std::int64_t q) {
  const std::int64_t n = q * layout_.row;
  start_rows(q);
  place_inputs(program_.point_inputs, n);
  place_indices(program_.point_indices, n);
  place_outputs(n);
  if (machine_ != nullptr) {
    machine_(pointers_, steps_, q, layout_.row);
    store_outputs(n);
    return store_rows(q);
  }
  for (const TileProgram::Pass& pass : program_.passes) {
    execute(pass.code, n);
    for (std::uint32_t r = pass.reductions.begin; r < pass.reductions.end; ++r) {
      const TileProgram::Reduction& reduction = program_.reductions[r];
      reduction.ops->rows(pointers_[reduction.out], pointers_[reduction.in], q, layout_.row);
    }
    execute(pass.row_code, q);
  }
  store_outputs(n);
  store_rows(q);
}

void TileRunner::run_pass(const TileProgram::Pass& pass, std::int64_t at, std::int64_t n, std::byte* wide,
                          RowFunction machine) {
  const bool last = &pass == &program_.passes.back();
  const std::size_t first = program_.first_temporary();
  for (std::size_t l = first; l < first + static_cast<std::size_t>(program_.kept); ++l)
    pointers_[l] = buffers_[l] + at * static_cast<std::int64_t>(program_.element_bytes);
  place_inputs(pass.inputs, n);
  place_indices(pass.indices, n);
  if (machine != nullptr) {
    for (const TileProgram::Reduction& reduction : program_.reductions) {
      pointers_[reduction.out] = wide;
      wide += kWideBytes;
    }
    machine(pointers_, steps_, 1, n);
    for (const TileProgram::Reduction& reduction : program_.reductions)
      pointers_[reduction.out] = buffers_[reduction.out];
    return;
  }
  if (last) place_outputs(n);
  execute(pass.code, n);
  for (std::uint32_t r = pass.reductions.begin; r < pass.reductions.end; ++r, wide += kWideBytes)
    program_.reductions[r].ops->horizontal(wide, pointers_[program_.reductions[r].in], n);
  if (last) store_outputs(n);
}

void TileRunner::finish_pass(const TileProgram::Pass& pass, const std::byte* wide) {
  for (std::uint32_t r = pass.reductions.begin; r < pass.reductions.end; ++r, wide += kWideBytes)
    program_.reductions[r].ops->finish(pointers_[program_.reductions[r].out], wide, 1);
  execute(pass.row_code, 1);
}

}  // namespace caldera::cpu
