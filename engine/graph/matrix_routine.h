// MatrixRoutine: what an operation of OpClass::linalg computes of each matrix of a batch. The contract
// between ops/, the compiler and the device that has the routines.
#pragma once

#include <algorithm>
#include <cstdint>

namespace caldera {

/// A routine works on a (m, n) and, for the two that solve, b (n, k). The results of one matrix are one after
/// the other in the order in which they stand here, each row-major; p = min(m, n), or with `option` for qr:
/// m; for svd: m and n. Where a holds NaN or an infinity all results of that matrix are NaN, but for
/// solve_triangular.
enum class MatrixRoutine : std::uint8_t {
  /// The lower triangle L (n, n), L L^T = a. Reads the lower triangle. Fails unless a is positive definite.
  cholesky,
  /// x (n, k), a x = b. Fails where a is singular.
  solve,
  /// Solves for a triangular a. Reads the lower triangle, with `option` the upper one. Fails where its
  /// diagonal has a 0.
  solve_triangular,
  /// a^-1 (n, n). Fails where a is singular.
  inv,
  /// One number.
  det,
  /// sign, log|det|: 0 and -infinity where a is singular.
  slogdet,
  /// d det / d a (n, n), of singular matrices as well.
  cofactor,
  /// q (m, p), r (p, n), where no element of r's diagonal is negative.
  qr,
  /// u (m, p), s (min(m, n)), vh (p, n). s decreases. In each column of u that has an s, the element largest
  /// in magnitude (the first of equals) is positive.
  svd,
  /// s.
  svdvals,
  /// w (n), v (n, n). Reads the lower triangle. w increases. Signs of v's columns as of u's in svd.
  eigh,
  /// w.
  eigvalsh,
  /// The pseudo-inverse (n, m): singular values up to a tolerance times the largest count as 0, or up to the
  /// tolerance's magnitude if it is negative.
  pinv,
  /// l below the diagonal and u on and above it (m, n), where l u is a with its rows in the order (m) that
  /// follows, from 0; and the p row numbers, from 1, that each row is exchanged with in turn for it.
  lu,
  /// The order (n), from 0, of rows that are exchanged in turn with those of a (n, 1), from 1.
  exchanges,
  /// Real and imaginary parts of the eigenvalues (n), (n), ordered by them; with `option` those of the
  /// eigenvectors, too, (n, n), (n, n): of length 1, the element of each that is largest in magnitude (the
  /// first of equals) real and positive.
  eig,
  /// The exponential (n, n).
  exp,
};

/// Attributes of a node, in this order.
enum MatrixAttribute : std::uint8_t { kRoutine, kOption };

constexpr bool has_right_side(MatrixRoutine routine) {
  return routine == MatrixRoutine::solve || routine == MatrixRoutine::solve_triangular;
}
/// The other operand is a number.
constexpr bool has_tolerance(MatrixRoutine routine) { return routine == MatrixRoutine::pinv; }
constexpr bool needs_square(MatrixRoutine routine) {
  return routine != MatrixRoutine::qr && routine != MatrixRoutine::svd && routine != MatrixRoutine::svdvals &&
         routine != MatrixRoutine::pinv && routine != MatrixRoutine::lu &&
         routine != MatrixRoutine::exchanges;
}

/// Elements of the results of one matrix.
constexpr std::int64_t result_size(MatrixRoutine routine, bool option, std::int64_t m, std::int64_t n,
                                   std::int64_t k) {
  const std::int64_t least = std::min(m, n);
  switch (routine) {
    case MatrixRoutine::solve:
    case MatrixRoutine::solve_triangular:
      return n * k;
    case MatrixRoutine::det:
      return 1;
    case MatrixRoutine::slogdet:
      return 2;
    case MatrixRoutine::qr:
      return option ? m * m + m * n : least * (m + n);
    case MatrixRoutine::svd:
      return least + (option ? m * m + n * n : least * (m + n));
    case MatrixRoutine::svdvals:
    case MatrixRoutine::eigvalsh:
      return least;
    case MatrixRoutine::eigh:
      return n + n * n;
    case MatrixRoutine::lu:
      return m * n + m + least;
    case MatrixRoutine::eig:
      return option ? 2 * (n + n * n) : 2 * n;
    default:
      return m * n;
  }
}

}  // namespace caldera
