// Elementary functions of f32 vectors, within about 1 to 2 ulp over the whole range, special values included.
// Included once for every instruction set, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE.
//
// Polynomials for expm1, log, sin, cos and tanh: Cephes mathematical library, single precision (S. L.
// Moshier, netlib.org/cephes). erf: N. Juffa's two-piece minimax approximation (0.995 ulp with an exact exp),
// published on stackoverflow.com, question 35148198; with AVX-512 by erf_table.h. tan, asin and atan: minimax
// polynomials of the function over its argument, by Remez' algorithm, with relative errors of 2^-29.6,
// 2^-27.6 and 2^-28.5.
//
// Machine code (machine_code/lane_math.cpp) computes them in the same order, to the same bits: products and
// sums are one instruction where it says MulAdd, and nowhere else.
#if defined(CALDERA_MATH_F32_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_MATH_F32_INL
#undef CALDERA_MATH_F32_INL
#else
#define CALDERA_MATH_F32_INL
#endif

#include <cmath>
#include <limits>

#include "engine/device/cpu/simd/erf_table.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::RebindToSigned<F32>;
using VF = hn::Vec<F32>;
using VI = hn::Vec<I32>;

HWY_INLINE VF splat(float x) { return hn::Set(F32(), x); }

/// c0 + x (c1 + x (c2 + ...)), coefficients lowest first.
HWY_INLINE VF horner(VF, float c0) { return splat(c0); }
template <class... Rest>
HWY_INLINE VF horner(VF x, float c0, Rest... rest) {
  return hn::MulAdd(horner(x, rest...), x, splat(c0));
}

/// 2^n for integral n in [-126, 127].
HWY_INLINE VF power_of_two(VI n) {
  return hn::BitCast(F32(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(I32(), 127))));
}

/// Added to a number below 2^22 in magnitude and taken off again leaves the nearest integer.
inline constexpr float kToInteger = 0x1.8p23F;

/// x = n ln 2 + r with |r| <= ln 2 / 2, for |x| < 2^21.
HWY_INLINE VF reduce_by_ln2(VF x, VF& n) {
  n = hn::Sub(hn::MulAdd(x, splat(1.44269504088896341F), splat(kToInteger)), splat(kToInteger));
  return hn::NegMulAdd(n, splat(-2.12194440e-4F), hn::NegMulAdd(n, splat(0.693359375F), x));
}

/// exp(r) for |r| <= ln 2 / 2: least squares with weights towards the smallest relative error, which is
/// 2^-28.2 with terms of f32.
HWY_INLINE VF exp_of_rest(VF r) {
  return horner(r, 1.0F, 1.0F, 4.99999940E-1F, 1.66665211E-1F, 4.16682661E-2F, 8.36867746E-3F,
                1.38207490E-3F);
}

/// exp(r) - 1 for |r| <= ln 2 / 2.
HWY_INLINE VF expm1_of_rest(VF r) {
  const VF p = horner(r, 5.0000001201E-1F, 1.6666665459E-1F, 4.1665795894E-2F, 8.3334519073E-3F,
                      1.3981999507E-3F, 1.9875691500E-4F);
  return hn::MulAdd(p, hn::Mul(r, r), r);
}

HWY_INLINE VF keep_nan(VF x, VF y) { return hn::IfThenElse(hn::IsNaN(x), x, y); }

/// The exponents of a vector, between limits beyond which exponentials are 0 or infinity. Intel's processors
/// take some 50 times as long for a vector where a result underflows, as with the scores that a mask hides:
/// of lanes below `low` nothing is computed.
class Exponents {
 public:
  HWY_INLINE Exponents(VF x, float low, float high) : x_(x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    live_ = _mm512_cmp_ps_mask(x.raw, splat(low).raw, _CMP_NLT_UQ);
    // The minimum of AVX-512 gives the second operand where one is NaN.
    bounded_ = VF{_mm512_maskz_min_ps(live_, splat(high).raw, x.raw)};
#else
    vanishing_ = hn::Lt(x, splat(low));
    bounded_ = hn::IfThenZeroElse(vanishing_, hn::Min(x, splat(high)));
#endif
  }
  HWY_INLINE VF bounded() const { return bounded_; }

