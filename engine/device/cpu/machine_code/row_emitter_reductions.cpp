// Reductions along the row: partial results of a stretch, and what becomes of them.
#include <limits>

#include "engine/device/cpu/machine_code/row_emitter.h"
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

void RowEmitter::begin_reduction(const RoutineWalk::Reduction& reduction, Accumulator& a) {
  const bool orders = is_ordering(reduction.combine);
  for (Vec& part : a.parts) part = lanes_.fresh();
  a.wide = orders ? lanes_.splat(identity_of(reduction.combine)) : lanes_.fresh();
  if (orders) {
    a.nan = lanes_.fresh_mask();
    if (lanes_.is_wide)
      cc_.kxorw(a.nan.bits, a.nan.bits, a.nan.bits);
    else
      cc_.vxorps(a.nan.lanes, a.nan.lanes, a.nan.lanes);
  }
  if (routine_.stores_wide) {
    const Mem begun = asmjit::x86::ptr(addresses_[reduction.out]);
    if (!orders) return void(cc_.vmovsd(a.wide.xmm(), begun));
    cc_.vcvtsd2ss(a.wide.xmm(), a.wide.xmm(), begun);
    gather_nan(a.nan, lanes_.is_nan(a.wide));
  } else if (!orders) {
    const double identity = identity_of(reduction.combine);
    cc_.vmovsd(a.wide.xmm(), cc_.newConst(asmjit::ConstPoolScope::kLocal, &identity, sizeof identity));
  }
}

void RowEmitter::gather_nan(const LaneMask& nan, const LaneMask& now) {
  if (lanes_.is_wide)
    cc_.korw(nan.bits, nan.bits, now.bits);
  else
    cc_.vorps(nan.lanes, nan.lanes, now.lanes);
}

/// Stretch by stretch, as ReduceOps::rows does: four partial results a stretch, which become one number.
void RowEmitter::take_up(const RoutineWalk::Reduction& reduction, const Accumulator& a, int part, Vec v,
                         const LaneRest& rest) {
  if (!rest.is_whole) v = lanes_.select(rest.mask, v, identity_of(reduction.combine));
  const Vec& sum = a.parts[part];
  cc_.emit(instruction_of(reduction.combine), sum, sum, v);
  // A NaN that is passed over here is put into the result: the next number does not wait for a look at it.
  if (is_ordering(reduction.combine)) gather_nan(a.nan, lanes_.is_nan(v));
}

bool RowEmitter::emit_reducing_walk(const RoutineWalk& walk) {
  const int lanes = lanes_.count();
  accumulators_.clear();
  for (const RoutineWalk::Reduction& reduction : walk.reductions) {
    if (reduction.type != DType::f32) return false;
    begin_reduction(reduction, accumulators_.emplace_back());
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
