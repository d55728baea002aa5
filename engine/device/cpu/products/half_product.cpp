#include "engine/device/cpu/products/half_product.h"

#include <algorithm>

#include "engine/device/cpu/host/openblas.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/products/matrix.h"
#include "engine/device/cpu/products/shared_gemm.h"
#include "engine/device/cpu/simd/micro_ops.h"

namespace caldera::cpu {
namespace {

/// Elements of a panel of B: 1 MiB, so that it stays in the L2 cache until it is used; more where there are
/// rows enough for OpenBLAS to make blocks of its own.
constexpr std::int64_t kHalfPanel = std::int64_t{1} << 18;
constexpr std::int64_t kLargeHalfPanel = std::int64_t{1} << 21;
constexpr std::int64_t kManyHalfRows = 64;
/// Columns of the narrowest panel, and rows of A that are widened together.
constexpr std::int64_t kFewestHalfColumns = 64;
constexpr std::int64_t kRows = 256;
/// Multiplications below which our own kernel beats OpenBLAS.
constexpr std::int64_t kSmallHalfProduct = 16 * 1024;
constexpr double kNanosecondsPerElement = 0.3;  // of widening

enum HalfScratch { kPanelA, kPanelB, kLine, kHalfScratches };

template <class T>
T* half_scratch(HalfScratch use, std::int64_t elements) {
  thread_local Scratch scratch[kHalfScratches];
  return reinterpret_cast<T*>(scratch[use].get(static_cast<std::size_t>(elements) * sizeof(T)));
}

/// out[i * columns + j] = from[i * row + j * column], widened.
void widen(float* out, const FloatMatrix& from, std::int64_t rows, std::int64_t columns) {
  const MicroFn cast = find_cast(from.type, DType::f32);
  const auto size = static_cast<std::int64_t>(size_of(from.type));
  const double time = static_cast<double>(rows * columns) * kNanosecondsPerElement;
  const int threads = in_parallel() ? 1 : threads_for(time, rows);
  parallel_ranges(rows, threads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::byte* line = from.data + i * from.row * size;
      if (from.column != 1 && columns > 1) {
        auto* gathered = half_scratch<std::byte>(kLine, columns * size);
        for (std::int64_t j = 0; j < columns; ++j)
          std::copy_n(line + j * from.column * size, size, gathered + j * size);
        line = gathered;
      }
      cast(out + i * columns, line, line, line, columns);
    }
  });
}

/// rows x columns of a matrix in f32: in the order of memory where that is dense one way or the other.
BlasMatrix<float> panel_of(HalfScratch use, const FloatMatrix& x, std::int64_t rows, std::int64_t columns,
                           bool row_major) {
  const bool turned = !row_major && x.column != 1 && x.row == 1;
  float* out = half_scratch<float>(use, rows * columns);
  if (turned)
    widen(out, {x.data, x.type, x.column, x.row}, columns, rows);
  else
    widen(out, x, rows, columns);
  return {out, turned ? rows : columns, turned};
}

}  // namespace

void multiply_halves(std::int64_t m, std::int64_t n, std::int64_t k, const FloatMatrix& a,
                     const FloatMatrix& b, float alpha, float* c, std::int64_t c_row, bool add) {
  // OpenBLAS does not multiply by 0 but leaves the product out, NaN and infinities included.
  // For vectors OpenBLAS may multiply an operand by alpha, whose terms may be too large or too small for it.
  const bool late_factor = alpha == 1 || (m > 1 && n > 1);
  const bool blas = openblas().available() && alpha != 0 && late_factor && m * n * k > kSmallHalfProduct;
  static const MatrixFn kProduct = find_matrix_product(DType::f32);
  const std::int64_t columns =
      std::min(n, std::max(kFewestHalfColumns, (m < kManyHalfRows ? kHalfPanel : kLargeHalfPanel) / k));
  const auto at = [](const FloatMatrix& x, std::int64_t row, std::int64_t column) {
    FloatMatrix part = x;
    part.data += (row * x.row + column * x.column) * static_cast<std::int64_t>(size_of(x.type));
    return part;
  };
  const bool one_block = m <= kRows;
  BlasMatrix<float> rows;
  if (one_block) rows = panel_of(kPanelA, a, m, k, !blas);
  for (std::int64_t j = 0; j < n; j += columns) {
    const std::int64_t width = std::min(columns, n - j);
    const BlasMatrix<float> right = panel_of(kPanelB, at(b, 0, j), k, width, !blas);
    for (std::int64_t i = 0; i < m; i += kRows) {
      const std::int64_t height = std::min(kRows, m - i);
      if (!one_block) rows = panel_of(kPanelA, at(a, i, 0), height, k, !blas);
      float* to = c + i * c_row + j;
      if (blas && m > 1)
        shared_gemm<float>(height, width, k, alpha, rows, right, add, to, c_row);
      else if (blas)
        shared_gemv<float>(width, k, alpha, {right.data, right.leading, !right.transposed}, rows.data, 1, add,
                           to, 1);
      else
        kProduct(height, width, k, rows.data, k, 1, right.data, width, to, c_row, &alpha, add);
    }
  }
}

}  // namespace caldera::cpu
