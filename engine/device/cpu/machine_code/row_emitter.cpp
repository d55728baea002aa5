#include "engine/device/cpu/machine_code/row_emitter.h"

#include <algorithm>
#include <bit>

#include "engine/device/cpu/machine_code/line_emitter.h"
#include "engine/device/cpu/machine_code/walk_registers.h"
#include "engine/device/cpu/simd/micro_ops.h"

namespace caldera::cpu {
namespace {

using asmjit::imm;
using asmjit::Label;
using asmjit::x86::Mem;

}  // namespace

RowEmitter::RowEmitter(asmjit::x86::Compiler& compiler, VectorSet set, const RowRoutine& routine)
    : cc_(compiler),
      lanes_(compiler, set),
      memory_(lanes_),
      routine_(routine),
      addressed_(routine.uniform.size(), false),
      addresses_(routine.uniform.size()),
      next_(routine.uniform.size()),
      asks_(routine.uniform.size(), nullptr),
      uniforms_(routine.uniform.size()),
      points_(routine.uniform.size()),
      divisors_(routine.uniform.size()) {}

Mem RowEmitter::place(std::uint16_t location, DType type, const Gp& index, bool in_next_row) const {
  // Where values of several sizes take turns, none may lie where another is still to be read.
  const std::size_t size = routine_.own[location] ? 4 : size_of(type);
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(size));
  return asmjit::x86::ptr(in_next_row ? next_[location] : addresses_[location], index, shift,
                          ahead_ * static_cast<int>(size));
}

/// Marks what is read before it is written, and what is stored.
void RowEmitter::find_addresses() {
  std::vector<bool> is_known(routine_.uniform.size(), false);
  const auto walk_code = [&](const std::vector<RoutineLine>& code) {
    for (const RoutineLine& line : code) {
      const std::uint16_t from[] = {line.a, line.b, line.c};
      for (int k = 0; k < operands_of(line); ++k)
        if (!is_known[from[k]]) addressed_[from[k]] = true;
      is_known[line.out] = true;
    }
  };
  walk_code(routine_.row_code);
  for (const RoutineWalk& walk : routine_.walks) {
    walk_code(walk.code);
    for (const auto& store : walk.stores) addressed_[store.location] = true;
    for (const auto& reduction : walk.reductions) {
      if (!is_known[reduction.in]) addressed_[reduction.in] = true;
      is_known[reduction.out] = true;
    }
    walk_code(walk.row_code);
    for (std::size_t location = 0; location < is_known.size(); ++location)
      if (!routine_.uniform[location]) is_known[location] = false;
  }
  for (const auto& store : routine_.row_stores) addressed_[store.location] = true;
  for (const RoutineWalk& walk : routine_.walks)
    for (const auto& reduction : walk.reductions)
      if (routine_.stores_wide) addressed_[reduction.out] = true;
}

void RowEmitter::find_asks() {
  if (!routine_.asks_for_next_row) return;
  std::vector<bool> is_made(routine_.uniform.size(), false);
  const auto read = [&](std::uint16_t location, const RoutineWalk& walk) {
    if (!is_made[location] && !routine_.own[location] && !routine_.uniform[location]) asks_[location] = &walk;
  };
  for (const RoutineWalk& walk : routine_.walks) {
    for (const RoutineLine& line : walk.code) {
      const std::uint16_t from[] = {line.a, line.b, line.c};
      for (int k = 0; k < operands_of(line); ++k) read(from[k], walk);
      is_made[line.out] = true;
    }
    for (const RoutineWalk::Reduction& reduction : walk.reductions) read(reduction.in, walk);
  }
}

