// The primitives of determinants. Sources of the rules: M. Giles, "An extended collection of matrix
// derivative results for forward and reverse mode algorithmic differentiation" (2008). They are made of
// ordinary operations, so they have derivatives in turn.

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/linalg/matrix_nodes.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/diagonals.h"
#include "ops/shape/joining.h"

namespace caldera::matrices {
namespace {

LazyTensor cofactor_node(const LazyTensor& a);

void det_vjp(VjpContext& c) {
  c.grads[0] = expand_dims(expand_dims(c.cotangent, -1), -1) * cofactor_node(c.inputs[0]);
}
void det_jvp(JvpContext& c) { c.tangent = total(cofactor_node(c.inputs[0]) * c.tangents[0]); }

/// The products of all elements but i and j; 0 where i = j.
LazyTensor products_of_others(const LazyTensor& s) {
  const std::int64_t n = s.shape(-1);
  const auto coordinate = [&](int axis) { return iota(Shape{n, n, n}, axis, DType::i32, s.device()); };
  const LazyTensor left_out =
      logical_or(equal(coordinate(0), coordinate(2)), equal(coordinate(1), coordinate(2)));
  const LazyTensor each = expand_dims(expand_dims(s, -2), -2);
  const LazyTensor products = prod(where(left_out, ones_like(each), each), -1);
  return products * (1.0 - identity_like(s, n));
}

/// The second derivative of det along g, which is linear in g and its own transpose. With a = u diag(s) vh,
/// det's is that of diag(s), turned: the sum over i != j of (x_ii y_jj - x_ij y_ji) times the product of the
/// other s.
LazyTensor second_derivative_of_det(const LazyTensor& a, const LazyTensor& g) {
  const Svd d = svd_factors(a, false);
  const LazyTensor sign_of_turn = stop_gradient(sign(det_node(d.u) * det_node(d.vh)));
  const LazyTensor x = matmul(matmul(turned(d.u), g), turned(d.vh));
  const LazyTensor others = products_of_others(d.s);
  const LazyTensor of_diagonal = sum(scaled_columns(others, diagonal(x)), -1);
  const LazyTensor inner = with_diagonal(of_diagonal) - others * turned(x);
  return expand_dims(expand_dims(sign_of_turn, -1), -1) * matmul(matmul(d.u, inner), d.vh);
}
void cofactor_vjp(VjpContext& c) { c.grads[0] = second_derivative_of_det(c.inputs[0], c.cotangent); }
void cofactor_jvp(JvpContext& c) { c.tangent = second_derivative_of_det(c.inputs[0], c.tangents[0]); }

void slogdet_vjp(VjpContext& c) {
  const LazyTensor of_logarithm = slice(c.cotangent, -1, 1, 2);
  c.grads[0] = expand_dims(of_logarithm, -1) * turned(inv_node(c.inputs[0]));
}
void slogdet_jvp(JvpContext& c) {
  const LazyTensor slope = expand_dims(total(turned(inv_node(c.inputs[0])) * c.tangents[0]), -1);
  c.tangent = concatenate({zeros_like(slope), slope}, -1);
}

const OpDef kDet = definition("det", det_vjp, det_jvp);
const OpDef kSlogdet = definition("slogdet", slogdet_vjp, slogdet_jvp);
const OpDef kCofactor = definition("cofactor", cofactor_vjp, cofactor_jvp);

LazyTensor cofactor_node(const LazyTensor& a) { return square_node(kCofactor, MatrixRoutine::cofactor, a); }

}  // namespace

LazyTensor det_node(const LazyTensor& a) { return make_node(kDet, MatrixRoutine::det, {a}, {}); }
LazyTensor slogdet_node(const LazyTensor& a) { return packed_node(kSlogdet, MatrixRoutine::slogdet, a); }

}  // namespace caldera::matrices
