// Parts of vectors. Included once for every instruction set, between HWY_BEFORE_NAMESPACE and
// HWY_AFTER_NAMESPACE, after <hwy/highway.h>.
#if defined(CALDERA_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_VECTORS_INL
#undef CALDERA_VECTORS_INL
#else
#define CALDERA_VECTORS_INL
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The n < lanes elements at p; `fill` in the other lanes.
template <class D, class T = hn::TFromD<D> >
HWY_INLINE hn::Vec<D> load_rest(D d, const T* p, std::int64_t n, T fill = T(0)) {
#if HWY_TARGET <= HWY_AVX2
  const auto mask = hn::FirstN(d, static_cast<std::size_t>(n));
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, p), hn::Set(d, fill));
#else
  HWY_ALIGN T rest[hn::MaxLanes(D())];
  hn::Store(hn::Set(d, fill), d, rest);
  std::memcpy(rest, p, static_cast<std::size_t>(n) * sizeof(T));
  return hn::Load(d, rest);
#endif
}

/// The first n < lanes elements of v, to p.
template <class D, class V, class T = hn::TFromD<D> >
HWY_INLINE void store_rest(D d, V v, T* p, std::int64_t n) {
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
#else
  HWY_ALIGN T rest[hn::MaxLanes(D())];
  hn::Store(v, d, rest);
  std::memcpy(p, rest, static_cast<std::size_t>(n) * sizeof(T));
#endif
}

/// All lanes combined, the upper half with the lower, and so on.
template <class C, class D, class V>
HWY_INLINE hn::TFromD<D> combine_lanes([[maybe_unused]] D d, V v) {
  using T = hn::TFromD<D>;
#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE
  HWY_ALIGN T lane[hn::MaxLanes(D())];
  hn::Store(v, d, lane);
  for (std::size_t half = hn::Lanes(d) / 2; half > 0; half /= 2)
    for (std::size_t j = 0; j < half; ++j) lane[j] = C::of(lane[j], lane[j + half]);
  return lane[0];
#else
  if constexpr (hn::MaxLanes(D()) * sizeof(T) > 16) {
    const hn::Half<D> half;
    return combine_lanes<C>(half, C::simd(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  } else if constexpr (sizeof(T) == 4) {
    const auto pairs = C::simd(v, hn::Shuffle1032(v));
    return hn::GetLane(C::simd(pairs, hn::Shuffle2301(pairs)));
  } else {
    return hn::GetLane(C::simd(v, hn::Shuffle01(v)));
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#endif
