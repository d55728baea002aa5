#include "ops/nn/lora.h"

#include <fmt/core.h>

#include "ops/core/node_builder.h"
#include "ops/linalg/matmul.h"

namespace caldera {

LazyTensor lora_delta(const LazyTensor& x, const LazyTensor& a, const LazyTensor& b, double scale) {
  if (a.rank() != 2 || b.rank() != 2 || x.rank() == 0 || x.shape(-1) != a.shape(0) ||
      a.shape(1) != b.shape(0)) {
    throw ShapeError(
        fmt::format("lora_delta: expected x (..., in), a (in, rank), b (rank, out), got {}, {}, {}",
                    x.shape().to_string(), a.shape().to_string(), b.shape().to_string()));
  }
  for (const LazyTensor* operand : {&x, &a, &b})
    ops::check_domain("lora_delta", ScalarDomain::floating, operand->dtype());
  // The factor goes to the narrow product: the gradients of x, a and b then need no scaled copy of the wide
  // one.
  return matmul(matmul(x, a) * scale, b);
}

}  // namespace caldera
