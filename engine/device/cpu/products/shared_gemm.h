// OpenBLAS's products, shared out among the CPU device's own threads: each calls it for a part of the result.
#pragma once

#include <cstdint>

namespace caldera::cpu {

/// Rows that a call of OpenBLAS has a multiple of, unless they are the last ones: its kernels take up to 12
/// or 24 rows at a time, and sum what is left over in another order.
inline constexpr std::int64_t kGemmRows = 24;
/// Rows of a thread from which threads share out the rows of C: each packs all of B.
inline constexpr std::int64_t kGemmRowsOfThread = 96;

/// A dense matrix as BLAS has it: element (i, j) at data[i * leading + j], or at data[j * leading + i] where
/// it is transposed.
template <class T>
struct BlasMatrix {
  const T* data = nullptr;
  std::int64_t leading = 1;
  bool transposed = false;

  /// The matrix from row i and column j on.
  BlasMatrix from(std::int64_t i, std::int64_t j) const {
    return {data + (transposed ? j * leading + i : i * leading + j), leading, transposed};
  }
};

/// Computes C[m, n] = alpha * sum_k A[m, k] B[k, n], or adds that to C, whose rows are `c_row` apart. Outside
/// of a parallel region threads take rows of C where there are many, else columns; OpenBLAS's own threads,
/// which wait for one another while another process has their core, are not used. The parts are whole
/// multiples of what OpenBLAS's kernels take together; still, elements at the edge of a part can be summed in
/// another order than by one thread.
template <class T>
void shared_gemm(std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const BlasMatrix<T>& a,
                 const BlasMatrix<T>& b, bool add, T* c, std::int64_t c_row);

/// Computes y[rows] = alpha * A[rows, k] x[k], or adds that to y, in the same way.
template <class T>
void shared_gemv(std::int64_t rows, std::int64_t k, T alpha, const BlasMatrix<T>& a, const T* x,
                 std::int64_t x_stride, bool add, T* y, std::int64_t y_stride);

}  // namespace caldera::cpu
