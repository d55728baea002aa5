// The exponential of matrices, products of several, and systems by factors that are there or of tensors taken
// for matrices. Operands, devices and errors as of ops/linalg/linalg.h. Part of ops/ops.h.
#pragma once

#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The sum of x^k / k!, by Pade's approximation and squaring (N. Higham, "The scaling and squaring method for
/// the matrix exponential revisited", 2005).
LazyTensor matrix_exp(const LazyTensor& x);
/// Solves a x = b by the lower triangular factor of a = l l^T, with `upper` the upper one of a = l^T l; b is
/// (..., M, K).
LazyTensor cholesky_solve(const LazyTensor& b, const LazyTensor& l, bool upper = false);
/// The inverse of a = l l^T, with `upper` of l^T l.
LazyTensor cholesky_inverse(const LazyTensor& l, bool upper = false);
/// The product of matrices in the order of the fewest multiplications; the first and the last may be vectors.
/// Of any type. ValueError for fewer than two.
LazyTensor multi_dot(const std::vector<LazyTensor>& matrices);
/// The tensor that gives the identity with x by tensordot over `ind` axes: the products of x's first `ind`
/// extents and of the others are equal.
LazyTensor tensorinv(const LazyTensor& x, int ind = 2);
/// The x with tensordot(a, x, rank of x) = b: a's first axes are those of b, the others those of x.
LazyTensor tensorsolve(const LazyTensor& a, const LazyTensor& b);

}  // namespace caldera
