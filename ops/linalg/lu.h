// LU factorisation with row exchanges, by LAPACK on the CPU. Operands, devices and errors as of
// ops/linalg/linalg.h. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct LuResult {
  LazyTensor p, l, u;
};
/// x (..., M, N) = p l u, P = min(M, N): p (..., M, M) a permutation matrix, l (..., M, P) lower triangular
/// with ones on its diagonal and no element above 1 in magnitude, u (..., P, N) upper triangular. The
/// gradient is that at fixed exchanges; where u's leading part is singular it fails.
LuResult lu(const LazyTensor& x);

struct LuFactorResult {
  LazyTensor lu, pivots;
};
/// l below the diagonal and u on and above it, as one matrix of x's shape; and for each of the P rows, from
/// 1, the row that it was exchanged with in turn (i32).
LuFactorResult lu_factor(const LazyTensor& x);
/// Solves a x = b (without `left` x a = b, with `adjoint` for a's transpose) by lu_factor(a); b is (..., M,
/// K) or (..., K, M). Evaluation fails where a is singular.
LazyTensor lu_solve(const LazyTensor& lu, const LazyTensor& pivots, const LazyTensor& b, bool left = true,
                    bool adjoint = false);

}  // namespace caldera