bool RowEmitter::run() {
  using asmjit::FuncSignatureT;
  asmjit::FuncNode* function = cc_.addFunc(
      FuncSignatureT<void, const void*, const void*, std::int64_t, std::int64_t>(asmjit::CallConvId::kHost));
  function->frame().setAvxEnabled();
  function->frame().setAvxCleanup();
  if (lanes_.is_wide) function->frame().setAvx512Enabled();
  const Gp at = cc_.newIntPtr();
  const Gp steps = cc_.newIntPtr();
  const Gp rows = cc_.newInt64();
  n_ = cc_.newInt64();
  function->setArg(0, at);
  function->setArg(1, steps);
  function->setArg(2, rows);
  function->setArg(3, n_);

  find_addresses();
  for (std::size_t location = 0; location < addressed_.size(); ++location) {
    if (!addressed_[location]) continue;
    addresses_[location] = cc_.newIntPtr();
    cc_.mov(addresses_[location], asmjit::x86::ptr(at, static_cast<int>(8 * location)));
  }
  find_asks();
  const Label row = cc_.newLabel();
  const Label end = cc_.newLabel();
  cc_.bind(row);
  for (std::size_t location = 0; location < asks_.size(); ++location) {
    if (asks_[location] == nullptr) continue;
    next_[location] = cc_.newIntPtr();
    cc_.mov(next_[location], addresses_[location]);
    cc_.add(next_[location], asmjit::x86::ptr(steps, static_cast<int>(8 * location)));
  }
  if (!emit_row_code(routine_.row_code)) return false;
  for (const RoutineWalk& walk : routine_.walks)
    if (!emit_walk(walk) || (!routine_.stores_wide && !emit_row_code(walk.row_code))) return false;
  for (const auto& store : routine_.row_stores) {
    const std::optional<LaneValue> value = uniform_of(store.location, store.type);
    if (!value) return false;
    memory_.store_one(store.type, asmjit::x86::ptr(addresses_[store.location]), *value);
  }
  cc_.dec(rows);
  cc_.jz(end);
  for (std::size_t location = 0; location < addressed_.size(); ++location)
    if (addressed_[location])
      cc_.add(addresses_[location], asmjit::x86::ptr(steps, static_cast<int>(8 * location)));
  cc_.jmp(row);
  cc_.bind(end);
  if (routine_.streams) cc_.sfence();
  cc_.ret();
  cc_.endFunc();
  return true;
}

std::optional<LaneValue> RowEmitter::uniform_of(std::uint16_t location, DType type) {
  if (!LaneMemory::knows(type)) return std::nullopt;
  if (!uniforms_[location])
    uniforms_[location] = memory_.load_one(type, asmjit::x86::ptr(addresses_[location]));
  return uniforms_[location];
}

std::optional<LaneValue> RowEmitter::value_of(std::uint16_t location, DType type, const Gp& index,
                                              const LaneRest& rest) {
  if (routine_.uniform[location]) return uniform_of(location, type);
  if (!LaneMemory::knows(type)) return std::nullopt;
  if (!points_[location]) {
    points_[location] = memory_.load(type, place(location, type, index), rest);
    if (walk_ != nullptr && asks_[location] == walk_) cc_.prefetcht0(place(location, type, index, true));
  }
  return points_[location];
}

namespace {

/// The type of operand k.
DType operand_type(const RoutineLine& line, int k) {
  return line.op == ScalarOp::select && k == 0 ? DType::boolean : line.operand;
}

}  // namespace

bool RowEmitter::emit_row_code(const std::vector<RoutineLine>& code) {
  for (const RoutineLine& line : code) {
    LaneValue values[3];
    const std::uint16_t from[] = {line.a, line.b, line.c};
    for (int k = 0; k < operands_of(line); ++k) {
      const std::optional<LaneValue> value = uniform_of(from[k], operand_type(line, k));
      if (!value) return false;
      values[k] = *value;
    }
    const std::optional<LaneValue> value = emit_line(lanes_, line, values[0], values[1], values[2]);
    if (!value) return false;
    uniforms_[line.out] = value;
  }
  return true;
}

