#include "ops/linalg/identity.h"

#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"

namespace caldera::matrices {

LazyTensor identity_like(const LazyTensor& x, std::int64_t n) {
  const auto coordinate = [&](int axis) { return iota(Shape{n, n}, axis, DType::i32, x.device()); };
  return astype(equal(coordinate(0), coordinate(1)), x.dtype());
}

}  // namespace caldera::matrices
