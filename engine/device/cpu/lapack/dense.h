// Dense matrices in memory: how they are copied into LAPACK's order and out of it, and products of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "engine/device/cpu/host/openblas.h"

namespace caldera::cpu {

/// Element (i, j) is data[i * row_stride + j * column_stride].
template <class T>
struct StridedMatrix {
  const T* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;

  T at(int i, int j) const { return data[i * row_stride + j * column_stride]; }
};

inline std::size_t area(int rows, int columns) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
}
/// Returns the stride of columns: LAPACK wants at least 1.
inline int stride_of(int rows) { return std::max(1, rows); }

/// Copies to column-major order. Returns whether every element is finite.
template <class T>
bool load_dense(const StridedMatrix<T>& from, int rows, int columns, std::vector<T>& to) {
  to.resize(area(rows, columns));
  bool finite = true;
  T* element = to.data();
  for (int j = 0; j < columns; ++j) {
    for (int i = 0; i < rows; ++i, ++element) {
      *element = from.at(i, j);
      finite = finite && std::isfinite(*element);
    }
  }
  return finite;
}

/// Writes the first `columns` columns of a column-major matrix, row-major. Gives the end of what was written.
template <class T>
T* store(const std::vector<T>& from, int rows, int columns, T* to) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) *to++ = from[area(j, rows) + static_cast<std::size_t>(i)];
  }
  return to;
}

/// Computes c (rows x columns, row-major) = x y, where x is rows x inner and y inner x columns, both as cblas
/// says.
template <class T>
void multiply_dense(int rows, int columns, int inner, const T* x, bool turn_x, int x_stride, const T* y,
                    bool turn_y, int y_stride, T* c) {
  const auto trans = [](bool turn) { return turn ? OpenBlas::kTrans : OpenBlas::kNoTrans; };
  const auto gemm = [&](auto function) {
    function(OpenBlas::kRowMajor, trans(turn_x), trans(turn_y), rows, columns, inner, T(1), x,
             stride_of(x_stride), y, stride_of(y_stride), T(0), c, stride_of(columns));
  };
  if constexpr (std::is_same_v<T, float>)
    gemm(openblas().sgemm);
  else
    gemm(openblas().dgemm);
}

}  // namespace caldera::cpu
