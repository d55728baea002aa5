#include "engine/device/cpu/convolution/convolution_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/convolution/convolution_ops.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Sums in registers: 28 of 32 with AVX-512, 12 of 16 elsewhere.
#if HWY_TARGET <= HWY_AVX3
constexpr int kRows = 14;
#else
constexpr int kRows = 6;
#endif

/// One tile of exactly R rows. `Across`: a's rows are neighbours, and `a_row` is between its columns.
template <int R, bool Across, class T>
HWY_INLINE void fixed_tile(std::int64_t k, const T* HWY_RESTRICT a, std::int64_t a_row,
                           const T* HWY_RESTRICT b, std::int64_t b_row, T* HWY_RESTRICT c, std::int64_t c_row,
                           bool add) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> left[R], right[R];
  for (int r = 0; r < R; ++r) left[r] = right[r] = hn::Zero(d);
  for (std::int64_t i = 0; i < k; ++i, b += b_row) {
    const auto b0 = hn::Load(d, b), b1 = hn::Load(d, b + lanes);
    HWY_UNROLL(14)
    for (int r = 0; r < R; ++r) {
      const auto factor = hn::Set(d, Across ? a[r + i * a_row] : a[r * a_row + i]);
      left[r] = hn::MulAdd(factor, b0, left[r]);
      right[r] = hn::MulAdd(factor, b1, right[r]);
    }
  }
  for (int r = 0; r < R; ++r, c += c_row) {
    if (add) {
      left[r] = hn::Add(left[r], hn::LoadU(d, c));
      right[r] = hn::Add(right[r], hn::LoadU(d, c + lanes));
    }
    hn::StoreU(left[r], d, c);
    hn::StoreU(right[r], d, c + lanes);
  }
}

template <int R, bool Across, class T>
void any_tile(std::int64_t rows, std::int64_t k, const T* a, std::int64_t a_row, const T* b,
              std::int64_t b_row, T* c, std::int64_t c_row, bool add) {
  if (rows == R) return fixed_tile<R, Across>(k, a, a_row, b, b_row, c, c_row, add);
  if constexpr (R > 1) any_tile<R - 1, Across>(rows, k, a, a_row, b, b_row, c, c_row, add);
}

template <bool Across, class T>
void tile(std::int64_t rows, std::int64_t k, const T* a, std::int64_t a_row, const T* b, std::int64_t b_row,
          T* c, std::int64_t c_row, bool add) {
  any_tile<kRows, Across>(rows, k, a, a_row, b, b_row, c, c_row, add);
}

/// A tile whose factors' rows are anywhere.
template <int R, class T>
void any_tile_at(std::int64_t rows, std::int64_t k, const T* HWY_RESTRICT a, std::int64_t a_row,
                 const T* HWY_RESTRICT b, const std::int64_t* HWY_RESTRICT offsets, T* HWY_RESTRICT c,
                 std::int64_t c_row) {
  if constexpr (R > 1) {
    if (rows < R) return any_tile_at<R - 1>(rows, k, a, a_row, b, offsets, c, c_row);
  }
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> left[R], right[R];
  for (int r = 0; r < R; ++r) left[r] = right[r] = hn::Zero(d);
  for (std::int64_t i = 0; i < k; ++i) {
    const T* const row = b + offsets[i];
    const auto b0 = hn::LoadU(d, row), b1 = hn::LoadU(d, row + lanes);
    HWY_UNROLL(14)
    for (int r = 0; r < R; ++r) {
      const auto factor = hn::Set(d, a[r * a_row + i]);
      left[r] = hn::MulAdd(factor, b0, left[r]);
      right[r] = hn::MulAdd(factor, b1, right[r]);
    }
  }
  for (int r = 0; r < R; ++r, c += c_row) {
    hn::StoreU(left[r], d, c);
    hn::StoreU(right[r], d, c + lanes);
  }
}

// Sums of dots in registers: 24 of 32, 8 of 16.
#if HWY_TARGET <= HWY_AVX3
constexpr int kDotRows = 6;
#else
constexpr int kDotRows = 2;
#endif

