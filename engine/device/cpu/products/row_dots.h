// Products of a few rows with a matrix, such as a token's with a linear layer's weights, which are read once,
// in memory's order, as fast as memory gives them.
#pragma once

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace caldera::cpu {

/// C[m, n] = alpha * sum_k A[m, k] B[n, k] in f32, or that added to C. Unit stride along k in A, along k or n
/// in B, along n in C; strides are in elements. A is f32, B of the type. What C held is not read unless it is
/// added to.
struct RowDots {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  std::int64_t a_m = 0;
  const void* b = nullptr;
  std::int64_t b_n = 0, b_k = 1;
  float* c = nullptr;
  std::int64_t c_m = 0;
  float alpha = 1;
  bool add = false;
};

/// Rows of A up to which this is faster than a product that packs its operands.
inline constexpr std::int64_t kMostDotRows = 8;

/// Computes columns [begin, end) of C. A sum is the same whatever the other rows and columns are.
using RowDotsFn = void (*)(const RowDots& dots, std::int64_t begin, std::int64_t end);

/// Finds the function for a B in f32, f16 or bf16; nullptr for other types.
RowDotsFn find_row_dots(DType type);

/// Computes C, its columns shared out among threads where that is worth their waking: a sum is one thread's,
/// so that its bits do not depend on how many there are. B is of one of those types.
void run_row_dots(DType type, const RowDots& dots);

}  // namespace caldera::cpu
