// Reductions over tiles: horizontal (a run of elements to one), columns (rows added into a row).
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/device/cpu/simd/micro_ops.h"
#include "engine/tensor/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/simd/reduce_ops.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/loops-inl.h"
#include "engine/device/cpu/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Integers wrap, so they are added in the unsigned type; floats as they are.
template <class T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
}
template <class T>
T wrapping_product(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a * b;
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) * static_cast<std::make_unsigned_t<T>>(b));
}

struct Sum {
  template <class T>
  static T of(T a, T b) {
    return wrapping_sum(a, b);
  }
  template <class T>
  static constexpr T identity = T(0);
  template <class V>
  static HWY_INLINE V simd(V a, V b) {
    return hn::Add(a, b);
  }
};
struct Product {
  template <class T>
  static T of(T a, T b) {
    return wrapping_product(a, b);
  }
  template <class T>
  static constexpr T identity = T(1);
  template <class V>
  static HWY_INLINE V simd(V a, V b) {
    return hn::Mul(a, b);
  }
};
template <class T>
inline constexpr T kLowest = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                                         : std::numeric_limits<T>::lowest();
template <class T>
inline constexpr T kHighest = std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity()
                                                          : std::numeric_limits<T>::max();
struct Maximum {
  template <class T>
  static T of(T a, T b) {
    return ((a > b) | (a != a)) ? a : b;
  }
  template <class T>
  static constexpr T identity = kLowest<T>;
  template <class V>
  static HWY_INLINE V simd(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  }
};
struct Minimum {
  template <class T>
  static T of(T a, T b) {
    return ((a < b) | (a != a)) ? a : b;
  }
  template <class T>
  static constexpr T identity = kHighest<T>;
  template <class V>
  static HWY_INLINE V simd(V a, V b) {
    return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
  }
};

/// The minimum of booleans: of none it is 1.
struct All : Minimum {
  template <class T>
  static constexpr T identity = T(1);
};

template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

/// Four vectors of partial results, then a tree over vectors and lanes: the same order at every call with the
/// same n.
template <class C, class T>
T combine_run(const T* p, std::int64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    constexpr T kIdentity = C::template identity<T>;
    auto s0 = hn::Set(d, kIdentity);
    if (n >= 4 * lanes) {
      auto s1 = s0;
      auto s2 = s0;
      auto s3 = s0;
      for (; n >= 4 * lanes; n -= 4 * lanes, p += 4 * lanes) {
        s0 = C::simd(s0, hn::LoadU(d, p));
        s1 = C::simd(s1, hn::LoadU(d, p + lanes));
        s2 = C::simd(s2, hn::LoadU(d, p + 2 * lanes));
        s3 = C::simd(s3, hn::LoadU(d, p + 3 * lanes));
      }
      s0 = C::simd(C::simd(s0, s1), C::simd(s2, s3));
    }
    for (; n >= lanes; n -= lanes, p += lanes) s0 = C::simd(s0, hn::LoadU(d, p));
    if (n > 0) s0 = C::simd(s0, load_rest(d, p, n, kIdentity));
    return combine_lanes<C>(d, s0);
  } else {
    T result = C::template identity<T>;
    std::int64_t i = 0;
    constexpr std::int64_t kLanes = 64;
    if (n >= kLanes) {
      T lane[kLanes];
      std::fill_n(lane, kLanes, C::template identity<T>);
      for (; i + kLanes <= n; i += kLanes)
        for (std::int64_t j = 0; j < kLanes; ++j) lane[j] = C::of(lane[j], p[i + j]);
      for (T x : lane) result = C::of(result, x);
    }
    for (const T* rest = p + i; rest != p + n; ++rest) result = C::of(result, *rest);
    return result;
  }
}

/// Stretch by stretch; the stretches' results are combined in the wide type.
template <class C, class T>
HWY_INLINE Wide<T> combine_wide(Wide<T> wide, const T* p, std::int64_t n) {
  for (; n > kStretch; n -= kStretch, p += kStretch)
    wide = C::of(wide, static_cast<Wide<T>>(combine_run<C, T>(p, kStretch)));
  return C::of(wide, static_cast<Wide<T>>(combine_run<C, T>(p, n)));
}