  /// exp(r) 2^n for |r| <= ln 2 / 2 and integral n in [-160, 160], which are made of bounded(): subnormal and
  /// infinite results included, 0 below the lower limit, NaN where the exponent is.
  HWY_INLINE VF exp(VF r, VF n) const {
    const VF e = exp_of_rest(r);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    return VF{_mm512_maskz_scalef_ps(live_, e.raw, n.raw)};  // with the right underflow and overflow
#else
    // 2^n is the product of two normal powers.
    const VI power = hn::ConvertTo(I32(), n);
    const VI half = hn::ShiftRight<1>(power);
    const VF scaled = hn::Mul(hn::Mul(e, power_of_two(half)), power_of_two(hn::Sub(power, half)));
    return keep_nan(x_, hn::IfThenZeroElse(vanishing_, scaled));
#endif
  }

 private:
  VF x_, bounded_;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  __mmask16 live_;
#else
  hn::Mask<F32> vanishing_;
#endif
};

HWY_INLINE VF exp_f32(VF x) {
  const Exponents exponents(x, -104.0F, 89.0F);
  VF n;
  const VF r = reduce_by_ln2(exponents.bounded(), n);
  return exponents.exp(r, n);
}

HWY_INLINE VF exp2_f32(VF x) {
  const Exponents exponents(x, -151.0F, 129.0F);
  const VF n = hn::Round(exponents.bounded());
  return exponents.exp(hn::Mul(hn::Sub(exponents.bounded(), n), splat(0.693147180559945309F)), n);
}

HWY_INLINE VF expm1_f32(VF x) {
  const VF bounded = hn::Min(hn::Max(x, splat(-20.0F)), splat(89.0F));
  VF n;
  const VF r = reduce_by_ln2(bounded, n);
  const VF p = expm1_of_rest(r);
  // 2 (2^(n-1) p + (2^(n-1) - 1/2)): 2^n alone would overflow before the result does.
  const VF scale = power_of_two(hn::Sub(hn::ConvertTo(I32(), n), hn::Set(I32(), 1)));
  const VF sum = hn::MulAdd(scale, p, hn::Sub(scale, splat(0.5F)));
  const auto as_is = hn::Or(hn::IsNaN(x), hn::Eq(x, splat(0.0F)));  // keeps the sign of -0
  return hn::IfThenElse(as_is, x, hn::Add(sum, sum));
}

/// x = 2^e (1 + m) with 1 + m in [sqrt(1/2), sqrt(2)), and log(1 + m) = m + y, for positive finite x.
struct LogParts {
  VF e, m, y;
};
HWY_INLINE LogParts log_parts(VF x) {
  const auto tiny = hn::Lt(x, splat(std::numeric_limits<float>::min()));
  const VF normal = hn::IfThenElse(tiny, hn::Mul(x, splat(0x1p23F)), x);
  const VI root_half = hn::Set(I32(), 0x3f3504f3);
  const VI shifted = hn::Sub(hn::BitCast(I32(), normal), root_half);
  const VI exponent = hn::ShiftRight<23>(shifted);
  const VI mantissa = hn::Sub(hn::BitCast(I32(), normal), hn::ShiftLeft<23>(exponent));
  LogParts parts;
  parts.e = hn::Sub(hn::ConvertTo(F32(), exponent), hn::IfThenElseZero(tiny, splat(23.0F)));
  parts.m = hn::Sub(hn::BitCast(F32(), mantissa), splat(1.0F));
  const VF m = parts.m;
  const VF z = hn::Mul(m, m);
  const VF p =
      horner(m, 3.3333331174E-1F, -2.4999993993E-1F, 2.0000714765E-1F, -1.6668057665E-1F, 1.4249322787E-1F,
             -1.2420140846E-1F, 1.1676998740E-1F, -1.1514610310E-1F, 7.0376836292E-2F);
  parts.y = hn::NegMulAdd(splat(0.5F), z, hn::Mul(hn::Mul(p, m), z));
  return parts;
}

/// The result of a logarithm, and its limits.
HWY_INLINE VF with_log_limits(VF x, VF result) {
  const VF infinity = splat(std::numeric_limits<float>::infinity());
  result = hn::IfThenElse(hn::Eq(x, infinity), x, result);
  result = hn::IfThenElse(hn::Eq(x, splat(0.0F)), hn::Neg(infinity), result);
  result = hn::IfThenElse(hn::Lt(x, splat(0.0F)), splat(std::numeric_limits<float>::quiet_NaN()), result);
  return keep_nan(x, result);
}

