#include "engine/device/cpu/machine_code/lane_math.h"

#include <limits>

#include "engine/device/cpu/simd/erf_table.h"

namespace caldera::cpu {
namespace {

using Vec = Lanes::Vec;
using Is = Lanes::Is;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kToInteger = 0x1.8p23F;  // added and taken off again, leaves the nearest integer
constexpr float kPi = 3.14159274F, kPiLow = -8.74227766e-8F;  // the nearest float, and what it lacks

Vec keep_nan(const Lanes& l, const Vec& x, const Vec& y) { return l.select(l.is_nan(x), x, y); }

Vec power_of_two(const Lanes& l, const Vec& n) {
  return l.shift_left(l.add_i32(n, l.constant(std::int32_t{127})), 23);
}

Vec reduce_by_ln2(const Lanes& l, const Vec& x, Vec& n) {
  n = l.sub(l.mul_add(x, l.splat(1.44269504088896341F), l.constant(kToInteger)), l.constant(kToInteger));
  return l.nmul_add(n, l.splat(-2.12194440e-4F), l.nmul_add(n, l.splat(0.693359375F), x));
}

Vec exp_of_rest(const Lanes& l, const Vec& r) {
  return l.horner(
      r, {1.0F, 1.0F, 4.99999940E-1F, 1.66665211E-1F, 4.16682661E-2F, 8.36867746E-3F, 1.38207490E-3F});
}

Vec expm1_of_rest(const Lanes& l, const Vec& r) {
  const Vec p = l.horner(r, {5.0000001201E-1F, 1.6666665459E-1F, 4.1665795894E-2F, 8.3334519073E-3F,
                             1.3981999507E-3F, 1.9875691500E-4F});
  return l.mul_add(p, l.mul(r, r), r);
}

// As in math_f32-inl.h: of lanes below the lower limit nothing is computed.
struct Exponents {
  Vec x, bounded;
  LaneMask live;
};

Exponents exponents_within(const Lanes& l, const Vec& x, float low, float high) {
  const LaneMask live = l.compare(x, Is::not_less, l.constant(low));
  if (l.is_wide) return {x, l.apply_where(live, Lanes::Id::kIdVminps, l.splat(high), x), live};
  return {x, l.keep(live, l.least(x, l.constant(high))), live};
}

Vec scaled_exp(const Lanes& l, const Exponents& of, const Vec& r, const Vec& n) {
  const Vec e = exp_of_rest(l, r);
  if (l.is_wide) return l.apply_where(of.live, Lanes::Id::kIdVscalefps, e, n);
  const Vec power = l.to_i32(n);
  const Vec half = l.shift_right(power, 1);
  const Vec scaled = l.mul(l.mul(e, power_of_two(l, half)), power_of_two(l, l.sub_i32(power, half)));
  return keep_nan(l, of.x, l.keep(of.live, scaled));
}

Vec exp_lanes(const Lanes& l, const Vec& x) {
  const Exponents of = exponents_within(l, x, -104.0F, 89.0F);
  Vec n;
  const Vec r = reduce_by_ln2(l, of.bounded, n);
  return scaled_exp(l, of, r, n);
}

Vec exp2_lanes(const Lanes& l, const Vec& x) {
  const Exponents of = exponents_within(l, x, -151.0F, 129.0F);
  const Vec n = l.round(of.bounded);
  const Vec r = l.mul(l.sub(of.bounded, n), l.constant(0.693147180559945309F));
  return scaled_exp(l, of, r, n);
}

Vec expm1_lanes(const Lanes& l, const Vec& x) {
  const Vec bounded = l.least(l.greatest(x, l.constant(-20.0F)), l.constant(89.0F));
  Vec n;
  const Vec r = reduce_by_ln2(l, bounded, n);
  const Vec p = expm1_of_rest(l, r);
  const Vec scale = power_of_two(l, l.sub_i32(l.to_i32(n), l.constant(std::int32_t{1})));
  const Vec sum = l.mul_add(scale, p, l.sub(scale, l.constant(0.5F)));
  const LaneMask as_is = l.mask_or(l.is_nan(x), l.compare(x, Is::equal, l.constant(0.0F)));
  return l.select(as_is, x, l.add(sum, sum));
}

struct LogParts {
  Vec e, m, y;
};
LogParts log_parts(const Lanes& l, const Vec& x) {
  const LaneMask tiny = l.compare(x, Is::less, l.constant(std::numeric_limits<float>::min()));
  const Vec normal = l.select(tiny, l.mul(x, l.constant(0x1p23F)), x);
  const Vec shifted = l.sub_i32(normal, l.constant(std::int32_t{0x3f3504f3}));
  const Vec exponent = l.shift_right(shifted, 23);
  const Vec mantissa = l.sub_i32(normal, l.shift_left(exponent, 23));
  LogParts parts;
  parts.e = l.sub(l.to_f32(exponent), l.keep(tiny, l.constant(23.0F)));
  parts.m = l.sub(mantissa, l.constant(1.0F));
  const Vec& m = parts.m;
  const Vec z = l.mul(m, m);
  const Vec p =
      l.horner(m, {3.3333331174E-1F, -2.4999993993E-1F, 2.0000714765E-1F, -1.6668057665E-1F, 1.4249322787E-1F,
                   -1.2420140846E-1F, 1.1676998740E-1F, -1.1514610310E-1F, 7.0376836292E-2F});
  parts.y = l.nmul_add(l.splat(0.5F), z, l.mul(l.mul(p, m), z));
  return parts;
}

Vec with_log_limits(const Lanes& l, const Vec& x, Vec result) {
  result = l.select(l.compare(x, Is::equal, l.constant(kInfinity)), x, result);
  result = l.select(l.compare(x, Is::equal, l.constant(0.0F)), l.splat(-kInfinity), result);
  result = l.select(l.compare(x, Is::less, l.constant(0.0F)),
                    l.splat(std::numeric_limits<float>::quiet_NaN()), result);
  return keep_nan(l, x, result);
}

Vec log_lanes(const Lanes& l, const Vec& x) {
  const LogParts p = log_parts(l, x);
  const Vec y = l.mul_add(p.e, l.splat(-2.12194440e-4F), p.y);
  return with_log_limits(l, x, l.mul_add(p.e, l.splat(0.693359375F), l.add(p.m, y)));
}

Vec log2_lanes(const Lanes& l, const Vec& x) {
  const LogParts p = log_parts(l, x);
  const Vec above = l.splat(0.44269504088896340736F);
  const Vec low = l.mul_add(p.m, above, l.mul_add(p.y, above, p.y));
  return with_log_limits(l, x, l.add(l.add(low, p.m), p.e));
}

Vec log10_lanes(const Lanes& l, const Vec& x) {
  const LogParts p = log_parts(l, x);
  Vec low = l.mul(l.add(p.m, p.y), l.constant(7.00731903251827651129E-4F));
  low = l.mul_add(p.e, l.splat(2.48745663981195213739E-4F), low);
  low = l.mul_add(p.y, l.splat(4.3359375E-1F), low);
  low = l.mul_add(p.m, l.splat(4.3359375E-1F), low);
  return with_log_limits(l, x, l.mul_add(p.e, l.splat(3.0078125E-1F), low));
}

Vec log1p_lanes(const Lanes& l, const Vec& x) {
  const Vec one = l.splat(1.0F);
  const Vec u = l.add(one, x);
  const Vec lost = l.div(l.sub(x, l.sub(u, one)), u);
  const Vec y = log_lanes(l, u);
  const LaneMask exact =
      l.mask_or(l.compare(u, Is::equal, l.constant(0.0F)), l.compare(u, Is::equal, l.constant(kInfinity)));
  const Vec corrected = l.select(exact, y, l.add(y, lost));
  return l.select(l.compare(u, Is::equal, one), x, corrected);
}

Vec tanh_lanes(const Lanes& l, const Vec& x) {
  const Vec a = l.abs(x);
  const Vec z = l.mul(x, x);
  const Vec p = l.horner(
      z, {-3.33332819422E-1F, 1.33314422036E-1F, -5.37397155531E-2F, 2.06390887954E-2F, -5.70498872745E-3F});
  const Vec small = l.mul_add(l.mul(p, z), x, x);
  const Vec e = exp_lanes(l, l.add(a, a));
  const Vec large = l.sub(l.splat(1.0F), l.div(l.splat(2.0F), l.add(e, l.constant(1.0F))));
  return l.copysign(l.select(l.compare(a, Is::less, l.constant(0.625F)), small, large), x);
}

Vec sigmoid_lanes(const Lanes& l, const Vec& x) {
  const Vec e = exp_lanes(l, l.neg(l.abs(x)));
  const Vec numerator = l.select(l.compare(x, Is::less, l.constant(0.0F)), e, 1.0F);
  return l.div(numerator, l.add(l.splat(1.0F), e));
}

Vec erf_by_table(const Lanes& l, const Vec& x) {
  const Vec t = l.least(l.splat(kErfLimit), l.abs(x));
  const Vec place = l.add(t, l.constant(kErfRounding));
  const Vec u = l.sub(t, l.sub(place, l.constant(kErfRounding)));
  Vec sum = l.look_up(kErfTable[kErfTerms - 1], place);
  for (int term = kErfTerms - 1; --term > 0;) sum = l.mul_add(sum, u, l.look_up(kErfTable[term], place));
  const Vec base = l.look_up(kErfTable[0], place);
  const LaneMask is_first = l.compare(place, Is::equal, l.constant(kErfRounding));
  return l.copysign(l.mul_add(sum, u, l.select(is_first, u, base)), x);
}

Vec erf_lanes(const Lanes& l, const Vec& x) {
  if (l.is_wide) return erf_by_table(l, x);
  const Vec t = l.abs(x);
  const Vec s = l.mul(x, x);
  Vec large = l.mul_add(l.splat(-1.72853470e-5F), t, l.constant(3.83197126e-4F));
  const Vec u = l.mul_add(l.splat(-3.88396438e-3F), t, l.constant(2.42546219e-2F));
  large = l.mul_add(large, s, u);
  large = l.mul_add(large, t, l.constant(-1.06777877e-1F));
  large = l.mul_add(large, t, l.constant(-6.34846687e-1F));
  large = l.mul_add(large, t, l.constant(-1.28717512e-1F));
  large = l.mul_add(large, t, l.neg(t));
  large = l.copysign(l.sub(l.splat(1.0F), exp_lanes(l, large)), x);
  large = l.select(l.compare(t, Is::greater, l.constant(4.0F)), l.copysign(l.splat(1.0F), x), large);
  Vec small = l.horner(
      s, {1.28379166e-1F, -3.76125336e-1F, 1.12819925e-1F, -2.67681349e-2F, 4.99119423e-3F, -5.96761703e-4F});
  small = l.mul_add(small, x, x);
  return keep_nan(l, x, l.select(l.compare(t, Is::greater, l.constant(0.927734375F)), large, small));
}

Vec sum_of_angles(const Lanes& l, const Vec& base, const Vec& low, const Vec& t, const Vec& part) {
  const Vec sum = l.add(base, t);
  const Vec lost = l.sub(t, l.sub(sum, base));
  return l.add(sum, l.add(lost, l.mul_add(t, part, low)));
}

Vec atan_part(const Lanes& l, const Vec& t) {
  const Vec z = l.mul(t, t);
  const Vec p =
      l.horner(z, {-3.33332986E-01F, 1.99985489E-01F, -1.42642424E-01F, 1.09521858E-01F, -8.40345100E-02F,
                   5.79576045E-02F, -3.11778560E-02F, 1.09146116E-02F, -1.79362297E-03F});
  return l.mul(z, p);
}

Vec atan_lanes(const Lanes& l, const Vec& x) {
  const Vec a = l.abs(x);
  const LaneMask is_far = l.compare(a, Is::greater, l.constant(1.0F));
  const Vec t = l.div(l.select(is_far, l.splat(-1.0F), a), l.select(is_far, a, 1.0F));
  const Vec base = l.keep(is_far, l.constant(kPi / 2));
  const Vec low = l.keep(is_far, l.constant(kPiLow / 2));
  return l.copysign(sum_of_angles(l, base, low, t, atan_part(l, t)), x);
}

Vec asin_polynomial(const Lanes& l, const Vec& z) {
  return l.horner(z, {1.66667521E-01F, 7.49529749E-02F, 4.54703756E-02F, 2.41795145E-02F, 4.21663076E-02F});
}

Vec asin_lanes(const Lanes& l, const Vec& x) {
  const Vec a = l.abs(x);
  const LaneMask is_far = l.compare(a, Is::greater, l.constant(0.5F));
  const Vec z = l.select(is_far, l.mul(l.sub(l.splat(1.0F), a), l.constant(0.5F)), l.mul(a, a));
  const Vec t = l.select(is_far, l.mul(l.sqrt(z), l.constant(-2.0F)), a);
  const Vec part = l.mul(z, asin_polynomial(l, z));
  const Vec base = l.keep(is_far, l.constant(kPi / 2));
  const Vec low = l.keep(is_far, l.constant(kPiLow / 2));
  return l.copysign(sum_of_angles(l, base, low, t, part), x);
}

Vec acos_lanes(const Lanes& l, const Vec& x) {
  const Vec a = l.abs(x);
  const LaneMask is_far = l.compare(a, Is::greater, l.constant(0.5F));
  const Vec z = l.select(is_far, l.mul(l.sub(l.splat(1.0F), a), l.constant(0.5F)), l.mul(a, a));
  const Vec t = l.select(is_far, l.copysign(l.mul(l.sqrt(z), l.constant(2.0F)), x), l.neg(x));
  const Vec part = l.mul(z, asin_polynomial(l, z));
  const LaneMask is_negative = l.compare(x, Is::less, l.constant(0.0F));
  const Vec far_base = l.keep(is_negative, l.constant(kPi));
  const Vec far_low = l.keep(is_negative, l.constant(kPiLow));
  return sum_of_angles(l, l.select(is_far, far_base, kPi / 2), l.select(is_far, far_low, kPiLow / 2), t,
                       part);
}

}  // namespace

Lanes::Vec atan2_lanes(const Lanes& l, const Vec& y, const Vec& x) {
  const Vec a = l.abs(x);
  const Vec b = l.abs(y);
  const LaneMask steep = l.compare(b, Is::greater, a);
  const Vec less = l.select(steep, a, b);
  const Vec greater = l.select(steep, b, a);
  const LaneMask is_zero = l.compare(greater, Is::equal, l.constant(0.0F));
  Vec t = l.div(less, l.select(is_zero, l.splat(1.0F), greater));
  t = l.select(l.compare(less, Is::equal, l.constant(kInfinity)), l.splat(1.0F), t);
  const Vec sign = l.bit_and(l.bit_xor(x, l.keep(steep, l.constant(-0.0F))), l.constant(-0.0F));
  t = l.bit_xor(t, sign);
  const Vec negative = l.shift_right(x, 31);
  const Vec straight = l.bit_and(negative, l.constant(kPi));
  const Vec straight_low = l.bit_and(negative, l.constant(kPiLow));
  const Vec base = l.select(steep, l.splat(kPi / 2), straight);
  const Vec low = l.select(steep, l.splat(kPiLow / 2), straight_low);
  const Vec angle = l.copysign(sum_of_angles(l, base, low, t, atan_part(l, t)), y);
  return l.select(l.is_nan(x), x, keep_nan(l, y, angle));
}

std::optional<Lanes::Vec> elementary_lanes(const Lanes& l, ScalarOp op, const Vec& x) {
  switch (op) {
    case ScalarOp::exp:
      return exp_lanes(l, x);
    case ScalarOp::exp2:
      return exp2_lanes(l, x);
    case ScalarOp::expm1:
      return expm1_lanes(l, x);
    case ScalarOp::log:
      return log_lanes(l, x);
    case ScalarOp::log2:
      return log2_lanes(l, x);
    case ScalarOp::log10:
      return log10_lanes(l, x);
    case ScalarOp::log1p:
      return log1p_lanes(l, x);
    case ScalarOp::tanh:
      return tanh_lanes(l, x);
    case ScalarOp::sigmoid:
      return sigmoid_lanes(l, x);
    case ScalarOp::erf:
      return erf_lanes(l, x);
    case ScalarOp::asin:
      return asin_lanes(l, x);
    case ScalarOp::acos:
      return acos_lanes(l, x);
    case ScalarOp::atan:
      return atan_lanes(l, x);
    default:
      return std::nullopt;
  }
}

}  // namespace caldera::cpu
