// Products of matrices of 8 rows and columns, once for each instruction set.
#include <array>
#include <atomic>
#include <cstddef>

#include "engine/typed/fixed_tensor.h"

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

template <class T>
void product(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, T* HWY_RESTRICT out) {
  constexpr std::size_t kSide = 8;
  const hn::CappedTag<T, kSide> d;
  using Vector = hn::Vec<decltype(d)>;
  constexpr std::size_t kLanes = hn::MaxLanes(hn::CappedTag<T, kSide>());
  constexpr std::size_t kVectors = kSide / kLanes;
  for (std::size_t v = 0; v < kVectors; ++v) {
    std::array<Vector, kSide> rows;
    for (std::size_t k = 0; k < kSide; ++k) rows[k] = hn::LoadU(d, b + k * kSide + v * kLanes);
    for (std::size_t i = 0; i < kSide; ++i) {
      Vector even = hn::Mul(hn::Set(d, a[i * kSide]), rows[0]);
      Vector odd = hn::Mul(hn::Set(d, a[i * kSide + 1]), rows[1]);
      for (std::size_t k = 2; k < kSide; k += 2) {
        even = hn::MulAdd(hn::Set(d, a[i * kSide + k]), rows[k], even);
        odd = hn::MulAdd(hn::Set(d, a[i * kSide + k + 1]), rows[k + 1], odd);
      }
      hn::StoreU(hn::Add(even, odd), d, out + i * kSide + v * kLanes);
    }
  }
}

Product<float> product_f32() { return product<float>; }
Product<double> product_f64() { return product<double>; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::detail {

HWY_EXPORT(product_f32);
HWY_EXPORT(product_f64);

namespace {

// To look up the processor's function would take as long as the product: the first call does.
void first_f32(const float* a, const float* b, float* out);
void first_f64(const double* a, const double* b, double* out);
std::atomic<Product<float>> chosen_f32{first_f32};
std::atomic<Product<double>> chosen_f64{first_f64};

void first_f32(const float* a, const float* b, float* out) {
  chosen_f32.store(HWY_DYNAMIC_DISPATCH(product_f32)(), std::memory_order_relaxed);
  chosen_f32.load(std::memory_order_relaxed)(a, b, out);
}
void first_f64(const double* a, const double* b, double* out) {
  chosen_f64.store(HWY_DYNAMIC_DISPATCH(product_f64)(), std::memory_order_relaxed);
  chosen_f64.load(std::memory_order_relaxed)(a, b, out);
}

}  // namespace

void multiply_8x8(const float* a, const float* b, float* out) {
  chosen_f32.load(std::memory_order_relaxed)(a, b, out);
}
void multiply_8x8(const double* a, const double* b, double* out) {
  chosen_f64.load(std::memory_order_relaxed)(a, b, out);
}

}  // namespace caldera::detail
#endif
