#include "engine/device/cpu/products/row_dots.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "engine/device/cpu/host/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/products/row_dots.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/lane_sums-inl.h"
#include "engine/device/cpu/simd/widening-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// Bytes that are asked for ahead, into the L2 cache: two pages, so that the next page's address is looked up
/// before its first line is needed. With 1,024 a token of 1.2B in f16 took 1.1 times as long.
constexpr std::int64_t kBytesAhead = 8192;
constexpr std::int64_t kLine = 64;
/// Sums of one dot that do not wait for one another. All dots have as many, so that their bits are the same
/// whichever others are computed beside them.
constexpr int kChains = 4;
/// Rows of A whose dots with a row of B are in registers together.
constexpr int kTogether = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

/// Rows of B whose sums of lanes are made together.
constexpr int kRowsOfB = 4;

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

/// Vectors of one row of B times kRows rows of A; the sums of their lanes, and what is behind the last whole
/// vector, make the dots.
template <DType type, int kRows>
HWY_INLINE void dot_row(const RowDots& work, const float* a, const typename Numbers<type>::Stored* b,
                        V (&totals)[kRows]) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sums[kRows][kChains];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int u = 0; u < kChains; ++u) sums[r][u] = hn::Zero(d);
  std::int64_t p = 0;
  for (; p + kChains * lanes <= work.k; p += kChains * lanes) {
    const auto* next = reinterpret_cast<const std::byte*>(b + p) + kBytesAhead;
    const auto bytes = kChains * lanes * static_cast<std::int64_t>(sizeof(*b));
#pragma GCC unroll 4
    for (std::int64_t at = 0; at < bytes; at += kLine) __builtin_prefetch(next + at, 0, 2);
#pragma GCC unroll 4
    for (int u = 0; u < kChains; ++u) {
      const V y = Numbers<type>::load(b + p + u * lanes);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
        sums[r][u] = hn::MulAdd(y, hn::LoadU(d, a + r * work.a_m + p + u * lanes), sums[r][u]);
    }
  }
  for (; p + lanes <= work.k; p += lanes) {
    const V y = Numbers<type>::load(b + p);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
      sums[r][0] = hn::MulAdd(y, hn::LoadU(d, a + r * work.a_m + p), sums[r][0]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r)
    totals[r] = hn::Add(hn::Add(sums[r][0], sums[r][1]), hn::Add(sums[r][2], sums[r][3]));
}

/// Up to four rows of B, one after the other in memory's order, times kRows rows of A.
template <DType type, int kRows>
HWY_INLINE void dot_rows(const RowDots& work, std::int64_t i, std::int64_t j, std::int64_t count) {
  const D d;
  const auto whole =
      work.k / static_cast<std::int64_t>(hn::Lanes(d)) * static_cast<std::int64_t>(hn::Lanes(d));
  const float* a = work.a + i * work.a_m;
  const auto* b = static_cast<const typename Numbers<type>::Stored*>(work.b) + j * work.b_n;
  V totals[kRows][kRowsOfB];
  for (int t = 0; t < kRowsOfB; ++t) {
    if (t >= count) {
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) totals[r][t] = hn::Zero(d);
      continue;
    }
    V of_row[kRows];
    dot_row<type, kRows>(work, a, b + t * work.b_n, of_row);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) totals[r][t] = of_row[r];
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    float sums[kRowsOfB];
    store_sums(d, totals[r], sums);
    float* c = work.c + (i + r) * work.c_m + j;
    for (std::int64_t t = 0; t < count; ++t) {
      float sum = sums[t];
      for (std::int64_t q = whole; q < work.k; ++q)
        sum += a[r * work.a_m + q] * Numbers<type>::one(b[t * work.b_n + q]);
      c[t] = work.add ? work.alpha * sum + c[t] : work.alpha * sum;
    }
  }
}

/// Sums of columns that are kept in the nearest cache, of all rows of A.
constexpr std::int64_t kSums = 4096;
/// Terms that are added to a sum while it is in a register.
constexpr std::int64_t kTermsTogether = 8;