bool RowEmitter::emit_walk(const RoutineWalk& walk) {
  walk_ = &walk;
  // Ahead of the loops, since a register that one branch loads is not there in another.
  for (const RoutineLine& line : walk.code) {
    const std::uint16_t from[] = {line.a, line.b, line.c};
    for (int k = 0; k < operands_of(line); ++k)
      if (routine_.uniform[from[k]] && !uniform_of(from[k], operand_type(line, k))) return false;
  }
  std::fill(divisors_.begin(), divisors_.end(), std::nullopt);
  for (const RoutineLine& line : walk.code)
    if (lanes_.is_wide && line.op == ScalarOp::div && line.operand == DType::f32 &&
        routine_.uniform[line.b] && !divisors_[line.b])
      divisors_[line.b] = divisor_of(lanes_, uniform_of(line.b, DType::f32)->lanes);
  for (const RoutineWalk::Reduction& reduction : walk.reductions)
    if (routine_.uniform[reduction.in] && !uniform_of(reduction.in, reduction.type)) return false;
  return walk.reductions.empty() ? emit_plain_walk(walk) : emit_reducing_walk(walk);
}

bool RowEmitter::emit_plain_walk(const RoutineWalk& walk) {
  if (walk.stores.empty()) return true;
  const Gp index = cc_.newInt64();
  const Gp end = cc_.newInt64();
  const Label again = cc_.newLabel();
  const Label rest = cc_.newLabel();
  const Label done = cc_.newLabel();
  cc_.xor_(index.r32(), index.r32());
  side_by_side_ = points_side_by_side(walk, index);
  if (side_by_side_ == 0 || (side_by_side_ > 1 && !emit_wide_loop(walk, index, side_by_side_))) return false;
  cc_.mov(end, n_);
  cc_.and_(end, imm(-lanes_.count()));
  cc_.cmp(index, end);
  cc_.jge(rest);
  cc_.bind(again);
  if (!emit_point(walk, index, {}, 0)) return false;
  cc_.add(index, imm(lanes_.count()));
  cc_.cmp(index, end);
  cc_.jb(again);
  cc_.bind(rest);
  cc_.mov(end, n_);
  cc_.sub(end, index);
  cc_.jz(done);
  if (!emit_point(walk, index, memory_.rest_of(end), 0)) return false;
  cc_.bind(done);
  return true;
}

/// The code of a walk at one register of points. Of reductions the partial result `part` takes them up.
bool RowEmitter::emit_point(const RoutineWalk& walk, const Gp& index, const LaneRest& rest, int part) {
  std::fill(points_.begin(), points_.end(), std::nullopt);
  for (const RoutineLine& line : walk.code) {
    LaneValue values[3];
    const std::uint16_t from[] = {line.a, line.b, line.c};
    for (int k = 0; k < operands_of(line); ++k) {
      const std::optional<LaneValue> value = value_of(from[k], operand_type(line, k), index, rest);
      if (!value) return false;
      values[k] = *value;
    }
    const bool divides = line.op == ScalarOp::div && routine_.uniform[line.b] && divisors_[line.b];
    const std::optional<LaneValue> value =
        divides ? LaneValue::of(quotient(lanes_, values[0].lanes, *divisors_[line.b]))
                : emit_line(lanes_, line, values[0], values[1], values[2]);
    if (!value) return false;
    points_[line.out] = value;
  }
  for (std::size_t r = 0; r < walk.reductions.size(); ++r) {
    const RoutineWalk::Reduction& reduction = walk.reductions[r];
    std::optional<LaneValue> value = value_of(reduction.in, reduction.type, index, rest);
    if (!value) return false;
    take_up(reduction, accumulators_[r], part, value->lanes, rest);
  }
  // Behind all loads: an output may be in the memory of an operand.
  for (const RoutineWalk::Store& store : walk.stores) {
    const std::optional<LaneValue> value = value_of(store.location, store.type, index, rest);
    if (!value) return false;
    memory_.store(store.type, place(store.location, store.type, index), *value, rest, routine_.streams);
  }
  return true;
}

}  // namespace caldera::cpu
