// Weights as bytes to write. Private to lm/.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/tensor/dtype.h"

namespace caldera::detail {

/// Floats as elements of f32, f16 or bf16. Throws ValueError, naming the weight, for a number that is finite
/// and becomes infinite.
std::vector<std::byte> float_bytes(const std::vector<float>& values, DType dtype, const std::string& weight);

/// A matrix (rows, columns) as (columns, rows).
std::vector<float> transposed(const std::vector<float>& values, std::int64_t rows, std::int64_t columns);

}  // namespace caldera::detail
