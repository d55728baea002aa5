// The arithmetic of a kernel, counted.
#pragma once

#include <cstdint>

#include "engine/plan/kernel/kernel.h"
#include "engine/tensor/shape.h"

namespace caldera {

/// Instructions that compute: neither sources nor comparisons, selections, casts or random bits.
std::int64_t arithmetic_count(const Kernel& kernel);

/// Floating-point operations of a kernel over `points` points in `rows` rows (see StepCost::flops).
std::int64_t kernel_flops(const Kernel& kernel, std::int64_t points, std::int64_t rows);

/// The product of the first `count` extents.
std::int64_t product_of(const Shape& dims, int count);

}  // namespace caldera