HWY_INLINE VF log_f32(VF x) {
  const LogParts p = log_parts(x);
  const VF y = hn::MulAdd(p.e, splat(-2.12194440e-4F), p.y);
  return with_log_limits(x, hn::MulAdd(p.e, splat(0.693359375F), hn::Add(p.m, y)));
}

HWY_INLINE VF log2_f32(VF x) {
  const LogParts p = log_parts(x);
  // (m + y) log2(e), the 1 of whose 1.44 is added apart.
  const VF above = splat(0.44269504088896340736F);
  const VF low = hn::MulAdd(p.m, above, hn::MulAdd(p.y, above, p.y));
  return with_log_limits(x, hn::Add(hn::Add(low, p.m), p.e));
}

HWY_INLINE VF log10_f32(VF x) {
  const LogParts p = log_parts(x);
  // log10(e) and log10(2), each as a short number, whose products are exact, and a rest.
  VF low = hn::Mul(hn::Add(p.m, p.y), splat(7.00731903251827651129E-4F));
  low = hn::MulAdd(p.e, splat(2.48745663981195213739E-4F), low);
  low = hn::MulAdd(p.y, splat(4.3359375E-1F), low);
  low = hn::MulAdd(p.m, splat(4.3359375E-1F), low);
  return with_log_limits(x, hn::MulAdd(p.e, splat(3.0078125E-1F), low));
}

HWY_INLINE VF log1p_f32(VF x) {
  // log of the rounded 1 + x, corrected for what the rounding lost.
  const VF u = hn::Add(splat(1.0F), x);
  const VF lost = hn::Div(hn::Sub(x, hn::Sub(u, splat(1.0F))), u);
  const VF y = log_f32(u);
  const auto exact = hn::Or(hn::Eq(u, splat(0.0F)), hn::Eq(u, splat(std::numeric_limits<float>::infinity())));
  const VF corrected = hn::IfThenElse(exact, y, hn::Add(y, lost));
  return hn::IfThenElse(hn::Eq(u, splat(1.0F)), x, corrected);
}

HWY_INLINE VF tanh_f32(VF x) {
  const VF a = hn::Abs(x);
  const VF z = hn::Mul(x, x);
  const VF p = horner(z, -3.33332819422E-1F, 1.33314422036E-1F, -5.37397155531E-2F, 2.06390887954E-2F,
                      -5.70498872745E-3F);
  const VF small = hn::MulAdd(hn::Mul(p, z), x, x);
  const VF e = exp_f32(hn::Add(a, a));
  const VF large = hn::Sub(splat(1.0F), hn::Div(splat(2.0F), hn::Add(e, splat(1.0F))));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, splat(0.625F)), small, large), x);  // of -0 too
}

