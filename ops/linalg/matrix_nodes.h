// The primitives of linear algebra, each with its gradient rules. What ops/linalg/linalg.h gives to users is
// made of these; operands here have been checked: of one type, on one device that has LAPACK, of equal
// batches.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera::matrices {

/// Takes a symmetric matrix: so are its tangents and cotangents.
LazyTensor cholesky_node(const LazyTensor& a);
LazyTensor solve_node(const LazyTensor& a, const LazyTensor& b);
LazyTensor solve_triangular_node(const LazyTensor& a, const LazyTensor& b, bool upper);
/// x r^-1 for a triangular r.
LazyTensor divided_by_triangle(const LazyTensor& x, const LazyTensor& r, bool upper);
LazyTensor inv_node(const LazyTensor& a);
/// Makes the inverse for matrix_power, by whose name a singular matrix is refused.
LazyTensor power_inverse_node(const LazyTensor& a);
LazyTensor det_node(const LazyTensor& a);
/// (..., 2): sign, log|det|.
LazyTensor slogdet_node(const LazyTensor& a);
LazyTensor svdvals_node(const LazyTensor& a);
LazyTensor eigvalsh_node(const LazyTensor& a);
LazyTensor pinv_node(const LazyTensor& a, double tolerance);

/// Not differentiable: the packed factors of a, the order of its rows and their exchanges, as numbers of a's
/// type.
struct Lu {
  LazyTensor packed, order, pivots;
};
Lu lu_node(const LazyTensor& a);
/// The order of rows (..., n) that `pivots` (..., n) give, numbers of a floating type. Not differentiable.
LazyTensor exchanges_node(const LazyTensor& pivots);
LazyTensor exp_node(const LazyTensor& a);

struct Qr {
  LazyTensor q, r;
};
/// With gradients where rows are at least as many as columns, and as many for a complete q.
Qr qr_factors(const LazyTensor& a, bool complete);

struct Svd {
  LazyTensor u, s, vh;
};
Svd svd_factors(const LazyTensor& a, bool full);

struct Eigh {
  LazyTensor w, v;
};
Eigh eigh_factors(const LazyTensor& a);

}  // namespace caldera::matrices
