// Products of the matrices that attention works on: a few hundred rows and columns, on one thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caldera::cpu {

/// A matrix as it is in memory.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 1;

  MatrixView transposed() const { return {data, column, row}; }
  MatrixView from(std::int64_t first_row) const { return {data + first_row * row, row, column}; }
};

/// Whether products take the matrix as it is, or transposed: rows or columns with unit stride, apart from one
/// another.
bool is_regular(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column);
/// The matrix copied into dense rows.
MatrixView copied(const MatrixView& x, std::int64_t rows, std::int64_t columns, float* to);

/// C (m x n, dense rows `leading` apart) = A B, or that added to C. A and B are regular.
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const MatrixView& a, const MatrixView& b,
              float* c, std::int64_t leading, bool add);

}  // namespace caldera::cpu
