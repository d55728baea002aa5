// The primitives of general matrices: LU factors and the exponential. The derivative of exp(a) along e is the
// block above the diagonal of exp([[a, e], [0, a]]) (R. Mathias, "A chain rule for matrix functions and
// applications", 1996), so it has derivatives in turn.
#include <algorithm>

#include "ops/linalg/matrix_nodes.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/shape/joining.h"

namespace caldera::matrices {
namespace {

LazyTensor exp_along(const LazyTensor& a, const LazyTensor& along) {
  const LazyTensor upper = concatenate({a, along}, -1), lower = concatenate({zeros_like(a), a}, -1);
  const std::int64_t n = a.shape(-1);
  return slice(slice(exp_node(concatenate({upper, lower}, -2)), -2, 0, n), -1, n, 2 * n);
}

void exp_vjp(VjpContext& c) { c.grads[0] = exp_along(turned(c.inputs[0]), c.cotangent); }
void exp_jvp(JvpContext& c) { c.tangent = exp_along(c.inputs[0], c.tangents[0]); }

const OpDef kLu = definition("lu", nullptr, nullptr);
const OpDef kExchanges = definition("lu_solve", nullptr, nullptr);
const OpDef kExp = definition("matrix_exp", exp_vjp, exp_jvp);

}  // namespace

Lu lu_node(const LazyTensor& a) {
  const std::int64_t m = a.shape(-2), n = a.shape(-1);
  Unpack parts(packed_node(kLu, MatrixRoutine::lu, a));
  LazyTensor packed = parts.take({m, n});
  LazyTensor order = parts.take({m});
  return {std::move(packed), std::move(order), parts.take({std::min(m, n)})};
}
LazyTensor exchanges_node(const LazyTensor& pivots) {
  return squeeze(make_node(kExchanges, MatrixRoutine::exchanges, {expand_dims(stop_gradient(pivots), -1)},
                           {pivots.shape(-1), 1}),
                 -1);
}
LazyTensor exp_node(const LazyTensor& a) { return square_node(kExp, MatrixRoutine::exp, a); }

}  // namespace caldera::matrices