/// Adds terms p to p + kTerms - 1 to the sums of `width` columns from j on, of which each row of A has
/// `apart`.
template <DType type, std::int64_t kTerms>
HWY_INLINE void add_terms(const RowDots& work, std::int64_t p, std::int64_t j, std::int64_t width,
                          std::int64_t apart, float* sums) {
  using Stored = typename Numbers<type>::Stored;
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Stored* b = static_cast<const Stored*>(work.b) + p * work.b_k + j;
  const std::int64_t whole = width / lanes * lanes;
  HWY_ALIGN Stored rest[kTerms][hn::MaxLanes(D())] = {};
  for (std::int64_t t = 0; t < kTerms; ++t) std::copy_n(b + t * work.b_k + whole, width - whole, rest[t]);
  for (std::int64_t i = 0; i < work.m; ++i) {
    const float* a = work.a + i * work.a_m + p;
    float* to = sums + i * apart;
    V factors[kTerms];
#pragma GCC unroll 8
    for (std::int64_t t = 0; t < kTerms; ++t) factors[t] = hn::Set(d, a[t]);
    for (std::int64_t c = 0; c < whole; c += lanes) {
      V sum = hn::Load(d, to + c);
#pragma GCC unroll 8
      for (std::int64_t t = 0; t < kTerms; ++t)
        sum = hn::MulAdd(Numbers<type>::load(b + t * work.b_k + c), factors[t], sum);
      hn::Store(sum, d, to + c);
    }
    if (whole == width) continue;
    V sum = hn::Load(d, to + whole);
#pragma GCC unroll 8
    for (std::int64_t t = 0; t < kTerms; ++t) sum = hn::MulAdd(Numbers<type>::load(rest[t]), factors[t], sum);
    hn::Store(sum, d, to + whole);
  }
}

/// Where rows of B lie along n: some of them at a time, in memory's order, are added to the sums of all
/// columns.
template <DType type>
void row_sums_of(const RowDots& work, std::int64_t begin, std::int64_t end) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  HWY_ALIGN float sums[kSums];
  const std::int64_t apart = kSums / work.m / lanes * lanes;
  for (std::int64_t j = begin; j < end; j += apart) {
    const std::int64_t width = std::min(apart, end - j);
    std::fill_n(sums, work.m * apart, 0.0F);
    std::int64_t p = 0;
    for (; p + kTermsTogether <= work.k; p += kTermsTogether)
      add_terms<type, kTermsTogether>(work, p, j, width, apart, sums);
    for (; p < work.k; ++p) add_terms<type, 1>(work, p, j, width, apart, sums);
    for (std::int64_t i = 0; i < work.m; ++i) {
      float* c = work.c + i * work.c_m + j;
      for (std::int64_t n = 0; n < width; ++n) {
        const float product = work.alpha * sums[i * apart + n];
        c[n] = work.add ? product + c[n] : product;
      }
    }
  }
}

template <DType type>
void row_dots_of(const RowDots& work, std::int64_t begin, std::int64_t end) {
  if (work.b_k != 1) return row_sums_of<type>(work, begin, end);
  for (std::int64_t j = begin; j < end; j += kRowsOfB) {
    const std::int64_t count = std::min<std::int64_t>(kRowsOfB, end - j);
    std::int64_t i = 0;
    for (; i + kTogether <= work.m; i += kTogether) dot_rows<type, kTogether>(work, i, j, count);
    for (; i < work.m; ++i) dot_rows<type, 1>(work, i, j, count);
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
namespace {

/// A byte of a matrix that is read once, from the caches or from memory; and columns that a thread computes
/// at least, so that two do not write to one line.
constexpr double kNanosecondsOfByte = 0.05;
constexpr std::int64_t kColumnsOfThread = 16;

}  // namespace

RowDotsFn find_row_dots(DType type) { return HWY_DYNAMIC_DISPATCH(row_dots)(type); }

void run_row_dots(DType type, const RowDots& dots) {
  const RowDotsFn function = find_row_dots(type);
  const double bytes = static_cast<double>(dots.n * dots.k) * static_cast<double>(size_of(type));
  const int threads = in_parallel() ? 1 : threads_for(bytes * kNanosecondsOfByte, dots.n / kColumnsOfThread);
  parallel_ranges(dots.n, threads, [&](std::int64_t begin, std::int64_t end) { function(dots, begin, end); });
}
}  // namespace caldera::cpu
#endif