template <class C, class T>
void horizontal(void* wide, const void* p, std::int64_t n) {
  auto* w = static_cast<Wide<T>*>(wide);
  *w = combine_wide<C, T>(*w, static_cast<const T*>(p), n);
}

template <class C, class T>
void rows(void* out, const void* p, std::int64_t count, std::int64_t n) {
  auto* o = static_cast<T*>(out);
  const auto* row = static_cast<const T*>(p);
  // The identity of the narrow type, widened: an empty maximum of i32 is the lowest i32.
  for (std::int64_t r = 0; r < count; ++r, row += n)
    o[r] = static_cast<T>(combine_wide<C, T>(static_cast<Wide<T>>(C::template identity<T>), row, n));
}

template <class C, class T>
void columns(void* acc, const void* data, std::int64_t count, std::int64_t width) {
  auto* a = static_cast<T*>(acc);
  const auto* p = static_cast<const T*>(data);
  static_assert(kGroupOfRows == 4);
  for (; width <= kNarrowRow && count >= 4; count -= 4, p += 4 * width) {
    const T* q = p + 2 * width;
    each(width, [=](std::int64_t j) HWY_ATTR {
      a[j] = C::of(a[j], C::of(C::of(p[j], p[j + width]), C::of(q[j], q[j + width])));
    });
  }
  for (; count > 0; --count, p += width)
    each(width, [=](std::int64_t j) HWY_ATTR { a[j] = C::of(a[j], p[j]); });
}

template <class C, class T>
void fold(void* wide, void* acc, std::int64_t n) {
  auto* w = static_cast<Wide<T>*>(wide);
  auto* a = static_cast<T*>(acc);
  each(n, [=](std::int64_t j) HWY_ATTR {
    w[j] = C::of(w[j], static_cast<Wide<T>>(a[j]));
    a[j] = C::template identity<T>;
  });
}

template <class C, class T>
void merge(void* wide, const void* other, std::int64_t n) {
  auto* w = static_cast<Wide<T>*>(wide);
  const auto* o = static_cast<const Wide<T>*>(other);
  each(n, [=](std::int64_t j) HWY_ATTR { w[j] = C::of(w[j], o[j]); });
}

template <class C, class T>
void fill_identity(void* acc, std::int64_t n) {
  std::fill_n(static_cast<T*>(acc), n, C::template identity<T>);
}

// The identity of the narrow type, widened: an empty maximum of i32 is the lowest i32.
template <class C, class T>
void fill_wide_identity(void* wide, std::int64_t n) {
  std::fill_n(static_cast<Wide<T>*>(wide), n, static_cast<Wide<T>>(C::template identity<T>));
}

template <class T>
void finish(void* out, const void* wide, std::int64_t n) {
  auto* o = static_cast<T*>(out);
  const auto* w = static_cast<const Wide<T>*>(wide);
  each(n, [=](std::int64_t j) HWY_ATTR { o[j] = static_cast<T>(w[j]); });
}

template <class C, class T>
inline constexpr ReduceOps kOps{horizontal<C, T>,    rows<C, T>,  columns<C, T>,
                                fold<C, T>,          merge<C, T>, fill_wide_identity<C, T>,
                                fill_identity<C, T>, finish<T>};

template <class T>
const ReduceOps* typed(Combine combine) {
  switch (combine) {
    case Combine::sum:
      return &kOps<Sum, T>;
    case Combine::product:
      return &kOps<Product, T>;
    case Combine::maximum:
      return &kOps<Maximum, T>;
    case Combine::minimum:
      return &kOps<Minimum, T>;
  }
  return nullptr;
}

const ReduceOps* reduce_ops(Combine combine, DType type) {
  if (is_memory_type(type)) return nullptr;  // combined in what they are computed in
  if (type == DType::boolean) {
    // Bytes 0 and 1: sum is "any", product "all".
    switch (combine) {
      case Combine::sum:
      case Combine::maximum:
        return &kOps<Maximum, std::uint8_t>;
      case Combine::product:
      case Combine::minimum:
        return &kOps<All, std::uint8_t>;
    }
    return nullptr;
  }
  return dispatch<is_compute_number>(type, [&]<class T>() { return typed<T>(combine); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(reduce_ops);
const ReduceOps* find_reduce(Combine combine, DType type) {
  return HWY_DYNAMIC_DISPATCH(reduce_ops)(combine, type);
}
}  // namespace caldera::cpu
#endif
