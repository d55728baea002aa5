#include "engine/device/cpu/machine_code/line_emitter.h"

#include "engine/device/cpu/machine_code/lane_math.h"

namespace caldera::cpu {
namespace {

using Is = Lanes::Is;
using Rounding = Lanes::Rounding;
using Vec = Lanes::Vec;

std::optional<Is> predicate_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::equal:
      return Is::equal;
    case ScalarOp::not_equal:
      return Is::not_equal;
    case ScalarOp::less:
      return Is::less;
    case ScalarOp::less_equal:
      return Is::less_equal;
    case ScalarOp::greater:
      return Is::greater;
    case ScalarOp::greater_equal:
      return Is::greater_equal;
    default:
      return std::nullopt;
  }
}

/// Truncated; saturates; NaN is 0.
Vec truncated(const Lanes& l, const Vec& x) {
  const Vec in_range = l.to_i32(x);
  const LaneMask above = l.compare(x, Is::greater_equal, l.constant(0x1p31F));
  const Vec limited = l.select(above, l.splat(std::int32_t{0x7fffffff}), in_range);
  return l.select(l.is_nan(x), l.zero(), limited);
}

Vec larger(const Lanes& l, const Vec& x, const Vec& y, bool maximum) {
  const Vec v = maximum ? l.greatest(x, y) : l.least(x, y);
  return l.select(l.is_nan(x), x, v);
}

std::optional<LaneValue> emit_cast(const Lanes& l, DType from, DType to, const LaneValue& a) {
  // Types of memory are widened when they are loaded, and narrowed when they are stored.
  from = compute_type(from);
  to = compute_type(to);
  if (from == to) return a;
  if (from == DType::boolean) {
    if (to == DType::f32) return LaneValue::of(l.keep(a.mask, l.constant(1.0F)));
    return LaneValue::of(l.keep(a.mask, l.constant(std::int32_t{1})));
  }
  if (to == DType::boolean) {
    if (from == DType::f32) return LaneValue::of(l.compare(a.lanes, Is::not_equal, l.constant(0.0F)));
    return LaneValue::of(l.compare_i32(a.lanes, Is::not_equal, l.zero()));
  }
  if (from == DType::i32) return LaneValue::of(l.to_f32(a.lanes));
  return LaneValue::of(truncated(l, a.lanes));
}

std::optional<LaneValue> emit_boolean(const Lanes& l, ScalarOp op, const LaneMask& a, const LaneMask& b) {
  switch (op) {
    case ScalarOp::logical_not:
      return LaneValue::of(l.mask_not(a));
    case ScalarOp::logical_and:
    case ScalarOp::mul:
    case ScalarOp::minimum:
      return LaneValue::of(l.mask_and(a, b));
    case ScalarOp::logical_or:
    case ScalarOp::add:
    case ScalarOp::maximum:
      return LaneValue::of(l.mask_or(a, b));
    case ScalarOp::logical_xor:
    case ScalarOp::not_equal:
      return LaneValue::of(l.mask_xor(a, b));
    case ScalarOp::equal:
      return LaneValue::of(l.mask_not(l.mask_xor(a, b)));
    default:
      return std::nullopt;
  }
}

std::optional<Vec> emit_i32(const Lanes& l, ScalarOp op, const Vec& a, const Vec& b) {
  switch (op) {
    case ScalarOp::neg:
      return l.sub_i32(l.zero(), a);
    case ScalarOp::abs:
      return l.apply(Lanes::Id::kIdVpabsd, a);
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::round:
    case ScalarOp::trunc:
      return a;
    case ScalarOp::add:
      return l.add_i32(a, b);
    case ScalarOp::sub:
      return l.sub_i32(a, b);
    case ScalarOp::mul:
      return l.mul_i32(a, b);
    case ScalarOp::maximum:
      return l.apply(Lanes::Id::kIdVpmaxsd, a, b);
    case ScalarOp::minimum:
      return l.apply(Lanes::Id::kIdVpminsd, a, b);
    case ScalarOp::bit_and:
      return l.bit_and(a, b);
    case ScalarOp::bit_or:
      return l.bit_or(a, b);
    case ScalarOp::bit_xor:
      return l.bit_xor(a, b);
    case ScalarOp::bit_not:
      return l.bit_xor(a, l.constant(std::int32_t{-1}));
    default:
      return std::nullopt;
  }
}

