#include "engine/device/cpu/products/matrix.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "engine/tensor/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/products/matrix.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// What becomes of a finished sum.
template <class T>
struct Finish {
  T alpha;
  bool add;

  template <class D, class V>
  HWY_INLINE V of(D d, V sum, const T* c) const {
    return add ? hn::MulAdd(hn::Set(d, alpha), sum, hn::LoadU(d, c)) : hn::Mul(hn::Set(d, alpha), sum);
  }
  T of(T sum, const T* c) const { return add ? alpha * sum + *c : alpha * sum; }
};

/// `rows` rows and `width` vectors of columns of C, accumulators in registers.
template <int rows, int width, class D, class T>
HWY_INLINE void register_block(D d, std::int64_t k, const T* a, std::int64_t a_m, std::int64_t a_k,
                               const T* b, std::int64_t b_k, T* c, std::int64_t c_m,
                               const Finish<T>& finish) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sum[rows][width];
  for (int r = 0; r < rows; ++r)
    for (int w = 0; w < width; ++w) sum[r][w] = hn::Zero(d);
  for (std::int64_t p = 0; p < k; ++p) {
    hn::Vec<D> y[width];
    for (int w = 0; w < width; ++w) y[w] = hn::LoadU(d, b + p * b_k + w * lanes);
    for (int r = 0; r < rows; ++r) {
      const auto x = hn::Set(d, a[r * a_m + p * a_k]);
      for (int w = 0; w < width; ++w) sum[r][w] = hn::MulAdd(x, y[w], sum[r][w]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int w = 0; w < width; ++w) {
      T* to = c + r * c_m + w * lanes;
      hn::StoreU(finish.of(d, sum[r][w], to), d, to);
    }
  }
}

/// `rows` rows of C.
template <int rows, class T>
void row_block(std::int64_t n, std::int64_t k, const T* a, std::int64_t a_m, std::int64_t a_k, const T* b,
               std::int64_t b_k, T* c, std::int64_t c_m, const Finish<T>& finish) {
  constexpr int width = rows == 1 ? 4 : 2;
  const hn::ScalableTag<T> whole;
  const hn::CappedTag<T, 8> eight;  // what is left over from wide vectors
  const hn::CappedTag<T, 4> four;
  std::int64_t j = 0;
  const auto columns = [&](auto d, auto vectors) {
    const std::int64_t step = static_cast<std::int64_t>(hn::Lanes(d)) * vectors;
    for (; j + step <= n; j += step)
      register_block<rows, decltype(vectors)::value>(d, k, a, a_m, a_k, b + j, b_k, c + j, c_m, finish);
  };
  columns(whole, std::integral_constant<int, width>());
  columns(whole, std::integral_constant<int, 1>());
  columns(eight, std::integral_constant<int, 1>());
  columns(four, std::integral_constant<int, 1>());
  for (; j < n; ++j) {
    for (int r = 0; r < rows; ++r) {
      T sum = 0;
      for (std::int64_t p = 0; p < k; ++p) sum += a[r * a_m + p * a_k] * b[p * b_k + j];
      c[r * c_m + j] = finish.of(sum, c + r * c_m + j);
    }
  }
}

template <class T>
void float_product(std::int64_t m, std::int64_t n, std::int64_t k, const void* a, std::int64_t a_m,
                   std::int64_t a_k, const void* b, std::int64_t b_k, void* c, std::int64_t c_m,
                   const void* alpha, bool add) {
  const auto* x = static_cast<const T*>(a);
  const auto* y = static_cast<const T*>(b);
  auto* z = static_cast<T*>(c);
  const Finish<T> finish{alpha == nullptr ? T(1) : *static_cast<const T*>(alpha), add};
  std::int64_t i = 0;
  for (; i + 4 <= m; i += 4) row_block<4>(n, k, x + i * a_m, a_m, a_k, y, b_k, z + i * c_m, c_m, finish);
  for (; i < m; ++i) row_block<1>(n, k, x + i * a_m, a_m, a_k, y, b_k, z + i * c_m, c_m, finish);
}

