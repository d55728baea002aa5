// Quotients rounded down and what they leave, of floating numbers: one at a time, and as vectors. Included
// once for every instruction set, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE, after
// <hwy/highway.h>.
#if defined(CALDERA_QUOTIENTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_QUOTIENTS_INL
#undef CALDERA_QUOTIENTS_INL
#else
#define CALDERA_QUOTIENTS_INL
#endif

#include <cmath>
#include <cstddef>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// floor(x / y), exact.
struct FloorQuotient {
  template <class T>
  static T of(T x, T y) {
    if (y == T(0) || std::isinf(x)) return std::floor(x / y);
    // The quotient may round up to an integer that it does not reach: take it from the exact remainder.
    const T rest = std::fmod(x, y);
    T quotient = (x - rest) / y;
    if (rest != T(0) && (rest < T(0)) != (y < T(0))) quotient -= T(1);
    return quotient == T(0) ? std::copysign(T(0), x / y) : std::round(quotient);
  }
  /// Computes the same of vectors, from the quotient rounded towards 0 and its rest.
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, V y, V quotient, V rest) {
    const V below = hn::IfNegativeThenElse(hn::Xor(rest, y), hn::Sub(quotient, hn::Set(d, 1)), quotient);
    const V whole = hn::IfThenElse(hn::Eq(rest, hn::Zero(d)), quotient, below);
    return hn::IfThenElse(hn::Eq(whole, hn::Zero(d)), hn::CopySign(hn::Zero(d), hn::Xor(x, y)), whole);
  }
};

/// x - y floor(x / y), rounded once: the sign of y.
struct FloorRest {
  template <class T>
  static T of(T x, T y) {
    const T rest = std::fmod(x, y);
    if (rest == T(0)) return std::copysign(rest, y);
    return (rest < T(0)) != (y < T(0)) ? rest + y : rest;
  }
  template <class D, class V>
  static HWY_INLINE V of(D d, V, V y, V, V rest) {
    const V sum = hn::IfNegativeThenElse(hn::Xor(rest, y), hn::Add(rest, y), rest);
    return hn::IfThenElse(hn::Eq(rest, hn::Zero(d)), hn::CopySign(hn::Zero(d), y), sum);
  }
};

/// F of vectors: where every quotient is short, without the C library's long division.
template <class F>
struct ByQuotient {
  template <class D, class V>
  static HWY_INLINE V of(D d, V x, V y) {
    using T = hn::TFromD<D>;
#if HWY_NATIVE_FMA
    // Below this the rounded x / y is at most one above the whole quotient, the product with y is subtracted
    // exactly, and of(x, y) gives the same bits.
    constexpr T kShort = T(std::int64_t{1} << (std::numeric_limits<T>::digits - 3));
    V quotient = hn::Trunc(hn::Div(x, y));
    if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(quotient), hn::Set(d, kShort))))) {
      // 0 times an infinite y is no number.
      V rest = hn::IfThenElse(hn::Eq(quotient, hn::Zero(d)), x, hn::NegMulAdd(quotient, y, x));
      // One too much: the rest has come to the other side of 0.
      const auto above = hn::And(hn::Ne(rest, hn::Zero(d)),
                                 hn::Lt(hn::CopySign(hn::Set(d, 1), hn::Xor(rest, x)), hn::Zero(d)));
      rest = hn::IfThenElse(above, hn::Add(rest, hn::CopySign(y, x)), rest);
      quotient = hn::IfThenElse(above, hn::Sub(quotient, hn::CopySign(hn::Set(d, 1), quotient)), quotient);
      return F::of(d, x, y, quotient, rest);
    }
#endif
    HWY_ALIGN T left[hn::MaxLanes(D())];
    HWY_ALIGN T right[hn::MaxLanes(D())];
    hn::Store(x, d, left);
    hn::Store(y, d, right);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) left[i] = F::of(left[i], right[i]);
    return hn::Load(d, left);
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#endif