Vec sign_of(const Lanes& l, const Vec& x) {
  const Vec positive = l.keep(l.compare(x, Is::greater, l.constant(0.0F)), l.constant(1.0F));
  const Vec sign = l.select(l.compare(x, Is::less, l.constant(0.0F)), l.splat(-1.0F), positive);
  return l.select(l.is_nan(x), x, sign);
}

std::optional<Vec> emit_f32(const Lanes& l, ScalarOp op, const Vec& a, const Vec& b) {
  switch (op) {
    case ScalarOp::neg:
      return l.neg(a);
    case ScalarOp::abs:
      return l.abs(a);
    case ScalarOp::sign:
      return sign_of(l, a);
    case ScalarOp::floor:
      return l.round(a, Rounding::down);
    case ScalarOp::ceil:
      return l.round(a, Rounding::up);
    case ScalarOp::round:
      return l.round(a);
    case ScalarOp::trunc:
      return l.round(a, Rounding::truncate);
    case ScalarOp::sqrt:
      return l.sqrt(a);
    case ScalarOp::rsqrt:
      return l.div(l.splat(1.0F), l.sqrt(a));
    case ScalarOp::reciprocal:
      return l.div(l.splat(1.0F), a);
    case ScalarOp::add:
      return l.add(a, b);
    case ScalarOp::sub:
      return l.sub(a, b);
    case ScalarOp::mul:
      return l.mul(a, b);
    case ScalarOp::div:
      return l.div(a, b);
    case ScalarOp::maximum:
      return larger(l, a, b, true);
    case ScalarOp::minimum:
      return larger(l, a, b, false);
    case ScalarOp::copysign:
      return l.copysign(a, b);
    case ScalarOp::atan2:
      return atan2_lanes(l, a, b);
    case ScalarOp::round_bf16:
      return l.shift_left(LaneMemory(l).bf16_bits(a), 16);
    case ScalarOp::round_f16: {
      const Vec narrow = l.fresh();
      l.cc.vcvtps2ph(l.half(narrow), a, asmjit::imm(0));
      return l.apply(Lanes::Id::kIdVcvtph2ps, l.half(narrow));
    }
    default:
      return elementary_lanes(l, op, a);
  }
}

bool is_known(DType type) { return LaneMemory::knows(type); }

}  // namespace

std::optional<LaneValue> emit_line(const Lanes& l, const RoutineLine& line, const LaneValue& a,
                                   const LaneValue& b, const LaneValue& c) {
  if (!is_known(line.operand) || !is_known(line.type)) return std::nullopt;
  if (line.op == ScalarOp::cast && line.operand == line.type && is_memory_type(line.type))
    return std::nullopt;  // a copy keeps every bit, of NaN too
  if (line.op == ScalarOp::cast) return emit_cast(l, line.operand, line.type, a);
  if (line.op == ScalarOp::select) {
    if (!b.is_mask) return LaneValue::of(l.select(a.mask, b.lanes, c.lanes));
    return LaneValue::of(l.mask_or(l.mask_and(a.mask, b.mask), l.mask_and(l.mask_not(a.mask), c.mask)));
  }
  if (a.is_mask) return emit_boolean(l, line.op, a.mask, b.mask);
  if (const auto is = predicate_of(line.op))
    return LaneValue::of(line.operand == DType::f32 ? l.compare(a.lanes, *is, b.lanes)
                                                    : l.compare_i32(a.lanes, *is, b.lanes));
  if (line.op == ScalarOp::isnan)
    return line.operand == DType::f32 ? std::optional(LaneValue::of(l.is_nan(a.lanes))) : std::nullopt;
  const std::optional<Vec> v = line.operand == DType::f32 ? emit_f32(l, line.op, a.lanes, b.lanes)
                                                          : emit_i32(l, line.op, a.lanes, b.lanes);
  if (!v) return std::nullopt;
  return LaneValue::of(*v);
}

}  // namespace caldera::cpu
