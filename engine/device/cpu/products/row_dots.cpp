#include "engine/device/cpu/products/row_dots.h"

#include <cstddef>
#include <type_traits>


#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/products/row_dots.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/widening-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// Bytes that are asked for ahead, into the L2 cache: see kAhead of quantized/decode_blocks-inl.h.
constexpr std::int64_t kBytesAhead = 1024;
constexpr std::int64_t kLine = 64;
/// Sums of one dot that do not wait for one another. All dots have as many, so that their bits are the same
/// whichever others are computed beside them.
constexpr int kChains = 4;
/// Rows of A whose dots with a row of B are in registers together.
constexpr int kTogether = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

/// Numbers of B in memory.
template <DType type>
struct Numbers {
  using Stored = std::conditional_t<type == DType::f32, float, std::uint16_t>;

  static HWY_INLINE V load(const Stored* p) {
    if constexpr (type == DType::f32)
      return hn::LoadU(D(), p);
    else if constexpr (type == DType::bf16)
      return widened_bf16(D(), p);
    else
      return widened_f16(D(), p);
  }
  static HWY_INLINE float one(Stored x) {
    if constexpr (type == DType::f32)
      return x;
    else if constexpr (type == DType::bf16)
      return to_float(BFloat16{x});
    else
      return to_float(Half{x});
  }
};

/// One row of B times kRows rows of A.
template <DType type, int kRows>
HWY_INLINE void dot_row(const RowDots& work, const float* a, const typename Numbers<type>::Stored* b,
                        float* c) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sums[kRows][kChains];
  for (int r = 0; r < kRows; ++r)
    for (int u = 0; u < kChains; ++u) sums[r][u] = hn::Zero(d);
  std::int64_t p = 0;
  for (; p + kChains * lanes <= work.k; p += kChains * lanes) {
    const auto* next = reinterpret_cast<const std::byte*>(b + p) + kBytesAhead;
    const auto bytes = kChains * lanes * static_cast<std::int64_t>(sizeof(*b));
    for (std::int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(next + at, 0, 2);
    for (int u = 0; u < kChains; ++u) {
      const V y = Numbers<type>::load(b + p + u * lanes);
      for (int r = 0; r < kRows; ++r)
        sums[r][u] = hn::MulAdd(y, hn::LoadU(d, a + r * work.a_m + p + u * lanes), sums[r][u]);
    }
  }
  for (; p + lanes <= work.k; p += lanes) {
    const V y = Numbers<type>::load(b + p);
    for (int r = 0; r < kRows; ++r)
      sums[r][0] = hn::MulAdd(y, hn::LoadU(d, a + r * work.a_m + p), sums[r][0]);
  }
  for (int r = 0; r < kRows; ++r) {
    const V all = hn::Add(hn::Add(sums[r][0], sums[r][1]), hn::Add(sums[r][2], sums[r][3]));
    float sum = hn::GetLane(hn::SumOfLanes(d, all));
    for (std::int64_t q = p; q < work.k; ++q) sum += a[r * work.a_m + q] * Numbers<type>::one(b[q]);
    float& to = c[r * work.c_m];
    to = work.add ? work.alpha * sum + to : work.alpha * sum;
  }
}

template <DType type>
void row_dots_of(const RowDots& work, std::int64_t begin, std::int64_t end) {
  const auto* b = static_cast<const typename Numbers<type>::Stored*>(work.b);
  for (std::int64_t j = begin; j < end; ++j) {
    const auto* row = b + j * work.b_n;
    std::int64_t i = 0;
    for (; i + kTogether <= work.m; i += kTogether)
      dot_row<type, kTogether>(work, work.a + i * work.a_m, row, work.c + i * work.c_m + j);
    for (; i < work.m; ++i) dot_row<type, 1>(work, work.a + i * work.a_m, row, work.c + i * work.c_m + j);
  }
}

RowDotsFn row_dots(DType type) {
  switch (type) {
    case DType::f32:
      return row_dots_of<DType::f32>;
    case DType::f16:
      return row_dots_of<DType::f16>;
    case DType::bf16:
      return row_dots_of<DType::bf16>;
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
HWY_EXPORT(row_dots);
RowDotsFn find_row_dots(DType type) { return HWY_DYNAMIC_DISPATCH(row_dots)(type); }
}  // namespace caldera::cpu
#endif
