#include "ops/core/cast.h"

#include "ops/core/node_builder.h"

namespace caldera {
namespace {

void cast_vjp(VjpContext& c) { c.grads[0] = astype(c.cotangent, c.inputs[0].dtype()); }

/// A cast changes the dtype, so that the gradient rule cannot serve both ways.
const OpDef kCast{.name = "astype",
                  .kind = OpClass::elementwise,
                  .scalar = ScalarOp::cast,
                  .vjp = cast_vjp,
                  .jvp = ops::linear_jvp};

}  // namespace

LazyTensor astype(const LazyTensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return ops::make(kCast, x.shape(), dtype, {x});
}

}  // namespace caldera