/// `rows` rows and `columns` columns of C: every sum is one along the vectors of a row of A and one of B.
template <int rows, int columns>
HWY_INLINE void dots(std::int64_t k, const float* a, std::int64_t a_m, const float* b, std::int64_t b_n,
                     float* c, std::int64_t c_m) {
  std::int64_t p = 0;
  const auto along = [&](auto d, float(&total)[rows][columns]) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    if (p + lanes > k) return;
    hn::Vec<decltype(d)> sum[rows][columns];
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) sum[i][j] = hn::Zero(d);
    for (; p + lanes <= k; p += lanes) {
      hn::Vec<decltype(d)> y[columns];
      for (int j = 0; j < columns; ++j) y[j] = hn::LoadU(d, b + j * b_n + p);
      for (int i = 0; i < rows; ++i) {
        const auto x = hn::LoadU(d, a + i * a_m + p);
        for (int j = 0; j < columns; ++j) sum[i][j] = hn::MulAdd(x, y[j], sum[i][j]);
      }
    }
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) total[i][j] += hn::GetLane(hn::SumOfLanes(d, sum[i][j]));
  };
  float total[rows][columns] = {};
  along(hn::ScalableTag<float>(), total);
  along(hn::CappedTag<float, 8>(), total);
  along(hn::CappedTag<float, 4>(), total);
  for (; p < k; ++p)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) total[i][j] += a[i * a_m + p] * b[j * b_n + p];
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) c[i * c_m + j] = total[i][j];
}

void row_product(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t a_m,
                 const float* b, std::int64_t b_n, float* c, std::int64_t c_m) {
  const auto columns = [&](std::int64_t j, auto count, auto rows) {
    const float* y = b + j * b_n;
    std::int64_t i = 0;
    for (; i + rows <= m; i += rows)
      dots<decltype(rows)::value, decltype(count)::value>(k, a + i * a_m, a_m, y, b_n, c + i * c_m + j, c_m);
    for (; i < m; ++i) dots<1, decltype(count)::value>(k, a + i * a_m, a_m, y, b_n, c + i * c_m + j, c_m);
  };
  const std::integral_constant<int, 1> one;
  const std::integral_constant<int, 2> two;
  const std::integral_constant<int, 4> four;
  const std::integral_constant<int, 8> eight;
  std::int64_t j = 0;
  for (; m < 4 && j + 8 <= n; j += 8) columns(j, eight, one);
  for (; j + 2 <= n; j += 2) columns(j, two, four);
  for (; j < n; ++j) columns(j, one, four);
}

/// Integers wrap; booleans are "any of all pairs".
template <class T, bool boolean = false>
void integer_product(std::int64_t m, std::int64_t n, std::int64_t k, const void* a, std::int64_t a_m,
                     std::int64_t a_k, const void* b, std::int64_t b_k, void* c, std::int64_t c_m,
                     const void* alpha, bool add) {
  using U = std::make_unsigned_t<T>;
  const auto* x = static_cast<const U*>(a);
  const auto* y = static_cast<const U*>(b);
  auto* z = static_cast<U*>(c);
  for (std::int64_t i = 0; i < m; ++i) {
    U* row = z + i * c_m;
    if (!add) std::fill_n(row, n, U(0));
    for (std::int64_t p = 0; p < k; ++p) {
      U factor = x[i * a_m + p * a_k];
      if (alpha != nullptr) factor = static_cast<U>(factor * *static_cast<const U*>(alpha));
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
  if (is_memory_type(type)) return nullptr;  // multiplied in what they are computed in
  return dispatch<is_compute_type>(type, []<class T>() -> MatrixFn {
    if constexpr (std::is_same_v<T, bool>)
      return integer_product<std::uint8_t, true>;
    else if constexpr (std::is_integral_v<T>)
      return integer_product<T>;
    else
      return float_product<T>;
  });
}

RowProductFn row_product_of_target() { return row_product; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(matrix_product);
HWY_EXPORT(row_product_of_target);
MatrixFn find_matrix_product(DType type) { return HWY_DYNAMIC_DISPATCH(matrix_product)(type); }
RowProductFn row_product_f32() {
  static const RowProductFn kFunction = HWY_DYNAMIC_DISPATCH(row_product_of_target)();
  return kFunction;
}
}  // namespace caldera::cpu
#endif
