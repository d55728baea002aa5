// Matrix products of one matrix: Caldera's own kernels, for small products, for integers, and for machines
// without OpenBLAS.
#pragma once

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace caldera::cpu {

/// C[m, n] = sum_k A[m, k] B[k, n], any strides (in elements) for A; B and C have unit stride along n.
/// C is written, never read.
using MatrixFn = void (*)(std::int64_t m, std::int64_t n, std::int64_t k, const void* a, std::int64_t a_m,
                          std::int64_t a_k, const void* b, std::int64_t b_k, void* c, std::int64_t c_m);

/// nullptr for types that have no products.
MatrixFn find_matrix_product(DType type);

}  // namespace caldera::cpu
