// Linear algebra: the linalg extension of the Python Array API 2023.12, computed by LAPACK on the CPU. Part
// of ops/ops.h.
//
// Operands are matrices in float32 or float64 (DTypeError for others), (..., M, N); leading axes are a batch,
// matrices may be empty. Tensors of other devices are brought to the CPU, results go back. All have
// gradients, of every order, where they are smooth, unless something else is said. A matrix that has no
// result (a singular one for inv) makes the evaluation fail with a ValueError that names the operation, the
// matrix of the batch and the reason; the engine goes on. One that holds NaN or an infinity gives NaN.
// `hermitian` matrices are real here: symmetric.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct QrResult {
  LazyTensor q, r;
};
struct SvdResult {
  LazyTensor u, s, vh;
};
struct EighResult {
  LazyTensor eigenvalues, eigenvectors;
};
struct SlogdetResult {
  LazyTensor sign, logabsdet;
};
enum class QrMode : std::uint8_t { reduced, complete };

/// The lower triangular L with L L^T = x, or with `upper` its transpose. Of x counts the symmetric part (x +
/// x^T) / 2. Evaluation fails unless it is positive definite.
LazyTensor cholesky(const LazyTensor& x, bool upper = false);

/// The x with a x = b; a is (..., M, M), b a vector (M,) or matrices (..., M, K). Batches broadcast.
/// Evaluation fails where a is singular. Without `left` x a = b is solved, and b is (..., K, M).
LazyTensor solve(const LazyTensor& a, const LazyTensor& b, bool left = true);
/// Solves a x = b for a triangular a: only its lower triangle is read, or with `upper` its upper one. Without
/// `left` x a = b, as in solve. The diagonal of a `unitriangular` a counts as ones, and is not read.
LazyTensor solve_triangular(const LazyTensor& a, const LazyTensor& b, bool upper = false, bool left = true,
                            bool unitriangular = false);
/// The inverse. Evaluation fails where x is singular.
LazyTensor inv(const LazyTensor& x);

/// The determinant. Gradients of the first two orders are right for singular matrices, too.
LazyTensor det(const LazyTensor& x);
/// The determinant as sign * exp(logabsdet): 0 and -infinity of a singular matrix, whose gradient fails.
SlogdetResult slogdet(const LazyTensor& x);

/// x = q r, q with orthonormal columns, r upper triangular with no negative element on its diagonal (PyTorch
/// and NumPy leave these signs to LAPACK): so the factors are unique where x's leading columns are
/// independent. reduced: q is (..., M, P), r (..., P, N), P = min(M, N); complete: q is (..., M, M). A
/// complete q of more rows than columns has no gradient, as its further columns are arbitrary.
QrResult qr(const LazyTensor& x, QrMode mode = QrMode::reduced);

/// x = u diag(s) vh, s from the largest down. u is (..., M, M) and vh (..., N, N), or without `full_matrices`
/// (..., M, P) and (..., P, N), P = min(M, N). The sign of each pair of vectors is such that the element of
/// u's column that is largest in magnitude (the first of equals) is positive. u and vh have a gradient where
/// no two of s are equal; what does not depend on their choice has the right one there. With `full_matrices`
/// only square matrices have gradients.
SvdResult svd(const LazyTensor& x, bool full_matrices = true);
/// s of svd. Its gradient needs no distinct values.
LazyTensor svdvals(const LazyTensor& x);

/// x = v diag(w) v^T, w ascending, of the symmetric part of x. Signs of the columns of v as those of u in
/// svd, gradients likewise.
EighResult eigh(const LazyTensor& x);
LazyTensor eigvalsh(const LazyTensor& x);

/// The pseudo-inverse: singular values up to rtol * the largest, or to atol, count as 0. By default rtol is
/// max(M, N) times the type's epsilon, or 0 where atol is given and not 0; atol is 0. Its gradient (as in
/// PyTorch and JAX) is that at constant rank: right where the values that count as 0 are 0. Of `hermitian`
/// matrices the symmetric part is taken.
LazyTensor pinv(const LazyTensor& x, std::optional<double> rtol = {}, std::optional<double> atol = {},
                bool hermitian = false);
/// Counts the singular values that exceed both rtol * the largest and atol, as i32. Arguments as in pinv.
LazyTensor matrix_rank(const LazyTensor& x, std::optional<double> rtol = {}, std::optional<double> atol = {},
                       bool hermitian = false);
/// The x of least norm among those with the least norm of a x - b: pinv(a, rtol) b. Operands as in solve, but
/// for a of any extents.
LazyTensor lstsq(const LazyTensor& a, const LazyTensor& b, std::optional<double> rtol = {});

/// "fro": Frobenius, "nuc": the sum of singular values.
LazyTensor matrix_norm(const LazyTensor& x, std::string_view ord = "fro", bool keepdims = false);
/// 2 and -2: the largest and least singular value; 1 and -1: the largest and least sum of |x| over a column;
/// infinity and -infinity: over a row.
LazyTensor matrix_norm(const LazyTensor& x, double ord, bool keepdims = false);
/// The condition number in the 2-norm: the largest over the least singular value, infinite for singular
/// matrices.
LazyTensor cond(const LazyTensor& x);
/// Returns the condition number in another norm: norm(x) norm(inv(x)), infinite for singular matrices.
LazyTensor cond(const LazyTensor& x, double ord);
LazyTensor cond(const LazyTensor& x, std::string_view ord);

/// x multiplied with itself n times; of negative n the inverse -n times; n = 0 gives the identity.
LazyTensor matrix_power(const LazyTensor& x, std::int64_t n);
/// Swaps the last two axes, of tensors of any type.
LazyTensor matrix_transpose(const LazyTensor& x);

}  // namespace caldera