HWY_INLINE VF sigmoid_f32(VF x) {
  const VF e = exp_f32(hn::Neg(hn::Abs(x)));  // never overflows
  const VF numerator = hn::IfThenElse(hn::Lt(x, splat(0.0F)), e, splat(1.0F));
  return hn::Div(numerator, hn::Add(splat(1.0F), e));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
HWY_INLINE VF erf_f32(VF x) {
  // The minimum of AVX-512 gives the second operand where one is NaN.
  const VF t = VF{_mm512_min_ps(_mm512_set1_ps(kErfLimit), hn::Abs(x).raw)};
  const VF place = hn::Add(t, splat(kErfRounding));
  const VF u = hn::Sub(t, hn::Sub(place, splat(kErfRounding)));
  const auto looked_up = [&](const float(&table)[kErfIntervals]) {
    return VF{_mm512_permutex2var_ps(_mm512_load_ps(table), _mm512_castps_si512(place.raw),
                                     _mm512_load_ps(table + kErfIntervals / 2))};
  };
  VF sum = looked_up(kErfTable[kErfTerms - 1]);
  for (int term = kErfTerms - 1; --term > 0;) sum = hn::MulAdd(sum, u, looked_up(kErfTable[term]));
  const VF base = hn::IfThenElse(hn::Eq(place, splat(kErfRounding)), u, looked_up(kErfTable[0]));
  return hn::CopySign(hn::MulAdd(sum, u, base), x);
}
#else
HWY_INLINE VF erf_f32(VF x) {
  const VF t = hn::Abs(x);
  const VF s = hn::Mul(x, x);
  VF large = hn::MulAdd(splat(-1.72853470e-5F), t, splat(3.83197126e-4F));
  const VF u = hn::MulAdd(splat(-3.88396438e-3F), t, splat(2.42546219e-2F));
  large = hn::MulAdd(large, s, u);
  large = hn::MulAdd(large, t, splat(-1.06777877e-1F));
  large = hn::MulAdd(large, t, splat(-6.34846687e-1F));
  large = hn::MulAdd(large, t, splat(-1.28717512e-1F));
  large = hn::MulAdd(large, t, hn::Neg(t));
  large = hn::CopySign(hn::Sub(splat(1.0F), exp_f32(large)), x);
  // Above 4 the result is 1 in f32, and the polynomial has left its range.
  large = hn::IfThenElse(hn::Gt(t, splat(4.0F)), hn::CopySign(splat(1.0F), x), large);
  VF small = horner(s, 1.28379166e-1F, -3.76125336e-1F, 1.12819925e-1F, -2.67681349e-2F, 4.99119423e-3F,
                    -5.96761703e-4F);
  small = hn::MulAdd(small, x, x);
  return keep_nan(x, hn::IfThenElse(hn::Gt(t, splat(0.927734375F)), large, small));
}
#endif

inline constexpr float kTrigLimit = 0x1p24F;

#if HWY_TARGET == HWY_SCALAR  // no halves to widen
template <int phase>
HWY_INLINE VF sin_phase_f32(VF x) {
  return splat(phase == 0 ? std::sin(hn::GetLane(x)) : std::cos(hn::GetLane(x)));
}
#else
/// x - n pi/2 for one half of the vector, in f64: exact enough for every |x| below kTrigLimit.
template <class DH, class VH>
HWY_INLINE auto reduce_by_half_pi(DH, VH x, hn::Vec<hn::RebindToSigned<DH> >& quadrant) {
  const hn::Rebind<double, DH> d64;
  const auto wide = hn::PromoteTo(d64, x);
  const auto n = hn::Round(hn::Mul(wide, hn::Set(d64, 0.63661977236758134308)));
#if HWY_NATIVE_FMA
  auto r = hn::NegMulAdd(n, hn::Set(d64, 1.5707963267948965580), wide);
  r = hn::NegMulAdd(n, hn::Set(d64, 6.123233995736766036e-17), r);
#else  // the first two of three parts have 27 bits, so that their products with n are exact
  auto r = hn::Sub(wide, hn::Mul(n, hn::Set(d64, 0x1.921fb54p+0)));
  r = hn::Sub(r, hn::Mul(n, hn::Set(d64, 0x1.10b4610p-30)));
  r = hn::Sub(r, hn::Mul(n, hn::Set(d64, 0x1.a62633145c06ep-58)));
#endif
  quadrant = hn::DemoteTo(hn::RebindToSigned<DH>(), n);
  return r;
}

/// x - n pi/2 for |x| below kTrigLimit, and n modulo 2^32.
HWY_INLINE VF reduced_angle(VF x, VI& quadrant, VF* lost = nullptr) {
  const hn::Half<F32> dh;
  const hn::Half<I32> dih;
  hn::Vec<decltype(dih)> q_low;
  hn::Vec<decltype(dih)> q_high;
  const auto wide_low = reduce_by_half_pi(dh, hn::LowerHalf(dh, x), q_low);
  const auto wide_high = reduce_by_half_pi(dh, hn::UpperHalf(dh, x), q_high);
  const auto low = hn::DemoteTo(dh, wide_low);
  const auto high = hn::DemoteTo(dh, wide_high);
  quadrant = hn::Combine(I32(), q_high, q_low);
  if (lost != nullptr) {  // in the rounding to f32
    const hn::Rebind<double, decltype(dh)> d64;
    *lost = hn::Combine(F32(), hn::DemoteTo(dh, hn::Sub(wide_high, hn::PromoteTo(d64, high))),
                        hn::DemoteTo(dh, hn::Sub(wide_low, hn::PromoteTo(d64, low))));
  }
  return hn::Combine(F32(), high, low);
}
HWY_INLINE bool has_far_angle(VF x) { return !hn::AllFalse(F32(), hn::Ge(hn::Abs(x), splat(kTrigLimit))); }

/// f of every lane by itself.
template <class F>
HWY_INLINE VF by_lanes(VF x, F f) {
  const F32 d;
  HWY_ALIGN float lanes[hn::MaxLanes(F32())];
  hn::Store(x, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = f(lanes[i]);
  return hn::Load(d, lanes);
}

/// sin(x + phase pi/2).
template <int phase>
HWY_INLINE VF sin_phase_f32(VF x) {
  if (HWY_UNLIKELY(has_far_angle(x)))
    return by_lanes(x, [](float lane) { return phase == 0 ? std::sin(lane) : std::cos(lane); });
  VI n;
  const VF r = reduced_angle(x, n);
  const VI quadrant = hn::Add(n, hn::Set(I32(), phase));
  const VF z = hn::Mul(r, r);
  const VF sine =
      hn::MulAdd(hn::Mul(horner(z, -1.6666654611E-1F, 8.3321608736E-3F, -1.9515295891E-4F), z), r, r);
  const VF cosine =
      hn::MulAdd(horner(z, 4.166664568298827e-2F, -1.388731625493765e-3F, 2.443315711809948e-5F),
                 hn::Mul(z, z), hn::NegMulAdd(splat(0.5F), z, splat(1.0F)));
  const VI one = hn::Set(I32(), 1);
  const auto odd = hn::RebindMask(F32(), hn::Eq(hn::And(quadrant, one), one));
  const VF value = hn::IfThenElse(odd, cosine, sine);
  const VI sign = hn::ShiftLeft<30>(hn::And(quadrant, hn::Set(I32(), 2)));
  const VF flipped = hn::BitCast(F32(), hn::Xor(hn::BitCast(I32(), value), sign));
  const VF signed_zero = phase == 0 ? hn::IfThenElse(hn::Eq(x, splat(0.0F)), x, flipped) : flipped;
  return keep_nan(x, signed_zero);
}
#endif

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE VF tan_f32(VF x) { return splat(std::tan(hn::GetLane(x))); }
#else
HWY_INLINE VF tan_f32(VF x) {
  if (HWY_UNLIKELY(has_far_angle(x))) return by_lanes(x, [](float lane) { return std::tan(lane); });
  VI quadrant;
  VF lost;
  const VF r = reduced_angle(x, quadrant, &lost);
  const VF z = hn::Mul(r, r);
  // tan(r) / r - 1.
  const VF part = hn::Mul(horner(z, 3.33333492E-01F, 1.33326635E-01F, 5.40599786E-02F, 2.12818626E-02F,
                                 1.08366720E-02F, 8.84276160E-05F, 4.37683100E-03F),
                          z);
  // The slope is 1 + tan^2.
  const VF near = hn::MulAdd(part, r, r);
  const VF t = hn::Add(r, hn::MulAdd(part, r, hn::MulAdd(hn::Mul(near, near), lost, lost)));
  // It is -1 / t in an odd quadrant.
  const VI one = hn::Set(I32(), 1);
  const auto odd = hn::RebindMask(F32(), hn::Eq(hn::And(quadrant, one), one));
  const VF value = hn::Div(hn::IfThenElse(odd, splat(-1.0F), t), hn::IfThenElse(odd, t, splat(1.0F)));
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Eq(x, splat(0.0F))), x, value);
}
#endif

