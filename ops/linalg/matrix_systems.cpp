// The primitives that solve linear systems, and determinants. Sources of the rules: M. Giles, "An extended
// collection of matrix derivative results for forward and reverse mode algorithmic differentiation" (2008);
// I. Murray, "Differentiation of the Cholesky decomposition" (2016). They are made of ordinary operations, so
// they have derivatives in turn.
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/elementwise/sign.h"
#include "ops/linalg/matmul.h"
#include "ops/linalg/matrix_nodes.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/reduce/reductions.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/diagonals.h"
#include "ops/shape/joining.h"

namespace caldera::matrices {
namespace {

// ---- cholesky (Murray) ----

/// The lower triangle with half of the diagonal.
LazyTensor lower_half(const LazyTensor& x) { return tril(x) - x * identity_like(x, x.shape(-1)) * 0.5; }

void cholesky_vjp(VjpContext& c) {
  const LazyTensor& l = c.output;
  const LazyTensor inner = lower_half(matmul(turned(l), c.cotangent));
  c.grads[0] = symmetric(divided_by_triangle(solve_triangular_node(turned(l), inner, true), l, false));
}
void cholesky_jvp(JvpContext& c) {
  const LazyTensor& l = c.output;
  const LazyTensor left = solve_triangular_node(l, c.tangents[0], false);
  c.tangent = matmul(l, lower_half(divided_by_triangle(left, turned(l), true)));
}

// ---- linear systems (Giles) ----

void solve_vjp(VjpContext& c) {
  const LazyTensor of_b = solve_node(turned(c.inputs[0]), c.cotangent);
  if (c.needed[0]) c.grads[0] = negative(matmul(of_b, turned(c.output)));
  if (c.needed[1]) c.grads[1] = of_b;
}
void solve_jvp(JvpContext& c) {
  LazyTensor right = c.tangents[1];
  if (c.tangents[0].defined()) {
    const LazyTensor moved = matmul(c.tangents[0], c.output);
    right = right.defined() ? right - moved : negative(moved);
  }
  c.tangent = solve_node(c.inputs[0], right);
}

LazyTensor triangle(const LazyTensor& x, bool upper) { return upper ? triu(x) : tril(x); }

void solve_triangular_vjp(VjpContext& c) {
  const bool upper = option_of(c.output);
  const LazyTensor of_b = solve_triangular_node(turned(c.inputs[0]), c.cotangent, !upper);
  if (c.needed[0]) c.grads[0] = negative(triangle(matmul(of_b, turned(c.output)), upper));
  if (c.needed[1]) c.grads[1] = of_b;
}
void solve_triangular_jvp(JvpContext& c) {
  const bool upper = option_of(c.output);
  LazyTensor right = c.tangents[1];
  if (c.tangents[0].defined()) {
    const LazyTensor moved = matmul(triangle(c.tangents[0], upper), c.output);
    right = right.defined() ? right - moved : negative(moved);
  }
  c.tangent = solve_triangular_node(c.inputs[0], right, upper);
}

void inv_vjp(VjpContext& c) {
  const LazyTensor y = turned(c.output);
  c.grads[0] = negative(matmul(matmul(y, c.cotangent), y));
}
void inv_jvp(JvpContext& c) { c.tangent = negative(matmul(matmul(c.output, c.tangents[0]), c.output)); }

// ---- determinants ----

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

// ---- definitions ----

const OpDef kCholesky = definition("cholesky", cholesky_vjp, cholesky_jvp);
const OpDef kSolve = definition("solve", solve_vjp, solve_jvp);
const OpDef kSolveTriangular = definition("solve_triangular", solve_triangular_vjp, solve_triangular_jvp);
const OpDef kInv = definition("inv", inv_vjp, inv_jvp);
const OpDef kPowerInverse = definition("matrix_power", inv_vjp, inv_jvp);
const OpDef kDet = definition("det", det_vjp, det_jvp);
const OpDef kSlogdet = definition("slogdet", slogdet_vjp, slogdet_jvp);
const OpDef kCofactor = definition("cofactor", cofactor_vjp, cofactor_jvp);

LazyTensor square_node(const OpDef& op, MatrixRoutine routine, const LazyTensor& a) {
  return make_node(op, routine, {a}, {a.shape(-1), a.shape(-1)});
}

LazyTensor cofactor_node(const LazyTensor& a) { return square_node(kCofactor, MatrixRoutine::cofactor, a); }

}  // namespace

LazyTensor cholesky_node(const LazyTensor& a) { return square_node(kCholesky, MatrixRoutine::cholesky, a); }
LazyTensor solve_node(const LazyTensor& a, const LazyTensor& b) {
  return make_node(kSolve, MatrixRoutine::solve, {a, b}, {a.shape(-1), b.shape(-1)});
}
LazyTensor solve_triangular_node(const LazyTensor& a, const LazyTensor& b, bool upper) {
  return make_node(kSolveTriangular, MatrixRoutine::solve_triangular, {a, b}, {a.shape(-1), b.shape(-1)},
                   upper);
}
LazyTensor inv_node(const LazyTensor& a) { return square_node(kInv, MatrixRoutine::inv, a); }
LazyTensor power_inverse_node(const LazyTensor& a) {
  return square_node(kPowerInverse, MatrixRoutine::inv, a);
}
LazyTensor det_node(const LazyTensor& a) { return make_node(kDet, MatrixRoutine::det, {a}, {}); }
LazyTensor slogdet_node(const LazyTensor& a) { return packed_node(kSlogdet, MatrixRoutine::slogdet, a); }

}  // namespace caldera::matrices
