// Reductions over tiles: horizontal (a run of elements to one), columns (rows added into a row).
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/device/cpu/micro_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/reduce_ops.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

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

template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

/// Four vectors of partial results, then a tree over vectors and lanes: the same order at every call with the
/// same n.
template <class C, class T>
T combine_run(const T* p, std::int64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    const hn::ScalableTag<T> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    T result = C::template identity<T>;
    std::int64_t i = 0;
    if (n >= lanes) {
      auto s0 = hn::Set(d, C::template identity<T>);
      auto s1 = s0;
      auto s2 = s0;
      auto s3 = s0;
      for (; i + 4 * lanes <= n; i += 4 * lanes) {
        s0 = C::simd(s0, hn::LoadU(d, p + i));
        s1 = C::simd(s1, hn::LoadU(d, p + i + lanes));
        s2 = C::simd(s2, hn::LoadU(d, p + i + 2 * lanes));
        s3 = C::simd(s3, hn::LoadU(d, p + i + 3 * lanes));
      }
      for (; i + lanes <= n; i += lanes) s0 = C::simd(s0, hn::LoadU(d, p + i));
      HWY_ALIGN T lane[hn::MaxLanes(hn::ScalableTag<T>())];
      hn::Store(C::simd(C::simd(s0, s1), C::simd(s2, s3)), d, lane);
      for (std::int64_t half = lanes / 2; half > 0; half /= 2)
        for (std::int64_t j = 0; j < half; ++j) lane[j] = C::of(lane[j], lane[j + half]);
      result = lane[0];
    }
    for (; i < n; ++i) result = C::of(result, p[i]);
    return result;
  } else {
    T result = C::template identity<T>;
    for (std::int64_t i = 0; i < n; ++i) result = C::of(result, p[i]);
    return result;
  }
}

template <class C, class T>
void horizontal(void* wide, const void* p, std::int64_t n) {
  auto* w = static_cast<Wide<T>*>(wide);
  *w = C::of(*w, static_cast<Wide<T>>(combine_run<C, T>(static_cast<const T*>(p), n)));
}

template <class C, class T>
void columns(void* acc, const void* rows, std::int64_t count, std::int64_t width) {
  auto* __restrict a = static_cast<T*>(acc);
  const auto* p = static_cast<const T*>(rows);
  for (std::int64_t r = 0; r < count; ++r, p += width)
    for (std::int64_t j = 0; j < width; ++j) a[j] = C::of(a[j], p[j]);
}

template <class C, class T>
void fold(void* wide, void* acc, std::int64_t n) {
  auto* __restrict w = static_cast<Wide<T>*>(wide);
  auto* __restrict a = static_cast<T*>(acc);
  for (std::int64_t j = 0; j < n; ++j) {
    w[j] = C::of(w[j], static_cast<Wide<T>>(a[j]));
    a[j] = C::template identity<T>;
  }
}

template <class C, class T>
void merge(void* wide, const void* other, std::int64_t n) {
  auto* __restrict w = static_cast<Wide<T>*>(wide);
  const auto* __restrict o = static_cast<const Wide<T>*>(other);
  for (std::int64_t j = 0; j < n; ++j) w[j] = C::of(w[j], o[j]);
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
  auto* __restrict o = static_cast<T*>(out);
  const auto* __restrict w = static_cast<const Wide<T>*>(wide);
  for (std::int64_t j = 0; j < n; ++j) o[j] = static_cast<T>(w[j]);
}

template <class C, class T>
inline constexpr ReduceOps kOps{horizontal<C, T>,         columns<C, T>,       fold<C, T>, merge<C, T>,
                                fill_wide_identity<C, T>, fill_identity<C, T>, finish<T>};

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
  switch (type) {
    case DType::boolean: {
      // Bytes 0 and 1: sum is "any", product "all".
      const bool any = combine == Combine::sum || combine == Combine::maximum;
      static constexpr ReduceOps kAny = {horizontal<Maximum, std::uint8_t>,
                                         columns<Maximum, std::uint8_t>,
                                         fold<Maximum, std::uint8_t>,
                                         merge<Maximum, std::uint8_t>,
                                         fill_wide_identity<Maximum, std::uint8_t>,
                                         fill_identity<Maximum, std::uint8_t>,
                                         finish<std::uint8_t>};
      static constexpr ReduceOps kAll = {horizontal<Minimum, std::uint8_t>,
                                         columns<Minimum, std::uint8_t>,
                                         fold<Minimum, std::uint8_t>,
                                         merge<Minimum, std::uint8_t>,
                                         fill_wide_identity<Product, std::uint8_t>,
                                         fill_identity<Product, std::uint8_t>,
                                         finish<std::uint8_t>};
      return any ? &kAny : &kAll;
    }
    case DType::u8:
      return typed<std::uint8_t>(combine);
    case DType::i32:
      return typed<std::int32_t>(combine);
    case DType::i64:
      return typed<std::int64_t>(combine);
    case DType::f32:
      return typed<float>(combine);
    case DType::f64:
      return typed<double>(combine);
    default:
      return nullptr;
  }
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