inline constexpr float kPi = 3.14159274F, kPiLow = -8.74227766e-8F;  // the nearest float, and what it lacks

/// base + low + t + t part, where |base| >= |t| or base is 0, and part is small.
HWY_INLINE VF sum_of_angles(VF base, VF low, VF t, VF part) {
  const VF sum = hn::Add(base, t);
  const VF lost = hn::Sub(t, hn::Sub(sum, base));
  return hn::Add(sum, hn::Add(lost, hn::MulAdd(t, part, low)));
}

/// atan(t) / t - 1 for |t| <= 1.
HWY_INLINE VF atan_part(VF t) {
  const VF z = hn::Mul(t, t);
  return hn::Mul(
      z, horner(z, -3.33332986E-01F, 1.99985489E-01F, -1.42642424E-01F, 1.09521858E-01F, -8.40345100E-02F,
                5.79576045E-02F, -3.11778560E-02F, 1.09146116E-02F, -1.79362297E-03F));
}

HWY_INLINE VF atan_f32(VF x) {
  const VF a = hn::Abs(x);
  const auto is_far = hn::Gt(a, splat(1.0F));  // pi/2 - atan(1/a)
  const VF t = hn::Div(hn::IfThenElse(is_far, splat(-1.0F), a), hn::IfThenElse(is_far, a, splat(1.0F)));
  const VF base = hn::IfThenElseZero(is_far, splat(kPi / 2));
  return hn::CopySign(sum_of_angles(base, hn::IfThenElseZero(is_far, splat(kPiLow / 2)), t, atan_part(t)), x);
}

