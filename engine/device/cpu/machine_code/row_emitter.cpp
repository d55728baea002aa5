#include "engine/device/cpu/machine_code/row_emitter.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/device/cpu/machine_code/line_emitter.h"
#include "engine/device/cpu/machine_code/walk_registers.h"
#include "engine/device/cpu/simd/micro_ops.h"

namespace caldera::cpu {
namespace {

using asmjit::imm;
using asmjit::Label;
using asmjit::x86::Mem;
using Id = Lanes::Id;

float identity_of(Combine combine) {
  switch (combine) {
    case Combine::sum:
      return 0;
    case Combine::product:
      return 1;
    case Combine::maximum:
      return -std::numeric_limits<float>::infinity();
    case Combine::minimum:
      return std::numeric_limits<float>::infinity();
  }
  return 0;
}

bool is_ordering(Combine combine) { return combine == Combine::maximum || combine == Combine::minimum; }

/// Of two lanes, of which the second is the result where one is NaN.
Id instruction_of(Combine combine) {
  switch (combine) {
    case Combine::sum:
      return Id::kIdVaddps;
    case Combine::product:
      return Id::kIdVmulps;
    case Combine::maximum:
      return Id::kIdVmaxps;
    case Combine::minimum:
      return Id::kIdVminps;
  }
  return Id::kIdVaddps;
}

}  // namespace

RowEmitter::RowEmitter(asmjit::x86::Compiler& compiler, VectorSet set, const RowRoutine& routine,
                       bool streams)
    : cc_(compiler),
      lanes_(compiler, set),
      memory_(lanes_),
      routine_(routine),
      streams_(streams),
      addressed_(routine.uniform.size(), false),
      addresses_(routine.uniform.size()),
      uniforms_(routine.uniform.size()),
      points_(routine.uniform.size()),
      divisors_(routine.uniform.size()) {}

Mem RowEmitter::place(std::uint16_t location, DType type, const Gp& index) const {
  // Where values of several sizes take turns, none may lie where another is still to be read.
  const std::size_t size = routine_.own[location] ? 4 : size_of(type);
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(size));
  return asmjit::x86::ptr(addresses_[location], index, shift, ahead_ * static_cast<int>(size));
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
  const Label row = cc_.newLabel();
  const Label end = cc_.newLabel();
  cc_.bind(row);
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
  if (streams_) cc_.sfence();
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
  if (!points_[location]) points_[location] = memory_.load(type, place(location, type, index), rest);
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

/// Stretch by stretch, as ReduceOps::rows does: four partial results a stretch, which become one number.
bool RowEmitter::emit_reducing_walk(const RoutineWalk& walk) {
  const int lanes = lanes_.count();
  accumulators_.clear();
  for (const RoutineWalk::Reduction& reduction : walk.reductions) {
    if (reduction.type != DType::f32) return false;
    Accumulator& a = accumulators_.emplace_back();
    a.wide = is_ordering(reduction.combine) ? lanes_.splat(identity_of(reduction.combine)) : lanes_.fresh();
    if (!is_ordering(reduction.combine)) {
      const double identity = identity_of(reduction.combine);
      cc_.vmovsd(a.wide.xmm(), cc_.newConst(asmjit::ConstPoolScope::kLocal, &identity, sizeof identity));
    }
    for (Vec& part : a.parts) part = lanes_.fresh();
    if (!is_ordering(reduction.combine)) continue;
    a.nan = lanes_.fresh_mask();
    if (lanes_.is_wide)
      cc_.kxorw(a.nan.bits, a.nan.bits, a.nan.bits);
    else
      cc_.vxorps(a.nan.lanes, a.nan.lanes, a.nan.lanes);
  }
  const Gp index = cc_.newInt64();
  const Gp stretch = cc_.newInt64();  // its end
  const Gp end = cc_.newInt64();
  const Label next_stretch = cc_.newLabel();
  const Label next_parts = cc_.newLabel();
  const Label parts_done = cc_.newLabel();
  const Label next_part = cc_.newLabel();
  const Label rest = cc_.newLabel();
  const Label done = cc_.newLabel();
  cc_.xor_(index.r32(), index.r32());
  side_by_side_ = points_side_by_side(walk, index);
  if (side_by_side_ == 0) return false;

  cc_.bind(next_stretch);
  cc_.lea(stretch, asmjit::x86::ptr(index, static_cast<int>(kStretch)));
  cc_.cmp(stretch, n_);
  cc_.cmovg(stretch, n_);
  for (std::size_t r = 0; r < accumulators_.size(); ++r) {
    const Vec identity = lanes_.splat(identity_of(walk.reductions[r].combine));
    for (const Vec& part : accumulators_[r].parts) cc_.vmovaps(part, identity);
  }
  cc_.lea(end, asmjit::x86::ptr(index, kParts * lanes));
  cc_.cmp(end, stretch);
  cc_.jg(parts_done);
  cc_.bind(next_parts);
  if (!emit_points(walk, index, kParts)) return false;
  cc_.add(index, imm(kParts * lanes));
  cc_.add(end, imm(kParts * lanes));
  cc_.cmp(end, stretch);
  cc_.jle(next_parts);
  cc_.bind(parts_done);
  for (std::size_t r = 0; r < accumulators_.size(); ++r) {
    const Combine combine = walk.reductions[r].combine;
    const auto& parts = accumulators_[r].parts;
    const Vec all =
        combined(combine, combined(combine, parts[0], parts[1]), combined(combine, parts[2], parts[3]));
    cc_.vmovaps(parts[0], all);
  }
  cc_.lea(end, asmjit::x86::ptr(index, lanes));
  cc_.cmp(end, stretch);
  cc_.jg(rest);
  cc_.bind(next_part);
  if (!emit_point(walk, index, {}, 0)) return false;
  cc_.add(index, imm(lanes));
  cc_.add(end, imm(lanes));
  cc_.cmp(end, stretch);
  cc_.jle(next_part);
  cc_.bind(rest);
  cc_.mov(end, stretch);
  cc_.sub(end, index);
  cc_.jz(done);
  if (!emit_point(walk, index, memory_.rest_of(end), 0)) return false;
  cc_.bind(done);
  if (!combine_stretch(walk)) return false;
  cc_.mov(index, stretch);
  cc_.cmp(index, n_);
  cc_.jl(next_stretch);

  for (std::size_t r = 0; r < accumulators_.size(); ++r) {
    if (is_ordering(walk.reductions[r].combine)) put_nan(accumulators_[r]);
    Vec result = accumulators_[r].wide;
    if (routine_.stores_wide) {
      if (is_ordering(walk.reductions[r].combine)) {
        result = lanes_.fresh();
        cc_.vcvtss2sd(result.xmm(), accumulators_[r].wide.xmm(), accumulators_[r].wide.xmm());
      }
      cc_.vmovsd(asmjit::x86::ptr(addresses_[walk.reductions[r].out]), result.xmm());
      continue;
    }
    if (!is_ordering(walk.reductions[r].combine)) {
      result = lanes_.fresh();
      cc_.vcvtsd2ss(result.xmm(), accumulators_[r].wide.xmm(), accumulators_[r].wide.xmm());
    }
    const Vec all = lanes_.fresh();
    cc_.vbroadcastss(all, result.xmm());
    uniforms_[walk.reductions[r].out] = LaneValue::of(all);
  }
  return true;
}

void RowEmitter::put_nan(const Accumulator& a) {
  const Label none = cc_.newLabel();
  if (lanes_.is_wide) {
    cc_.kortestw(a.nan.bits, a.nan.bits);
  } else {
    const Gp lanes = cc_.newInt32();
    cc_.vmovmskps(lanes, a.nan.lanes);
    cc_.test(lanes, lanes);
  }
  cc_.jz(none);
  cc_.vmovaps(a.wide, lanes_.splat(std::numeric_limits<float>::quiet_NaN()));
  cc_.bind(none);
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
    Vec v = value->lanes;
    if (!rest.is_whole) v = lanes_.select(rest.mask, v, identity_of(reduction.combine));
    const Vec& sum = accumulators_[r].parts[part];
    cc_.emit(instruction_of(reduction.combine), sum, sum, v);
    if (!is_ordering(reduction.combine)) continue;
    // A NaN that is passed over here is put into the result: the next number does not wait for a look at it.
    const LaneMask& nan = accumulators_[r].nan;
    const LaneMask now = lanes_.is_nan(v);
    if (lanes_.is_wide)
      cc_.korw(nan.bits, nan.bits, now.bits);
    else
      cc_.vorps(nan.lanes, nan.lanes, now.lanes);
  }
  // Behind all loads: an output may be in the memory of an operand.
  for (const RoutineWalk::Store& store : walk.stores) {
    const std::optional<LaneValue> value = value_of(store.location, store.type, index, rest);
    if (!value) return false;
    memory_.store(store.type, place(store.location, store.type, index), *value, rest, streams_);
  }
  return true;
}

