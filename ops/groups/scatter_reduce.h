// Updates with one index, combined: torch.scatter_reduce. Part of ops/ops.h.
#pragma once

#include <cstdint>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

enum class ScatterReduce : std::uint8_t { sum, prod, mean, amax, amin };

/// base with the values that put_along_axis() would write at `indices` combined with each other and, unless
/// `include_self` is false, with what is there. Where no value comes base's element stays. The mean of
/// integers is rounded down. Gradients are those of the sum, the product (where factors are 0, too), the
/// mean; of amax and amin they are split equally among all that attain it. Shapes, types and indices outside
/// are those of put_along_axis(). DTypeError for bool.
LazyTensor scatter_reduce(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& values,
                          AxisIndex axis, ScatterReduce how, bool include_self = true);

}  // namespace caldera
