// With y the reciprocal of b as it is rounded to the nearest, and a quotient q that is one of the two floats
// next to a / b, the remainder r = a - q b is a float, and q + r y, rounded once, is a / b rounded to the
// nearest (P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990).
// The first q is a y + a z, z being what y lacks of 1 / b: off by little more than its own rounding. All of
// that holds where nothing is too small or too large for its last digits: for b from 2^-20 to 2^20 and a from
// 2^-100 to 2^100. A register with another a is divided by the processor.
#include "engine/device/cpu/machine_code/quotients.h"

#include <bit>

namespace caldera::cpu {
namespace {

using asmjit::imm;
using asmjit::Label;
using asmjit::x86::Gp;
using Vec = Lanes::Vec;

constexpr auto kLeast = std::bit_cast<std::int32_t>(0x1p-100F);
constexpr auto kGreatest = std::bit_cast<std::int32_t>(0x1p100F);
constexpr auto kLeastDivisor = std::bit_cast<std::int32_t>(0x1p-20F);
constexpr auto kGreatestDivisor = std::bit_cast<std::int32_t>(0x1p20F);

}  // namespace

Divisor divisor_of(const Lanes& l, const Vec& number) {
  auto& cc = l.cc;
  const Vec one = l.splat(1.0F), reciprocal = l.fresh(), rest = l.fresh();
  cc.vdivss(reciprocal.xmm(), one.xmm(), number.xmm());
  cc.vmovaps(rest.xmm(), number.xmm());
  cc.vfnmadd213ss(rest.xmm(), reciprocal.xmm(), one.xmm());
  cc.vmulss(rest.xmm(), rest.xmm(), reciprocal.xmm());
  // Dividends whose magnitude, as a whole number less kLeast, is below `reach`: none where the divisor does
  // not suit.
  const Gp bits = cc.newInt32(), reach = cc.newInt32(), none = cc.newInt32();
  cc.vmovd(bits, number.xmm());
  cc.and_(bits, imm(0x7fffffff));
  cc.sub(bits, imm(kLeastDivisor));
  cc.mov(reach, imm(kGreatest - kLeast + 1));
  cc.xor_(none, none);
  cc.cmp(bits, imm(kGreatestDivisor - kLeastDivisor));
  cc.cmova(reach, none);
  Divisor divisor{number, l.fresh(), l.fresh(), l.fresh()};
  cc.vbroadcastss(divisor.reciprocal, reciprocal.xmm());
  cc.vbroadcastss(divisor.rest, rest.xmm());
  cc.vpbroadcastd(divisor.reach, reach);
  return divisor;
}

Vec quotient(const Lanes& l, const Vec& a, const Divisor& divisor) {
  auto& cc = l.cc;
  const Vec result = l.fresh();
  const Label suits = cc.newLabel(), done = cc.newLabel();
  const Vec magnitude = l.sub_i32(l.bit_and(a, l.constant(std::int32_t{0x7fffffff})), l.constant(kLeast));
  const LaneMask within = l.fresh_mask();
  cc.vpcmpud(within.bits, magnitude, divisor.reach, imm(1));  // less
  cc.kortestw(within.bits, within.bits);
  cc.jc(suits);
  cc.vdivps(result, a, divisor.number);
  cc.jmp(done);
  cc.bind(suits);
  cc.vmulps(result, a, divisor.rest);
  cc.vfmadd231ps(result, a, divisor.reciprocal);
  const Vec remainder = l.nmul_add(result, divisor.number, a);
  cc.vfmadd231ps(result, remainder, divisor.reciprocal);
  cc.bind(done);
  return result;
}

}  // namespace caldera::cpu
