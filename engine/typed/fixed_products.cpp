// Products of matrices of 4 or 8 rows and columns, once for each instruction set.
#include <atomic>
#include <cstddef>

#include "engine/typed/fixed_lanes.h"

#ifndef CALDERA_FIXED_PRODUCTS
#define CALDERA_FIXED_PRODUCTS
namespace caldera::detail {
template <class T>
using Product = void (*)(const T*, const T*, T*);
}  // namespace caldera::detail
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/typed/fixed_products.cpp"
// Vectors whose length the compiler does not know cannot be elements.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace caldera::detail {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Four rows at a time, each a sum of its own: their additions do not wait for each other.
template <class T, std::size_t kSide>
void product(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, T* HWY_RESTRICT out) {
  const hn::CappedTag<T, kSide> d;
  constexpr std::size_t kLanes = hn::MaxLanes(hn::CappedTag<T, kSide>());
  for (std::size_t v = 0; v < kSide; v += kLanes) {
    for (std::size_t i = 0; i < kSide; i += 4) {
      const T *a0 = a + i * kSide, *a1 = a0 + kSide, *a2 = a1 + kSide, *a3 = a2 + kSide;
      const auto first = hn::LoadU(d, b + v);
      auto s0 = hn::Mul(hn::Set(d, a0[0]), first), s1 = hn::Mul(hn::Set(d, a1[0]), first),
           s2 = hn::Mul(hn::Set(d, a2[0]), first), s3 = hn::Mul(hn::Set(d, a3[0]), first);
      CALDERA_UNROLLED
      for (std::size_t k = 1; k < kSide; ++k) {
        const auto row = hn::LoadU(d, b + k * kSide + v);
        s0 = hn::MulAdd(hn::Set(d, a0[k]), row, s0);
        s1 = hn::MulAdd(hn::Set(d, a1[k]), row, s1);
        s2 = hn::MulAdd(hn::Set(d, a2[k]), row, s2);
        s3 = hn::MulAdd(hn::Set(d, a3[k]), row, s3);
      }
      T* const to = out + i * kSide + v;
      hn::StoreU(s0, d, to);
      hn::StoreU(s1, d, to + kSide);
      hn::StoreU(s2, d, to + 2 * kSide);
      hn::StoreU(s3, d, to + 3 * kSide);
    }
  }
}

#if HWY_TARGET == HWY_SCALAR
Product<float> product_4_f32() { return product<float, 4>; }
#else
/// As many rows of four as a vector holds: one shuffle fills each with an element of its own.
template <std::size_t kLanes>
void product_of_rows(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, float* HWY_RESTRICT out) {
  const hn::CappedTag<float, kLanes> d;
  const auto b0 = hn::LoadDup128(d, b), b1 = hn::LoadDup128(d, b + 4), b2 = hn::LoadDup128(d, b + 8),
             b3 = hn::LoadDup128(d, b + 12);
  for (std::size_t i = 0; i < 16; i += kLanes) {
    // Read and written row by row: the operations around this one do so, and a vector of two rows may lie
    // across two lines of the cache.
    const hn::CappedTag<float, 4> row;
    const auto rows = [&] {
      if constexpr (kLanes == 8)
        return hn::Combine(d, hn::LoadU(row, a + i + 4), hn::LoadU(row, a + i));
      else
        return hn::LoadU(d, a + i);
    }();
    const auto even = hn::MulAdd(hn::Broadcast<1>(rows), b1, hn::Mul(hn::Broadcast<0>(rows), b0)),
               odd = hn::MulAdd(hn::Broadcast<3>(rows), b3, hn::Mul(hn::Broadcast<2>(rows), b2)),
               sums = hn::Add(even, odd);
    if constexpr (kLanes == 8) {
      hn::StoreU(hn::LowerHalf(row, sums), row, out + i);
      hn::StoreU(hn::UpperHalf(row, sums), row, out + i + 4);
    } else {
      hn::StoreU(sums, d, out + i);
    }
  }
}

Product<float> product_4_f32() { return product_of_rows<hn::MaxLanes(hn::CappedTag<float, 8>())>; }
#endif

Product<double> product_4_f64() { return product<double, 4>; }
Product<float> product_8_f32() { return product<float, 8>; }
Product<double> product_8_f64() { return product<double, 8>; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::detail {

HWY_EXPORT(product_4_f32);
HWY_EXPORT(product_4_f64);
HWY_EXPORT(product_8_f32);
HWY_EXPORT(product_8_f64);

// To look up the processor's function would take as long as the product: the first call does.
// NOLINTBEGIN(bugprone-macro-parentheses): a type
#define CALDERA_FIXED_PRODUCT(side, type, suffix)                                     \
  namespace {                                                                         \
  void first_##side##_##suffix(const type* a, const type* b, type* out);              \
  std::atomic<Product<type>> chosen_##side##_##suffix{first_##side##_##suffix};       \
  void first_##side##_##suffix(const type* a, const type* b, type* out) {             \
    chosen_##side##_##suffix.store(HWY_DYNAMIC_DISPATCH(product_##side##_##suffix)(), \
                                   std::memory_order_relaxed);                        \
    chosen_##side##_##suffix.load(std::memory_order_relaxed)(a, b, out);              \
  }                                                                                   \
  }                                                                                   \
  void multiply_##side##x##side(const type* a, const type* b, type* out) {            \
    chosen_##side##_##suffix.load(std::memory_order_relaxed)(a, b, out);              \
  }
CALDERA_FIXED_PRODUCT(4, float, f32)
CALDERA_FIXED_PRODUCT(4, double, f64)
CALDERA_FIXED_PRODUCT(8, float, f32)
CALDERA_FIXED_PRODUCT(8, double, f64)
#undef CALDERA_FIXED_PRODUCT
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace caldera::detail
#endif
