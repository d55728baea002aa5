#include "engine/device/cpu/products/shared_gemm.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "engine/device/cpu/host/openblas.h"
#include "engine/device/cpu/host/parallel.h"

namespace caldera::cpu {
namespace {

/// Columns that a part has a multiple of, as kGemmRows of rows: the kernels take 12, 16, 24 or 48.
constexpr std::int64_t kPartColumns = 48;
/// Few columns, or terms of a sum: OpenBLAS's kernels for small products, which pack nothing, are up to 1.7
/// times as fast. It takes them up to so many multiplications (a million, in its SkylakeX code).
constexpr std::int64_t kSkinny = 32, kSmallMultiplications = 1'000'000, kFewestRows = 48;
/// A multiplication of two matrices, and an element of a matrix that meets a vector.
constexpr double kGemmNanoseconds = 0.01, kGemvNanoseconds = 0.2;

int blas_int(std::int64_t value) { return static_cast<int>(value); }

std::int64_t rows_of_call(std::int64_t m, std::int64_t n, std::int64_t k) {
  if (std::min(n, k) > kSkinny) return m;
  const std::int64_t rows = kSmallMultiplications / std::max<std::int64_t>(n * k, 1) / kGemmRows * kGemmRows;
  return rows >= kFewestRows ? rows : m;
}

/// Calls body(first, count) for parts of [0, size) that are whole multiples of `unit` but for the last one,
/// with OpenBLAS on the calling thread alone.
template <class Body>
void in_parts(std::int64_t size, std::int64_t unit, double nanoseconds, const Body& body) {
  const std::int64_t units = (size + unit - 1) / unit;
  const int threads = in_parallel() ? 1 : threads_for(nanoseconds, units);
  std::optional<BlasThreads> alone;
  if (!in_parallel()) alone.emplace(1);
  parallel_ranges(units, threads, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * unit;
    if (const std::int64_t count = std::min(end * unit, size) - first; count > 0) body(first, count);
  });
}

}  // namespace

template <class T>
void shared_gemm(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const BlasMatrix<T>& a,
                 const BlasMatrix<T>& b, bool add, T* c, std::int64_t c_row) {
  const auto block = [&](std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns) {
    const BlasMatrix<T> left = a.from(i, 0), right = b.from(0, j);
    const auto mode = [](const BlasMatrix<T>& x) {
      return x.transposed ? OpenBlas::kTrans : OpenBlas::kNoTrans;
    };
    const auto call = [&](OpenBlas::Gemm<T> gemm) {
      gemm(OpenBlas::kRowMajor, mode(left), mode(right), blas_int(rows), blas_int(columns), blas_int(k),
           alpha, left.data, blas_int(left.leading), right.data, blas_int(right.leading), add ? T(1) : T(0),
           c + i * c_row + j, blas_int(c_row));
    };
    if constexpr (std::is_same_v<T, float>)
      call(openblas().sgemm);
    else
      call(openblas().dgemm);
  };
  const std::int64_t height = rows_of_call(m, n, k);
  const auto part = [&](std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t columns) {
    for (std::int64_t r = i; r < i + rows; r += height) block(r, std::min(height, i + rows - r), j, columns);
  };
  const double nanoseconds =
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * kGemmNanoseconds;
  if (m >= cpu_threads() * kGemmRowsOfThread)
    in_parts(m, kGemmRows, nanoseconds, [&](std::int64_t i, std::int64_t rows) { part(i, rows, 0, n); });
  else
    in_parts(n, kPartColumns, nanoseconds,
             [&](std::int64_t j, std::int64_t columns) { part(0, m, j, columns); });
}

template <class T>
void shared_gemv(std::int64_t rows, std::int64_t k, T alpha, const BlasMatrix<T>& a, const T* x,
                 std::int64_t x_stride, bool add, T* y, std::int64_t y_stride) {
  const double nanoseconds = static_cast<double>(rows) * static_cast<double>(k) * kGemvNanoseconds;
  in_parts(rows, kPartColumns, nanoseconds, [&](std::int64_t i, std::int64_t count) {
    const BlasMatrix<T> part = a.from(i, 0);
    // beta = 1 on zeros: some versions multiply what is in the output by beta = 0, NaN included.
    for (std::int64_t r = 0; r < count && !add; ++r) y[(i + r) * y_stride] = T(0);
    const auto call = [&](OpenBlas::Gemv<T> gemv) {
      gemv(OpenBlas::kRowMajor, part.transposed ? OpenBlas::kTrans : OpenBlas::kNoTrans,
           blas_int(part.transposed ? k : count), blas_int(part.transposed ? count : k), alpha, part.data,
           blas_int(part.leading), x, blas_int(x_stride), T(1), y + i * y_stride, blas_int(y_stride));
    };
    if constexpr (std::is_same_v<T, float>)
      call(openblas().sgemv);
    else
      call(openblas().dgemv);
  });
}

template void shared_gemm(std::int64_t, std::int64_t, std::int64_t, float, const BlasMatrix<float>&,
                          const BlasMatrix<float>&, bool, float*, std::int64_t);
template void shared_gemm(std::int64_t, std::int64_t, std::int64_t, double, const BlasMatrix<double>&,
                          const BlasMatrix<double>&, bool, double*, std::int64_t);
template void shared_gemv(std::int64_t, std::int64_t, float, const BlasMatrix<float>&, const float*,
                          std::int64_t, bool, float*, std::int64_t);
template void shared_gemv(std::int64_t, std::int64_t, double, const BlasMatrix<double>&, const double*,
                          std::int64_t, bool, double*, std::int64_t);

}  // namespace caldera::cpu
