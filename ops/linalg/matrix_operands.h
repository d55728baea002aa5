// Operands of linear algebra: checked, of one type and batch, on the device that has LAPACK.
// Internal to ops/linalg/.
#pragma once

#include "engine/graph/lazy_tensor.h"
#include "ops/core/views.h"

namespace caldera::matrices {

/// Throws ShapeError or DTypeError naming `op` where x is no stack of matrices of a type that LAPACK has.
void check_matrices(const char* op, const LazyTensor& x, bool square);
/// x where LAPACK is. What is computed there goes back to where x is.
LazyTensor on_host(const LazyTensor& x);

/// Operands of a linear system: of one type and batch, b as matrices.
struct System {
  LazyTensor a, b;
  bool of_vector = false;

  LazyTensor answer(const LazyTensor& x) const { return of_vector ? squeeze(x, -1) : x; }
};
/// Throws ShapeError, DTypeError or DeviceError naming `op` where b does not stand beside a.
System checked_system(const char* op, const LazyTensor& a, const LazyTensor& b, bool square);

}  // namespace caldera::matrices