RowEmitter::Vec RowEmitter::combined(Combine combine, const Vec& a, const Vec& b) const {
  return lanes_.apply(instruction_of(combine), a, b);
}

/// The upper half with the lower, and so on, into the lowest lane.
RowEmitter::Vec RowEmitter::combined_lanes(Combine combine, const Vec& v) const {
  Vec all = v;
  if (lanes_.is_wide) {
    const Vec high = lanes_.fresh();
    cc_.vextractf64x4(high.ymm(), all, imm(1));
    all = combined(combine, all, high);
  }
  Vec other = lanes_.fresh();
  cc_.emit(lanes_.is_wide ? Id::kIdVextractf32x4 : Id::kIdVextractf128, other.xmm(), all.ymm(), imm(1));
  all = combined(combine, all, other);
  for (const int order : {0x4e, 0xb1}) {
    other = lanes_.fresh();
    cc_.vpermilps(other.xmm(), all.xmm(), imm(order));
    all = combined(combine, all, other);
  }
  return all;
}

bool RowEmitter::combine_stretch(const RoutineWalk& walk) {
  for (std::size_t r = 0; r < accumulators_.size(); ++r) {
    const Combine combine = walk.reductions[r].combine;
    const Vec& wide = accumulators_[r].wide;
    const Vec of_stretch = combined_lanes(combine, accumulators_[r].parts[0]);
    if (is_ordering(combine)) {
      cc_.vmovaps(wide, combined(combine, wide, of_stretch));
      continue;
    }
    const Vec widened = lanes_.fresh();
    cc_.vcvtss2sd(widened.xmm(), of_stretch.xmm(), of_stretch.xmm());
    cc_.emit(combine == Combine::sum ? Id::kIdVaddsd : Id::kIdVmulsd, wide.xmm(), wide.xmm(), widened.xmm());
  }
  return true;
}

}  // namespace caldera::cpu
