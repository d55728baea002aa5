#include "engine/device/cpu/machine_code/lanes.h"

#include <bit>

namespace caldera::cpu {
namespace {

using asmjit::imm;

constexpr int kAvx2Lanes = 8;

asmjit::x86::Mem in_memory(asmjit::x86::Compiler& cc, bool is_wide, std::int32_t bits) {
  if (is_wide) return cc.newConst(asmjit::ConstPoolScope::kLocal, &bits, sizeof bits)._1to16();
  std::int32_t all[kAvx2Lanes];
  for (std::int32_t& lane : all) lane = bits;
  return cc.newConst(asmjit::ConstPoolScope::kLocal, all, sizeof all);
}

}  // namespace

Lanes::Vec Lanes::fresh() const {
  if (is_wide) return cc.newZmm();
  return cc.newYmm();
}

LaneMask Lanes::fresh_mask() const {
  LaneMask mask;
  if (is_wide)
    mask.bits = cc.newKw();
  else
    mask.lanes = fresh();
  return mask;
}

Lanes::Vec Lanes::half(const Vec& v) const {
  if (is_wide) return v.ymm();
  return v.xmm();
}
Lanes::Vec Lanes::quarter(const Vec& v) const { return v.xmm(); }

Lanes::Op Lanes::constant(float x) const { return constant(std::bit_cast<std::int32_t>(x)); }
Lanes::Op Lanes::constant(std::int32_t x) const { return in_memory(cc, is_wide, x); }

Lanes::Vec Lanes::splat(float x) const { return splat(std::bit_cast<std::int32_t>(x)); }
Lanes::Vec Lanes::splat(std::int32_t x) const {
  if (x == 0) return zero();
  const Vec v = fresh();
  cc.vbroadcastss(v, cc.newConst(asmjit::ConstPoolScope::kLocal, &x, sizeof x));
  return v;
}
Lanes::Vec Lanes::zero() const {
  const Vec v = fresh();
  cc.emit(is_wide ? Id::kIdVpxord : Id::kIdVpxor, v.xmm(), v.xmm(), v.xmm());
  return v;
}
Lanes::Vec Lanes::copy(const Vec& v) const { return apply(Id::kIdVmovaps, v); }

Lanes::Vec Lanes::apply(Id id, const Op& a) const {
  const Vec v = fresh();
  cc.emit(id, v, a);
  return v;
}
Lanes::Vec Lanes::apply(Id id, const Op& a, const Op& b) const {
  const Vec v = fresh();
  cc.emit(id, v, a, b);
  return v;
}
Lanes::Vec Lanes::apply(Id id, const Op& a, const Op& b, const Op& c) const {
  const Vec v = fresh();
  cc.emit(id, v, a, b, c);
  return v;
}

Lanes::Vec Lanes::apply_where(const LaneMask& mask, Id id, const Op& a, const Op& b) const {
  const Vec v = fresh();
  cc.k(mask.bits).z().emit(id, v, a, b);
  return v;
}

Lanes::Vec Lanes::bit_and(const Vec& a, const Op& b) const {
  return apply(is_wide ? Id::kIdVpandd : Id::kIdVandps, a, b);
}
Lanes::Vec Lanes::bit_or(const Vec& a, const Op& b) const {
  return apply(is_wide ? Id::kIdVpord : Id::kIdVorps, a, b);
}
Lanes::Vec Lanes::bit_xor(const Vec& a, const Op& b) const {
  return apply(is_wide ? Id::kIdVpxord : Id::kIdVxorps, a, b);
}
Lanes::Vec Lanes::bit_andnot(const Vec& a, const Op& b) const {
  return apply(is_wide ? Id::kIdVpandnd : Id::kIdVandnps, a, b);
}

Lanes::Vec Lanes::mul_add(const Vec& a, const Vec& b, const Op& c) const {
  const Vec v = copy(a);
  cc.emit(Id::kIdVfmadd213ps, v, b, c);
  return v;
}
Lanes::Vec Lanes::nmul_add(const Vec& a, const Vec& b, const Op& c) const {
  const Vec v = copy(a);
  cc.emit(Id::kIdVfnmadd213ps, v, b, c);
  return v;
}
Lanes::Vec Lanes::horner(const Vec& x, std::initializer_list<float> coefficients) const {
  const float* c = coefficients.end() - 1;
  const Vec v = splat(*c);
  while (c != coefficients.begin()) cc.emit(Id::kIdVfmadd213ps, v, x, constant(*--c));
  return v;
}

Lanes::Vec Lanes::round(const Vec& a, Rounding rounding) const {
  const int mode = static_cast<int>(rounding) | 8;  // without the exception "inexact"
  return apply(is_wide ? Id::kIdVrndscaleps : Id::kIdVroundps, a, imm(mode));
}

Lanes::Vec Lanes::copysign(const Vec& magnitude, const Vec& sign) const {
  return bit_or(abs(magnitude), bit_and(sign, constant(-0.0F)));
}

Lanes::Vec Lanes::look_up(const float (&table)[32], const Vec& index) const {
  constexpr std::size_t kRegister = 64;
  const auto half = [&](const float* from) {
    return cc.newConst(asmjit::ConstPoolScope::kLocal, from, kRegister);
  };
  const Vec found = fresh();
  cc.vmovaps(found, half(table));
  cc.vpermt2ps(found, index, half(table + 16));
  return found;
}

Lanes::Vec Lanes::shift_left(const Vec& a, int bits) const { return apply(Id::kIdVpslld, a, imm(bits)); }
Lanes::Vec Lanes::shift_right(const Vec& a, int bits) const { return apply(Id::kIdVpsrad, a, imm(bits)); }
Lanes::Vec Lanes::shift_right_unsigned(const Vec& a, int bits) const {
  return apply(Id::kIdVpsrld, a, imm(bits));
}

LaneMask Lanes::compare(const Vec& a, Is is, const Op& b) const {
  LaneMask mask = fresh_mask();
  const auto predicate = imm(static_cast<int>(is));
  if (is_wide)
    cc.emit(Id::kIdVcmpps, mask.bits, a, b, predicate);
  else
    cc.emit(Id::kIdVcmpps, mask.lanes, a, b, predicate);
  return mask;
}

LaneMask Lanes::compare_i32(const Vec& a, Is is, const Vec& b) const {
  if (is == Is::greater_equal) return mask_not(compare_i32(b, Is::greater, a));
  if (is == Is::less_equal) return mask_not(compare_i32(a, Is::greater, b));
  if (is == Is::less) return compare_i32(b, Is::greater, a);
  if (is == Is::not_equal) return mask_not(compare_i32(a, Is::equal, b));
  LaneMask mask = fresh_mask();
  const Id id = is == Is::equal ? Id::kIdVpcmpeqd : Id::kIdVpcmpgtd;
  if (is_wide)
    cc.emit(id, mask.bits, a, b);
  else
    cc.emit(id, mask.lanes, a, b);
  return mask;
}

LaneMask Lanes::mask_of(Id wide, Id narrow, const LaneMask& a, const LaneMask& b) const {
  LaneMask mask = fresh_mask();
  if (is_wide)
    cc.emit(wide, mask.bits, a.bits, b.bits);
  else
    cc.emit(narrow, mask.lanes, a.lanes, b.lanes);
  return mask;
}
LaneMask Lanes::mask_and(const LaneMask& a, const LaneMask& b) const {
  return mask_of(Id::kIdKandw, Id::kIdVandps, a, b);
}
LaneMask Lanes::mask_or(const LaneMask& a, const LaneMask& b) const {
  return mask_of(Id::kIdKorw, Id::kIdVorps, a, b);
}
LaneMask Lanes::mask_xor(const LaneMask& a, const LaneMask& b) const {
  return mask_of(Id::kIdKxorw, Id::kIdVxorps, a, b);
}
LaneMask Lanes::mask_not(const LaneMask& a) const {
  LaneMask mask = fresh_mask();
  if (is_wide)
    cc.knotw(mask.bits, a.bits);
  else
    cc.emit(Id::kIdVxorps, mask.lanes, a.lanes, constant(std::int32_t{-1}));
  return mask;
}

Lanes::Vec Lanes::select(const LaneMask& mask, const Vec& yes, const Vec& no) const {
  if (!is_wide) {
    const Vec v = fresh();
    cc.vblendvps(v, no, yes, mask.lanes);
    return v;
  }
  // AsmJit takes every masked result, a blend's too, for one that was there before.
  const Vec v = copy(no);
  cc.k(mask.bits).vmovaps(v, yes);
  return v;
}
Lanes::Vec Lanes::keep(const LaneMask& mask, const Op& x) const {
  if (!is_wide) return bit_and(mask.lanes, x);
  const Vec v = fresh();
  if (x.isReg())
    cc.k(mask.bits).z().vmovaps(v, x.as<Vec>());
  else
    cc.k(mask.bits).z().vbroadcastss(
        v, x.as<asmjit::x86::Mem>().cloneBroadcasted(asmjit::x86::Mem::Broadcast::kNone));
  return v;
}

}  // namespace caldera::cpu
