#include "engine/device/cpu/matrix.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/matrix.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// `rows` rows of C, two vectors of columns at a time, accumulators in registers.
template <int rows, class T>
void row_block(std::int64_t n, std::int64_t k, const T* a, std::int64_t a_m, std::int64_t a_k, const T* b,
               std::int64_t b_k, T* c, std::int64_t c_m) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) {
    hn::Vec<decltype(d)> low[rows];
    hn::Vec<decltype(d)> high[rows];
    for (int r = 0; r < rows; ++r) low[r] = high[r] = hn::Zero(d);
    for (std::int64_t p = 0; p < k; ++p) {
      const auto b_low = hn::LoadU(d, b + p * b_k + j);
      const auto b_high = hn::LoadU(d, b + p * b_k + j + lanes);
      for (int r = 0; r < rows; ++r) {
        const auto x = hn::Set(d, a[r * a_m + p * a_k]);
        low[r] = hn::MulAdd(x, b_low, low[r]);
        high[r] = hn::MulAdd(x, b_high, high[r]);
      }
    }
    for (int r = 0; r < rows; ++r) {
      hn::StoreU(low[r], d, c + r * c_m + j);
      hn::StoreU(high[r], d, c + r * c_m + j + lanes);
    }
  }
  for (; j + lanes <= n; j += lanes) {
    hn::Vec<decltype(d)> sum[rows];
    for (int r = 0; r < rows; ++r) sum[r] = hn::Zero(d);
    for (std::int64_t p = 0; p < k; ++p) {
      const auto y = hn::LoadU(d, b + p * b_k + j);
      for (int r = 0; r < rows; ++r) sum[r] = hn::MulAdd(hn::Set(d, a[r * a_m + p * a_k]), y, sum[r]);
    }
    for (int r = 0; r < rows; ++r) hn::StoreU(sum[r], d, c + r * c_m + j);
  }
  for (; j < n; ++j) {
    for (int r = 0; r < rows; ++r) {
      T sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += a[r * a_m + p * a_k] * b[p * b_k + j];
      c[r * c_m + j] = sum;
    }
  }
}

template <class T>
void float_product(std::int64_t m, std::int64_t n, std::int64_t k, const void* a, std::int64_t a_m,
                   std::int64_t a_k, const void* b, std::int64_t b_k, void* c, std::int64_t c_m) {
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  auto* z = static_cast<T*>(c);
  std::int64_t i = 0;
  for (; i + 4 <= m; i += 4) row_block<4>(n, k, x + i * a_m, a_m, a_k, y, b_k, z + i * c_m, c_m);
  for (; i < m; ++i) row_block<1>(n, k, x + i * a_m, a_m, a_k, y, b_k, z + i * c_m, c_m);
}

/// Integers wrap; booleans are "any of all pairs".
template <class T, bool boolean = false>
void integer_product(std::int64_t m, std::int64_t n, std::int64_t k, const void* a, std::int64_t a_m,
                     std::int64_t a_k, const void* b, std::int64_t b_k, void* c, std::int64_t c_m) {
  using U = std::make_unsigned_t<T>;
  const auto* x = static_cast<const U*>(a);
  const auto* y = static_cast<const U*>(b);
  auto* z = static_cast<U*>(c);
  for (std::int64_t i = 0; i < m; ++i) {
    U* row = z + i * c_m;
    std::fill_n(row, n, U(0));
    for (std::int64_t p = 0; p < k; ++p) {
      const U factor = x[i * a_m + p * a_k];
      const U* from = y + p * b_k;
      for (std::int64_t j = 0; j < n; ++j) {
        if constexpr (boolean)
          row[j] = static_cast<U>(row[j] | (factor & from[j]));
        else
          row[j] = static_cast<U>(row[j] + factor * from[j]);
      }
    }
  }
}

MatrixFn matrix_product(DType type) {
  switch (type) {
    case DType::f32:
      return float_product<float>;
    case DType::f64:
      return float_product<double>;
    case DType::i32:
      return integer_product<std::int32_t>;
    case DType::i64:
      return integer_product<std::int64_t>;
    case DType::u8:
      return integer_product<std::uint8_t>;
    case DType::boolean:
      return integer_product<std::uint8_t, true>;
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
HWY_EXPORT(matrix_product);
MatrixFn find_matrix_product(DType type) { return HWY_DYNAMIC_DISPATCH(matrix_product)(type); }
}  // namespace caldera::cpu
#endif
