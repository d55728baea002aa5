#include "engine/device/cpu/products/half_product.h"

#include <algorithm>

#include "engine/device/cpu/host/openblas.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/products/matrix.h"
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

/// A dense f32 panel, row-major unless transposed.
struct Panel {
  const float* data = nullptr;
  bool transposed = false;
  std::int64_t leading = 1;
};

/// out[i * columns + j] = from[i * row + j * column], widened.
void widen(float* out, const HalfMatrix& from, std::int64_t rows, std::int64_t columns) {
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
Panel panel_of(HalfScratch use, const HalfMatrix& x, std::int64_t rows, std::int64_t columns,
               bool row_major) {
  const bool turned = !row_major && x.column != 1 && x.row == 1;
  float* out = half_scratch<float>(use, rows * columns);
  if (turned)
    widen(out, {x.data, x.type, x.column, x.row}, columns, rows);
  else
    widen(out, x, rows, columns);
  return {out, turned, turned ? rows : columns};
}

void multiply_blas(std::int64_t m, std::int64_t n, std::int64_t k, const Panel& a, const Panel& b,
                   float alpha, float* c, std::int64_t c_row, bool add) {
  const OpenBlas& blas = openblas();
  const auto as_int = [](std::int64_t v) { return static_cast<int>(v); };
  const auto mode = [](const Panel& p) { return p.transposed ? OpenBlas::kTrans : OpenBlas::kNoTrans; };
  if (m > 1) {
    blas.sgemm(OpenBlas::kRowMajor, mode(a), mode(b), as_int(m), as_int(n), as_int(k), alpha, a.data,
               as_int(a.leading), b.data, as_int(b.leading), add ? 1.0F : 0.0F, c, as_int(c_row));
    return;
  }
  // beta = 1 on zeros: some versions multiply what is in the output by beta = 0, NaN included.
  if (!add) std::fill_n(c, n, 0.0F);
  blas.sgemv(OpenBlas::kRowMajor, b.transposed ? OpenBlas::kNoTrans : OpenBlas::kTrans,
             as_int(b.transposed ? n : k), as_int(b.transposed ? k : n), alpha, b.data, as_int(b.leading),
             a.data, 1, 1.0F, c, 1);
}

}  // namespace

void multiply_halves(std::int64_t m, std::int64_t n, std::int64_t k, const HalfMatrix& a, const HalfMatrix& b,
                     float alpha, float* c, std::int64_t c_row, bool add) {
  // OpenBLAS does not multiply by 0 but leaves the product out, NaN and infinities included.
  // For vectors OpenBLAS may multiply an operand by alpha, whose terms may be too large or too small for it.
  const bool late_factor = alpha == 1 || (m > 1 && n > 1);
  const bool blas = openblas().available() && alpha != 0 && late_factor && m * n * k > kSmallHalfProduct;
  static const MatrixFn kProduct = find_matrix_product(DType::f32);
  const std::int64_t columns =
      std::min(n, std::max(kFewestHalfColumns, (m < kManyHalfRows ? kHalfPanel : kLargeHalfPanel) / k));
  const auto at = [](const HalfMatrix& x, std::int64_t row, std::int64_t column) {
    HalfMatrix part = x;
    part.data += (row * x.row + column * x.column) * static_cast<std::int64_t>(size_of(x.type));
    return part;
  };
  const bool one_block = m <= kRows;
  Panel rows;
  if (one_block) rows = panel_of(kPanelA, a, m, k, !blas);
  for (std::int64_t j = 0; j < n; j += columns) {
    const std::int64_t width = std::min(columns, n - j);
    const Panel right = panel_of(kPanelB, at(b, 0, j), k, width, !blas);
    for (std::int64_t i = 0; i < m; i += kRows) {
      const std::int64_t height = std::min(kRows, m - i);
      if (!one_block) rows = panel_of(kPanelA, at(a, i, 0), height, k, !blas);
      float* to = c + i * c_row + j;
      if (blas)
        multiply_blas(height, width, k, rows, right, alpha, to, c_row, add);
      else
        kProduct(height, width, k, rows.data, k, 1, right.data, width, to, c_row, &alpha, add);
    }
  }
}

}  // namespace caldera::cpu
