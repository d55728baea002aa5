// Bitwise operations. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Combines integers bit by bit, in two's complement; of bool it is the logical operation. Operands broadcast
/// and promote (uint8 with int32 gives int32). DTypeError for floating operands.
LazyTensor bitwise_and(const LazyTensor& a, const LazyTensor& b);
LazyTensor bitwise_or(const LazyTensor& a, const LazyTensor& b);
LazyTensor bitwise_xor(const LazyTensor& a, const LazyTensor& b);
LazyTensor bitwise_invert(const LazyTensor& x);
/// Integers moved by `count` bits towards the high end, zeros coming in. What is moved out is lost; a count
/// that is negative or reaches the type's width moves out everything. DTypeError for bool, as in the Array
/// API.
LazyTensor bitwise_left_shift(const LazyTensor& x, const LazyTensor& count);
/// Towards the low end: copies of the sign come in, so that it is floor(x / 2^count). A count that is
/// negative or reaches the type's width leaves 0, or -1 of a negative number.
LazyTensor bitwise_right_shift(const LazyTensor& x, const LazyTensor& count);

}  // namespace caldera
