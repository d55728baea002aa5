// Sums of the lanes of four vectors at once. Included once for every instruction set.
#if defined(CALDERA_LANE_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_LANE_SUMS_INL
#undef CALDERA_LANE_SUMS_INL
#else
#define CALDERA_LANE_SUMS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {

/// Stores to[i] = the lanes of the i-th vector, added up.
#if HWY_TARGET == HWY_SCALAR
template <class D, class V>
HWY_INLINE void store_sums(D, const V (&sums)[4], float* to) {
  for (int i = 0; i < 4; ++i) to[i] = hwy::HWY_NAMESPACE::GetLane(sums[i]);
}
#else
/// Adds the upper half of the lanes to the lower one, until four are left.
template <class D, class V>
HWY_INLINE auto folded(D d, V v) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return folded(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
template <class D, class V>
HWY_INLINE void store_sums(D d, const V (&sums)[4], float* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Repartition<std::uint64_t, D> pairs;
  const auto of_two = [&](V a, V b) HWY_ATTR {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto first = of_two(sums[0], sums[1]), second = of_two(sums[2], sums[3]);
  const auto low = hn::InterleaveLower(pairs, first, second);
  const auto high = hn::InterleaveUpper(pairs, first, second);
  hn::StoreU(folded(d, hn::Add(hn::BitCast(d, low), hn::BitCast(d, high))), hn::CappedTag<float, 4>(), to);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();
#endif  // CALDERA_LANE_SUMS_INL
