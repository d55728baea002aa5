#include "engine/device/cpu/tile_runner.h"

#include <algorithm>
#include <cstring>

namespace caldera::cpu {
namespace {

constexpr int kAccumulators = 3;

Scratch& tile_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// out[0..n) = the next n values of an index operand: its element offsets themselves.
template <class T>
void generate(const Access& access, Cursor& cursor, T* out, std::int64_t n) {
  const std::int64_t stride = access.inner_stride();
  while (n > 0) {
    const std::int64_t run = std::min(n, cursor.run_left(access));
    const std::int64_t first = cursor.element;
    for (std::int64_t i = 0; i < run; ++i) out[i] = static_cast<T>(first + i * stride);
    out += run;
    n -= run;
    cursor.step(access, run);
  }
}

}  // namespace

TileRunner::TileRunner(const RegionStep& step, const RunContext& context, std::int64_t start)
    : step_(step), program_(*step.program_) {
  const std::size_t inputs = step.inputs_.size();
  const std::size_t indices = step.indices_.size();
  const std::size_t outputs = step.outputs_.size();
  const std::size_t locations = program_.locations();
  const std::size_t pointer_bytes = aligned((2 * locations + inputs + outputs) * sizeof(std::byte*));
  const std::size_t cursor_bytes = aligned((inputs + indices + outputs) * sizeof(Cursor));
  const std::size_t filled_bytes = aligned(inputs * sizeof(Filled));
  // Odd multiples of the cache line keep buffers of a power of two from sharing cache sets.
  const std::size_t buffer_bytes =
      aligned(static_cast<std::size_t>(step.tile_) * program_.element_bytes) + 64;
  accumulator_bytes_ = program_.reduce == nullptr ? 0 : step.tile_ * 8 + 64;
  const std::size_t bytes = pointer_bytes + cursor_bytes + filled_bytes + locations * buffer_bytes +
                            kAccumulators * static_cast<std::size_t>(accumulator_bytes_);
  std::byte* memory = tile_scratch().get(bytes);

  pointers_ = reinterpret_cast<std::byte**>(memory);
  buffers_ = pointers_ + locations;
  bases_ = buffers_ + locations;
  memory += pointer_bytes;
  cursors_ = reinterpret_cast<Cursor*>(memory);
  memory += cursor_bytes;
  filled_ = reinterpret_cast<Filled*>(memory);
  memory += filled_bytes;
  for (std::size_t l = 0; l < locations; ++l, memory += buffer_bytes) pointers_[l] = buffers_[l] = memory;
  accumulators_ = memory;

  for (std::size_t i = 0; i < inputs; ++i) {
    bases_[i] = context.buffers[static_cast<std::size_t>(step.inputs_[i].buffer)];
    filled_[i] = {0, 0};
  }
  for (std::size_t i = 0; i < outputs; ++i)
    bases_[inputs + i] = context.buffers[static_cast<std::size_t>(step.outputs_[i].buffer)];
  const std::int64_t longest = std::min(step.tile_, step.total_);
  for (std::size_t i = 0; i < step.scalars_.size(); ++i) {
    const std::uint64_t& bits = context.scalars[static_cast<std::size_t>(step.scalars_[i])];
    fill_tile(buffers_[program_.first_scalar() + i], reinterpret_cast<const std::byte*>(&bits),
              size_of(program_.scalars[i]), longest);
  }
  seek(start);
}

void TileRunner::seek(std::int64_t position) {
  Cursor* cursor = cursors_;
  for (const auto& bound : step_.inputs_) (cursor++)->seek(bound.access, position);
  for (const auto& bound : step_.indices_) (cursor++)->seek(bound.access, position);
  if (program_.reduce != nullptr) return;  // the output lives in the kept space
  for (const auto& bound : step_.outputs_) (cursor++)->seek(bound.access, position);
}

void TileRunner::place_input(std::size_t i, std::int64_t n) {
  const RegionStep::Bound& bound = step_.inputs_[i];
  Cursor& cursor = cursors_[i];
  const std::int64_t stride = bound.access.inner_stride();
  if (cursor.run_left(bound.access) >= n) {
    if (stride == 1) {
      pointers_[i] = bases_[i] + cursor.element * static_cast<std::int64_t>(bound.size);
      cursor.step(bound.access, n);
      return;
    }
    if (stride == 0) {
      Filled& filled = filled_[i];
      pointers_[i] = buffers_[i];
      if (filled.element != cursor.element || filled.count < n) {
        fill_tile(buffers_[i], bases_[i] + cursor.element * static_cast<std::int64_t>(bound.size), bound.size,
                  n);
        filled = {cursor.element, n};
      }
      cursor.step(bound.access, n);
      return;
    }
  }
  filled_[i].count = 0;
  pointers_[i] = buffers_[i];
  gather_tile(bound.access, cursor, bases_[i], bound.size, buffers_[i], n);
}

void TileRunner::place_index(std::size_t i, std::int64_t n) {
  const Access& access = step_.indices_[i].access;
  Cursor& cursor = cursors_[step_.inputs_.size() + i];
  std::byte* out = buffers_[program_.first_index() + i];
  switch (program_.indices[i]) {
    case DType::i64:
      return generate(access, cursor, reinterpret_cast<std::int64_t*>(out), n);
    case DType::f32:
      return generate(access, cursor, reinterpret_cast<float*>(out), n);
    case DType::f64:
      return generate(access, cursor, reinterpret_cast<double*>(out), n);
    case DType::u8:
      return generate(access, cursor, reinterpret_cast<std::uint8_t*>(out), n);
    default:
      return generate(access, cursor, reinterpret_cast<std::uint32_t*>(out), n);
  }
}

void TileRunner::place_output(std::size_t i, std::int64_t n) {
  const RegionStep::Bound& bound = step_.outputs_[i];
  const Cursor& cursor = cursors_[step_.inputs_.size() + step_.indices_.size() + i];
  const std::size_t location = program_.first_output() + i;
  const bool direct =
      program_.outputs[i].direct && bound.access.inner_stride() == 1 && cursor.run_left(bound.access) >= n;
  pointers_[location] =
      direct ? bases_[step_.inputs_.size() + i] + cursor.element * static_cast<std::int64_t>(bound.size)
             : buffers_[location];
}

void TileRunner::store_output(std::size_t i, std::int64_t n) {
  const RegionStep::Bound& bound = step_.outputs_[i];
  Cursor& cursor = cursors_[step_.inputs_.size() + step_.indices_.size() + i];
  const std::size_t location = program_.first_output() + i;
  if (pointers_[location] == buffers_[location])
    scatter_tile(bound.access, cursor, bases_[step_.inputs_.size() + i], bound.size, buffers_[location], n);
  else
    cursor.step(bound.access, n);
}

void TileRunner::run(std::int64_t n) {
  for (std::size_t i = 0; i < step_.inputs_.size(); ++i)
    if (program_.used[i]) place_input(i, n);
  for (std::size_t i = 0; i < step_.indices_.size(); ++i) place_index(i, n);
  const bool stores = program_.reduce == nullptr;
  if (stores)
    for (std::size_t i = 0; i < step_.outputs_.size(); ++i) place_output(i, n);
  for (const MicroInstruction& m : program_.code)
    m.fn(pointers_[m.out], pointers_[m.a], pointers_[m.b], pointers_[m.c], n);
  if (stores)
    for (std::size_t i = 0; i < step_.outputs_.size(); ++i) store_output(i, n);
}

void TileRunner::store(std::int64_t at, const std::byte* values, std::int64_t n) const {
  const RegionStep::Bound& bound = step_.outputs_[0];
  Cursor cursor;
  cursor.seek(bound.access, at);
  scatter_tile(bound.access, cursor, bases_[step_.inputs_.size()], bound.size, values, n);
}

}  // namespace caldera::cpu
