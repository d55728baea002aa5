// Emits vector instructions of AVX2 or AVX-512: arithmetic over all lanes of a register of f32 or i32.
//
// Every function appends the instructions for one operation and returns the register of its result, a new
// one. The names and what they compute are those of the Highway functions that the interpreter is written in,
// so that the same formula gives the same bits.
#pragma once

#include <asmjit/x86.h>

#include <cstdint>
#include <initializer_list>

namespace caldera::cpu {

enum class VectorSet : std::uint8_t { avx2, avx512 };

/// One truth value a lane: a mask register (AVX-512), or all bits of the lane (AVX2).
struct LaneMask {
  asmjit::x86::KReg bits;
  asmjit::x86::Vec lanes;
};

class Lanes {
 public:
  using Vec = asmjit::x86::Vec;
  using Op = asmjit::Operand;  // a register, or memory
  using Id = asmjit::x86::Inst::Id;

  Lanes(asmjit::x86::Compiler& compiler, VectorSet set) : cc(compiler), is_wide(set == VectorSet::avx512) {}

  /// Lanes of a register.
  int count() const { return is_wide ? 16 : 8; }
  Vec fresh() const;
  LaneMask fresh_mask() const;
  /// The part of a register that holds half, a quarter or an eighth of the lanes' bytes.
  Vec half(const Vec& v) const;
  Vec quarter(const Vec& v) const;

  /// The constant in every lane, in memory beside the code.
  Op constant(float x) const;
  Op constant(std::int32_t x) const;
  Vec splat(float x) const;
  Vec splat(std::int32_t x) const;
  Vec zero() const;
  Vec copy(const Vec& v) const;

  Vec apply(Id id, const Op& a) const;
  Vec apply(Id id, const Op& a, const Op& b) const;
  Vec apply(Id id, const Op& a, const Op& b, const Op& c) const;
  /// Computes only the lanes of the mask; the others are 0. Wide instructions alone.
  Vec apply_where(const LaneMask& mask, Id id, const Op& a, const Op& b) const;

  Vec add(const Vec& a, const Op& b) const { return apply(Id::kIdVaddps, a, b); }
  Vec sub(const Vec& a, const Op& b) const { return apply(Id::kIdVsubps, a, b); }
  Vec mul(const Vec& a, const Op& b) const { return apply(Id::kIdVmulps, a, b); }
  Vec div(const Vec& a, const Op& b) const { return apply(Id::kIdVdivps, a, b); }
  Vec sqrt(const Vec& a) const { return apply(Id::kIdVsqrtps, a); }
  /// The processor's minimum and maximum: the second operand where one is NaN, or both are zeros.
  Vec least(const Vec& a, const Op& b) const { return apply(Id::kIdVminps, a, b); }
  Vec greatest(const Vec& a, const Op& b) const { return apply(Id::kIdVmaxps, a, b); }
  Vec bit_and(const Vec& a, const Op& b) const;
  Vec bit_or(const Vec& a, const Op& b) const;
  Vec bit_xor(const Vec& a, const Op& b) const;
  Vec bit_andnot(const Vec& a, const Op& b) const;  // b where a is 0
  /// a b + c, c - a b, rounded once.
  Vec mul_add(const Vec& a, const Vec& b, const Op& c) const;
  Vec nmul_add(const Vec& a, const Vec& b, const Op& c) const;
  /// c0 + x (c1 + x (c2 + ...)), coefficients lowest first.
  Vec horner(const Vec& x, std::initializer_list<float> coefficients) const;

  /// table[index % 32] in every lane, of the whole numbers in `index`. Wide instructions alone.
  Vec look_up(const float (&table)[32], const Vec& index) const;

  enum class Rounding : std::uint8_t { nearest = 0, down = 1, up = 2, truncate = 3 };
  Vec round(const Vec& a, Rounding rounding = Rounding::nearest) const;
  Vec neg(const Vec& a) const { return bit_xor(a, constant(-0.0F)); }
  Vec abs(const Vec& a) const { return bit_and(a, constant(std::int32_t{0x7fffffff})); }
  Vec copysign(const Vec& magnitude, const Vec& sign) const;

  Vec add_i32(const Vec& a, const Op& b) const { return apply(Id::kIdVpaddd, a, b); }
  Vec sub_i32(const Vec& a, const Op& b) const { return apply(Id::kIdVpsubd, a, b); }
  Vec mul_i32(const Vec& a, const Op& b) const { return apply(Id::kIdVpmulld, a, b); }
  Vec shift_left(const Vec& a, int bits) const;
  Vec shift_right(const Vec& a, int bits) const;  // arithmetic
  Vec shift_right_unsigned(const Vec& a, int bits) const;
  Vec to_i32(const Vec& a) const { return apply(Id::kIdVcvttps2dq, a); }  // out of range: the lowest i32
  Vec to_f32(const Vec& a) const { return apply(Id::kIdVcvtdq2ps, a); }

  // Predicates of vcmpps.
  enum class Is : std::uint8_t {
    equal = 0x00,
    less = 0x11,
    less_equal = 0x12,
    unordered = 0x03,
    not_equal = 0x04,
    not_less = 0x15,  // true of NaN
    greater_equal = 0x1d,
    greater = 0x1e,
  };
  LaneMask compare(const Vec& a, Is is, const Op& b) const;
  LaneMask compare_i32(const Vec& a, Is is, const Vec& b) const;
  LaneMask is_nan(const Vec& a) const { return compare(a, Is::unordered, a); }
  LaneMask mask_of(Id wide, Id narrow, const LaneMask& a, const LaneMask& b) const;
  LaneMask mask_and(const LaneMask& a, const LaneMask& b) const;
  LaneMask mask_or(const LaneMask& a, const LaneMask& b) const;
  LaneMask mask_xor(const LaneMask& a, const LaneMask& b) const;
  LaneMask mask_not(const LaneMask& a) const;
  /// `yes` where the mask is set, else `no`.
  Vec select(const LaneMask& mask, const Vec& yes, const Vec& no) const;
  Vec select(const LaneMask& mask, const Vec& yes, float no) const { return select(mask, yes, splat(no)); }
  /// x where the mask is set, else 0.
  Vec keep(const LaneMask& mask, const Op& x) const;

  asmjit::x86::Compiler& cc;
  const bool is_wide;
};

}  // namespace caldera::cpu
