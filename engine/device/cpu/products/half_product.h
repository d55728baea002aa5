// Matrix products whose operands are in memory as f16 or bf16: panels of them are widened to f32 in scratch
// memory, and f32 products made of those. Never a whole operand at once, if it is large.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/dtype.h"

namespace caldera::cpu {

/// A matrix of floating-point numbers in memory, as products take their operands. Strides in elements, which
/// are f32, f16 or bf16.
struct FloatMatrix {
  const std::byte* data = nullptr;
  DType type = DType::f32;
  std::int64_t row = 0, column = 0;
};

/// C[m, n] = alpha * sum_k A[m, k] B[k, n] in f32, or that added to C, whose rows are contiguous and are
/// `c_row` apart. Outside of a parallel region the threads share the widening.
void multiply_halves(std::int64_t m, std::int64_t n, std::int64_t k, const FloatMatrix& a,
                     const FloatMatrix& b, float alpha, float* c, std::int64_t c_row, bool add);

}  // namespace caldera::cpu