template <int R, class T>
void any_dots(std::int64_t rows, std::int64_t images, std::int64_t count, const T* HWY_RESTRICT a,
              std::int64_t a_image, std::int64_t a_row, const T* HWY_RESTRICT b, std::int64_t b_image,
              const std::int64_t* offsets, T* HWY_RESTRICT out, std::int64_t out_row) {
  if constexpr (R > 1) {
    if (rows < R)
      return any_dots<R - 1>(rows, images, count, a, a_image, a_row, b, b_image, offsets, out, out_row);
  }
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[R][4];
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < 4; ++j) sums[r][j] = hn::Zero(d);
  }
  for (std::int64_t n = 0; n < images; ++n, a += a_image, b += b_image) {
    const T *b0 = b + offsets[0], *b1 = b + offsets[1], *b2 = b + offsets[2], *b3 = b + offsets[3];
    for (std::int64_t i = 0; i < count; i += lanes) {
      const auto v0 = hn::LoadU(d, b0 + i), v1 = hn::LoadU(d, b1 + i), v2 = hn::LoadU(d, b2 + i),
                 v3 = hn::LoadU(d, b3 + i);
      HWY_UNROLL(6)
      for (int r = 0; r < R; ++r) {
        const auto factor = hn::LoadU(d, a + r * a_row + i);
        sums[r][0] = hn::MulAdd(factor, v0, sums[r][0]);
        sums[r][1] = hn::MulAdd(factor, v1, sums[r][1]);
        sums[r][2] = hn::MulAdd(factor, v2, sums[r][2]);
        sums[r][3] = hn::MulAdd(factor, v3, sums[r][3]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < 4; ++j) out[r * out_row + j] += hn::GetLane(hn::SumOfLanes(d, sums[r][j]));
  }
}

/// Blocks of 4 x 4 in registers of 128 bits, of floats.
template <class T>
void transpose(std::int64_t rows, std::int64_t columns, const T* HWY_RESTRICT from, std::int64_t from_row,
               T* HWY_RESTRICT to, std::int64_t to_row) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    const hn::CappedTag<T, 4> d;
    const hn::RepartitionToWide<decltype(d)> wide;
    for (; i + 4 <= rows; i += 4) {
      const T *p0 = from + i * from_row, *p1 = p0 + from_row, *p2 = p1 + from_row, *p3 = p2 + from_row;
      std::int64_t j = 0;
      for (; j + 4 <= columns; j += 4) {
        const auto v0 = hn::LoadU(d, p0 + j), v1 = hn::LoadU(d, p1 + j), v2 = hn::LoadU(d, p2 + j),
                   v3 = hn::LoadU(d, p3 + j);
        const auto a0 = hn::BitCast(wide, hn::InterleaveLower(d, v0, v1)),
                   a1 = hn::BitCast(wide, hn::InterleaveUpper(d, v0, v1)),
                   b0 = hn::BitCast(wide, hn::InterleaveLower(d, v2, v3)),
                   b1 = hn::BitCast(wide, hn::InterleaveUpper(d, v2, v3));
        T* q = to + j * to_row + i;
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a0, b0)), d, q);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a0, b0)), d, q + to_row);
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a1, b1)), d, q + 2 * to_row);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a1, b1)), d, q + 3 * to_row);
      }
      for (; j < columns; ++j) {
        T* const q = to + j * to_row + i;
        q[0] = p0[j];
        q[1] = p1[j];
        q[2] = p2[j];
        q[3] = p3[j];
      }
    }
  }
#endif
  for (; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) to[j * to_row + i] = from[i * from_row + j];
  }
}

template <class T>
void weighted_sum(std::int64_t count, std::int64_t k, const T* HWY_RESTRICT factors, const T* HWY_RESTRICT x,
                  const std::int64_t* HWY_RESTRICT offsets, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (std::int64_t j = 0; j < k; ++j) {
      const auto factor = hn::Set(d, factors[j]);
      const T* const from = x + offsets[j] + i;
      s0 = hn::MulAdd(factor, hn::LoadU(d, from), s0);
      s1 = hn::MulAdd(factor, hn::LoadU(d, from + lanes), s1);
      s2 = hn::MulAdd(factor, hn::LoadU(d, from + 2 * lanes), s2);
      s3 = hn::MulAdd(factor, hn::LoadU(d, from + 3 * lanes), s3);
    }
    hn::StoreU(s0, d, y + i);
    hn::StoreU(s1, d, y + i + lanes);
    hn::StoreU(s2, d, y + i + 2 * lanes);
    hn::StoreU(s3, d, y + i + 3 * lanes);
  }
  for (; i < count; i += lanes) {
    auto sum = hn::Zero(d);
    for (std::int64_t j = 0; j < k; ++j)
      sum = hn::MulAdd(hn::Set(d, factors[j]), hn::LoadU(d, x + offsets[j] + i), sum);
    hn::StoreU(sum, d, y + i);
  }
}

template <class T>
void add_scaled(std::int64_t count, T factor, const T* HWY_RESTRICT x, std::int64_t step, T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  if (step == 1) {
    const auto f = hn::Set(d, factor);
    for (; i + lanes <= count; i += lanes)
      hn::StoreU(hn::MulAdd(f, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  }
  for (; i < count; ++i) y[i] += factor * x[i * step];
}

template <class T>
T dot(std::int64_t count, const T* HWY_RESTRICT x, std::int64_t step, const T* HWY_RESTRICT y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sums = hn::Zero(d);
  std::int64_t i = 0;
  if (step == 1) {
    for (; i + lanes <= count; i += lanes) sums = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), sums);
  }
  T sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; i < count; ++i) sum += x[i * step] * y[i];
  return sum;
}

template <class T>
const ConvolutionOps<T>& ops() {
  static const ConvolutionOps<T> kAll{
      .rows = kRows,
      .columns = static_cast<std::int64_t>(2 * hn::Lanes(hn::ScalableTag<T>())),
      .tile = tile<false, T>,
      .tile_across = tile<true, T>,
      .tile_at = any_tile_at<kRows, T>,
      .dots = any_dots<kDotRows, T>,
      .dot_rows = kDotRows,
      .transpose = transpose<T>,
      .weighted_sum = weighted_sum<T>,
      .add_scaled = add_scaled<T>,
      .dot = dot<T>};
  return kAll;
}

}  // namespace

const ConvolutionOps<float>& ops_f32() { return ops<float>(); }
const ConvolutionOps<double>& ops_f64() { return ops<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {

HWY_EXPORT(ops_f32);
HWY_EXPORT(ops_f64);

template <>
const ConvolutionOps<float>& convolution_ops<float>() {
  static const ConvolutionOps<float>& all = HWY_DYNAMIC_DISPATCH(ops_f32)();
  return all;
}
template <>
const ConvolutionOps<double>& convolution_ops<double>() {
  static const ConvolutionOps<double>& all = HWY_DYNAMIC_DISPATCH(ops_f64)();
  return all;
}

}  // namespace caldera::cpu
#endif  // HWY_ONCE
