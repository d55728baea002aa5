// Arithmetic, element by element: the operators + - * / and what else makes numbers of numbers. Operands
// broadcast and promote as ops/ops.h says. Part of ops/ops.h.
#pragma once

#include "engine/graph/lazy_tensor.h"

namespace caldera {

LazyTensor add(const LazyTensor& a, const LazyTensor& b);
LazyTensor subtract(const LazyTensor& a, const LazyTensor& b);
LazyTensor multiply(const LazyTensor& a, const LazyTensor& b);
LazyTensor divide(const LazyTensor& a, const LazyTensor& b);  // true division: integers become f32
/// The quotient rounded towards minus infinity.
LazyTensor floor_divide(const LazyTensor& a, const LazyTensor& b);
/// a - b * floor(a / b): it has the sign of b, as in Python.
LazyTensor remainder(const LazyTensor& a, const LazyTensor& b);
LazyTensor negative(const LazyTensor& x);
LazyTensor abs(const LazyTensor& x);
LazyTensor sign(const LazyTensor& x);
/// x as it is; not of bool.
LazyTensor positive(const LazyTensor& x);
LazyTensor reciprocal(const LazyTensor& x);
LazyTensor square(const LazyTensor& x);

}  // namespace caldera
