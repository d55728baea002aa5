#include "engine/device/cpu/attention/attention_product.h"

#include <algorithm>
#include <limits>

#include "engine/device/cpu/host/openblas.h"
#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/products/matrix.h"

namespace caldera::cpu {
namespace {

/// Multiplications below which our own kernels beat the set-up of an OpenBLAS call.
constexpr std::int64_t kSmallProduct = 16 * 1024;
/// Rows of A up to which it does not pay to copy B into another order first, as OpenBLAS does.
constexpr std::int64_t kFewRows = 8;

}  // namespace

bool is_regular(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column) {
  constexpr std::int64_t limit = std::numeric_limits<int>::max();
  const bool plain = column == 1 && row >= columns && row <= limit;
  const bool transposed = row == 1 && column >= rows && column <= limit;
  return plain || transposed;
}

MatrixView copied(const MatrixView& x, std::int64_t rows, std::int64_t columns, float* to) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[r * columns + c] = x.data[r * x.row + c * x.column];
  return {to, columns, 1};
}

void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const MatrixView& a, const MatrixView& b,
              float* c, std::int64_t leading, bool add) {
  static const MatrixFn kProduct = find_matrix_product(DType::f32);
  if (m == 0 || n == 0) return;
  if (m > kFewRows && m * n * k > kSmallProduct && openblas().available()) {
    const auto as_int = [](std::int64_t v) { return static_cast<int>(v); };
    // With both strides 1, of one row or one column: only one of the two orders has room for its rows.
    const auto in_rows = [](const MatrixView& x, std::int64_t columns) {
      return x.column == 1 && x.row >= columns;
    };
    const auto trans = [](bool rows) { return rows ? OpenBlas::kNoTrans : OpenBlas::kTrans; };
    const bool a_rows = in_rows(a, k), b_rows = in_rows(b, n);
    openblas().sgemm(OpenBlas::kRowMajor, trans(a_rows), trans(b_rows), as_int(m), as_int(n), as_int(k), 1.0F,
                     a.data, as_int(a_rows ? a.row : a.column), b.data, as_int(b_rows ? b.row : b.column),
                     add ? 1.0F : 0.0F, c, as_int(leading));
    return;
  }
  if (b.column == 1)
    return kProduct(m, n, k, a.data, a.row, a.column, b.data, b.row, c, leading, nullptr, add);
  if (m <= kFewRows && a.column == 1 && !add)
    return row_product_f32()(m, n, k, a.data, a.row, b.data, b.column, c, leading);
  thread_local Scratch scratch;
  auto* dense = reinterpret_cast<float*>(scratch.get(static_cast<std::size_t>(k * n) * sizeof(float)));
  const MatrixView rows = copied(b, k, n, dense);
  kProduct(m, n, k, a.data, a.row, a.column, rows.data, rows.row, c, leading, nullptr, add);
}

}  // namespace caldera::cpu
