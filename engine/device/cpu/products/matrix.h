// Matrix products of one matrix: Caldera's own kernels, for small products, for integers, and for machines
// without OpenBLAS.
#pragma once

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace caldera::cpu {

/// C[m, n] = alpha * sum_k A[m, k] B[k, n], or that added to C. Any strides (in elements) for A; B and C have
/// unit stride along n. `alpha` points to an element of the type; nullptr is 1. What C held is not read
/// unless it is added to.
using MatrixFn = void (*)(std::int64_t m, std::int64_t n, std::int64_t k, const void* a, std::int64_t a_m,
                          std::int64_t a_k, const void* b, std::int64_t b_k, void* c, std::int64_t c_m,
                          const void* alpha, bool add);

/// nullptr for types that have no products.
MatrixFn find_matrix_product(DType type);

/// C[m, n] = sum_k A[m, k] B[n, k]: rows by rows, with unit stride along k. For few rows of A.
using RowProductFn = void (*)(std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                              std::int64_t a_m, const float* b, std::int64_t b_n, float* c, std::int64_t c_m);
RowProductFn row_product_f32();

}  // namespace caldera::cpu
