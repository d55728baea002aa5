// Products with quantised matrices, which dequantise inside: no copy in floats is ever made of a whole
// matrix. Part of <caldera/caldera.h>; not of ops/ops.h, whose operations take tensors alone.
//
// Sums are those of f32. Gradients with respect to x are products with the same matrix along its other axis;
// the matrix itself is frozen, and to differentiate with respect to its parts is a GradientError.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"
#include "ops/quantized/quantized_tensor.h"

namespace caldera {

/// The matrices as floats: q.shape. Bit for bit what the reference of the format computes in f32 (then
/// rounded to `dtype`). DTypeError unless dtype is f32, f16 or bf16.
LazyTensor dequantize(const QuantizedTensor& q, DType dtype = DType::f32);

/// x (..., columns) times the transposed matrix: (..., rows), what torch's linear computes of a weight
/// (out_features, in_features). With transpose = false, x (..., rows) times the matrix: (..., columns). The
/// result has the type of x: f32, f16 or bf16. q has one matrix.
LazyTensor quantized_matmul(const LazyTensor& x, const QuantizedTensor& q, bool transpose = true);

/// Multiplies with one of several matrices for each row of x: `which` (x.shape but the last) holds integers
/// in [0, matrices); a row with another one is NaN. Rows of the same matrix are multiplied together where
/// they follow one another: sort them. The mixture of experts: x the tokens by expert, q (experts, rows,
/// columns).
LazyTensor quantized_matmul_by(const LazyTensor& x, const QuantizedTensor& q, const LazyTensor& which,
                               bool transpose = true);

/// Rows of a quantised table (count, features), which replace the indices: (..., features), as embedding()
/// gives of floats. An index outside of [0, count) gives NaN.
LazyTensor quantized_embedding(const QuantizedTensor& q, const LazyTensor& indices, DType dtype = DType::f32);

}  // namespace caldera
