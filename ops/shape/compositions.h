// Tensors composed of the elements of others: Kronecker products, block diagonals, tuples, powers. Part of
// ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The Kronecker product: every element of a times all of b, in blocks. The shorter of the shapes gets
/// leading ones. ShapeError beyond 6 axes.
LazyTensor kron(const LazyTensor& a, const LazyTensor& b);
/// Matrices along the diagonal of one that is 0 elsewhere; vectors and numbers are matrices of one row. Types
/// promote. ValueError for none.
LazyTensor block_diag(const std::vector<LazyTensor>& parts);
/// All tuples with an element of each vector: (product of the extents, vectors), the last varying first. Of
/// one vector the vector itself. ValueError for none.
LazyTensor cartesian_prod(const std::vector<LazyTensor>& vectors);
/// All choices of r elements of a vector, in the order of their positions, (choices, r); an element any
/// number of times if with_replacement. ValueError for a negative r, ShapeError for more than 2^24 choices.
LazyTensor combinations(const LazyTensor& x, std::int64_t r = 2, bool with_replacement = false);
/// The powers n - 1 ... 0 of each element (with `increasing` 0 ... n - 1) along a new last axis; n is by
/// default the extent of the last axis. Products, so that 0 to the power of 0 is 1, with the right gradient.
LazyTensor vander(const LazyTensor& x, std::optional<std::int64_t> n = {}, bool increasing = false);

}  // namespace caldera
