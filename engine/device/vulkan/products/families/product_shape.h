// Describes what the choice of a kernel for a matrix product depends on.
#pragma once

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace caldera::vulkan {

/// Says how an operand is stored: along K, or across it (rows of A, columns of B), is contiguous, or neither.
enum class ProductLayout : std::uint8_t { strided = 0, along_k = 1, across_k = 2 };

struct ProductShape {
  DType type = DType::f32;                 // of the sums, and of C ahead of an epilogue
  DType a = DType::f32, b = DType::f32;    // in memory
  std::int64_t batches = 1, m = 0, n = 0;  // after merging: see ProductProblem
  std::int64_t k = 0;                      // of all segments together
  int segments = 1;
  bool epilogue = false;
  bool scaled = false;        // a segment has a factor
  bool mixed_memory = false;  // later segments have A or B in other types than `a` and `b`
  ProductLayout a_layout = ProductLayout::strided, b_layout = ProductLayout::strided;
};

}  // namespace caldera::vulkan
