// Conversions between f32 and the 16-bit types, rounded to nearest even.
#include <cstdint>

#include "engine/device/cpu/simd/micro_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/simd/micro_ops_half.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// What one element becomes, without branches, so that loops of it become vectors.

HWY_INLINE std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
HWY_INLINE float float_of(std::uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

struct F16 {
  static constexpr bool kIsF16 = true;
  static HWY_INLINE float widened(std::uint16_t h) {
    const std::uint32_t magnitude = h & 0x7fffU;
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000U) << 16;
    const std::uint32_t normal = (magnitude << 13) + (magnitude >= 0x7c00U ? 0x70000000U : 0x38000000U);
    // Subnormals count in steps of 2^-24.
    const std::uint32_t small = bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
    return float_of(sign | (magnitude < 0x400U ? small : normal));
  }
  static HWY_INLINE std::uint16_t narrowed(float x) {
    const std::uint32_t bits = bits_of(x);
    const std::uint32_t sign = bits >> 16 & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    // Below 2^-14: adding 0.5 aligns the fraction to steps of 2^-24, and the sum is rounded to them.
    const std::uint32_t small = bits_of(float_of(magnitude) + 0.5F) - 0x3f000000U;
    const std::uint32_t normal = (magnitude + 0xfffU + (magnitude >> 13 & 1U) - 0x38000000U) >> 13;
    const std::uint32_t finite = magnitude < 0x38800000U ? small : normal;
    const std::uint32_t limited = magnitude >= 0x477ff000U ? 0x7c00U : finite;  // rounds past 65504
    return static_cast<std::uint16_t>(sign | (magnitude > 0x7f800000U ? 0x7e00U : limited));
  }
};

struct BF16 {
  static constexpr bool kIsF16 = false;
  static HWY_INLINE float widened(std::uint16_t b) { return float_of(static_cast<std::uint32_t>(b) << 16); }
  static HWY_INLINE std::uint16_t narrowed(float x) {
    const std::uint32_t bits = bits_of(x);
    const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
    return static_cast<std::uint16_t>(is_nan ? bits >> 16 | 0x40U : rounded);
  }
};

// x86 has instructions for f16 from AVX2 on.
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
constexpr bool kHasF16 = true;
#else
constexpr bool kHasF16 = false;
#endif

template <class H>
void widen(void* out, const void* a, const void*, const void*, std::int64_t n) {
  auto* o = static_cast<float*>(out);
  const auto* x = static_cast<const std::uint16_t*>(a);
  std::int64_t i = 0;
  if constexpr (H::kIsF16 && kHasF16) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> half;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(x + i))), d, o + i);
  }
  each(n - i, [o = o + i, x = x + i](std::int64_t k) HWY_ATTR { o[k] = H::widened(x[k]); });
}

template <class H>
void narrow(void* out, const void* a, const void*, const void*, std::int64_t n) {
  auto* o = static_cast<std::uint16_t*>(out);
  const auto* x = static_cast<const float*>(a);
  std::int64_t i = 0;
  if constexpr (H::kIsF16 && kHasF16) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> half;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::DemoteTo(half, hn::LoadU(d, x + i)), half, reinterpret_cast<hwy::float16_t*>(o + i));
  }
  each(n - i, [o = o + i, x = x + i](std::int64_t k) HWY_ATTR { o[k] = H::narrowed(x[k]); });
}

template <class H>
void round_to(void* out, const void* a, const void*, const void*, std::int64_t n) {
  auto* o = static_cast<float*>(out);
  const auto* x = static_cast<const float*>(a);
  std::int64_t i = 0;
  if constexpr (H::kIsF16 && kHasF16) {
    const hn::ScalableTag<float> d;
    const hn::Rebind<hwy::float16_t, decltype(d)> half;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; i + lanes <= n; i += lanes)
      hn::StoreU(hn::PromoteTo(d, hn::DemoteTo(half, hn::LoadU(d, x + i))), d, o + i);
  }
  each(n - i, [o = o + i, x = x + i](std::int64_t k) HWY_ATTR { o[k] = H::widened(H::narrowed(x[k])); });
}

MicroFn half_cast(DType from, DType to) {
  if (to == DType::f32) return from == DType::f16 ? widen<F16> : widen<BF16>;
  if (from == DType::f32) return to == DType::f16 ? narrow<F16> : narrow<BF16>;
  return nullptr;
}

MicroFn half_rounding(ScalarOp op) { return op == ScalarOp::round_f16 ? round_to<F16> : round_to<BF16>; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(half_cast);
HWY_EXPORT(half_rounding);

MicroFn find_half_cast(DType from, DType to) { return HWY_DYNAMIC_DISPATCH(half_cast)(from, to); }
MicroFn find_half_rounding(ScalarOp op) { return HWY_DYNAMIC_DISPATCH(half_rounding)(op); }
}  // namespace caldera::cpu
#endif