HWY_INLINE VF atan2_f32(VF y, VF x) {
  const VF a = hn::Abs(x);
  const VF b = hn::Abs(y);
  const auto steep = hn::Gt(b, a);
  const VF less = hn::IfThenElse(steep, a, b);
  const VF greater = hn::IfThenElse(steep, b, a);
  // The ratio of two zeros is 0, of two infinities 1.
  VF t = hn::Div(less, hn::IfThenElse(hn::Eq(greater, splat(0.0F)), splat(1.0F), greater));
  t = hn::IfThenElse(hn::Eq(less, splat(std::numeric_limits<float>::infinity())), splat(1.0F), t);
  // Away from the axis where x is negative or |y| > |x|, towards it where both are.
  const VF sign = hn::And(splat(-0.0F), hn::Xor(x, hn::IfThenElseZero(steep, splat(-0.0F))));
  t = hn::Xor(t, sign);
  const VF straight = hn::And(splat(kPi), hn::BitCast(F32(), hn::ShiftRight<31>(hn::BitCast(I32(), x))));
  const VF straight_low =
      hn::And(splat(kPiLow), hn::BitCast(F32(), hn::ShiftRight<31>(hn::BitCast(I32(), x))));
  const VF base = hn::IfThenElse(steep, splat(kPi / 2), straight);
  const VF low = hn::IfThenElse(steep, splat(kPiLow / 2), straight_low);
  const VF angle = hn::CopySign(sum_of_angles(base, low, t, atan_part(t)), y);
  return hn::IfThenElse(hn::IsNaN(x), x, keep_nan(y, angle));
}

/// asin(s) - s where z = s^2 <= 1/4, over s z.
HWY_INLINE VF asin_polynomial(VF z) {
  return horner(z, 1.66667521E-01F, 7.49529749E-02F, 4.54703756E-02F, 2.41795145E-02F, 4.21663076E-02F);
}

HWY_INLINE VF asin_f32(VF x) {
  const VF a = hn::Abs(x);
  const auto is_far = hn::Gt(a, splat(0.5F));  // pi/2 - 2 asin(sqrt((1 - a) / 2))
  const VF z = hn::IfThenElse(is_far, hn::Mul(hn::Sub(splat(1.0F), a), splat(0.5F)), hn::Mul(a, a));
  const VF t = hn::IfThenElse(is_far, hn::Mul(hn::Sqrt(z), splat(-2.0F)), a);
  const VF part = hn::Mul(z, asin_polynomial(z));
  const VF base = hn::IfThenElseZero(is_far, splat(kPi / 2));
  return hn::CopySign(sum_of_angles(base, hn::IfThenElseZero(is_far, splat(kPiLow / 2)), t, part), x);
}

HWY_INLINE VF acos_f32(VF x) {
  const VF a = hn::Abs(x);
  const auto is_far = hn::Gt(a, splat(0.5F));  // 2 asin(sqrt((1 - a) / 2)), or pi minus that
  const VF z = hn::IfThenElse(is_far, hn::Mul(hn::Sub(splat(1.0F), a), splat(0.5F)), hn::Mul(a, a));
  const VF t = hn::IfThenElse(is_far, hn::CopySign(hn::Mul(hn::Sqrt(z), splat(2.0F)), x), hn::Neg(x));
  const VF part = hn::Mul(z, asin_polynomial(z));
  const auto is_negative = hn::Lt(x, splat(0.0F));
  const VF far_base = hn::IfThenElseZero(is_negative, splat(kPi));
  const VF far_low = hn::IfThenElseZero(is_negative, splat(kPiLow));
  return sum_of_angles(hn::IfThenElse(is_far, far_base, splat(kPi / 2)),
                       hn::IfThenElse(is_far, far_low, splat(kPiLow / 2)), t, part);
}

HWY_INLINE VF sin_f32(VF x) { return sin_phase_f32<0>(x); }
HWY_INLINE VF cos_f32(VF x) { return sin_phase_f32<1>(x); }

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#endif
