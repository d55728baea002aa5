// Diagonals and triangles of matrices. Part of ops/ops.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The elements x[..., i, i + offset], as the last axis. Matrices are the two axes named.
LazyTensor diagonal(const LazyTensor& x, std::int64_t offset = 0, AxisIndex axis1 = -2, AxisIndex axis2 = -1);
/// The lower (upper) triangle of the last two axes up to (from) diagonal number k; zeros elsewhere.
LazyTensor tril(const LazyTensor& x, std::int64_t k = 0);
LazyTensor triu(const LazyTensor& x, std::int64_t k = 0);

/// A vector on the diagonal `offset` of a matrix of zeros; of a matrix its diagonal.
LazyTensor diag(const LazyTensor& x, std::int64_t offset = 0);
/// The last axis on the diagonal `offset` of matrices of zeros, whose rows are axis1 of the result and whose
/// columns are axis2.
LazyTensor diag_embed(const LazyTensor& x, std::int64_t offset = 0, AxisIndex axis1 = -2,
                      AxisIndex axis2 = -1);

}  // namespace caldera
