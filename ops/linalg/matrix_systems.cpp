// The primitives that solve linear systems. Sources of the rules: M. Giles, "An extended
// collection of matrix derivative results for forward and reverse mode algorithmic differentiation" (2008);
// I. Murray, "Differentiation of the Cholesky decomposition" (2016). They are made of ordinary operations, so
// they have derivatives in turn.
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/linalg/matmul.h"
#include "ops/linalg/matrix_nodes.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/shape/diagonals.h"

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

// ---- definitions ----

const OpDef kCholesky = definition("cholesky", cholesky_vjp, cholesky_jvp);
const OpDef kSolve = definition("solve", solve_vjp, solve_jvp);
const OpDef kSolveTriangular = definition("solve_triangular", solve_triangular_vjp, solve_triangular_jvp);
const OpDef kInv = definition("inv", inv_vjp, inv_jvp);
const OpDef kPowerInverse = definition("matrix_power", inv_vjp, inv_jvp);

}  // namespace

LazyTensor cholesky_node(const LazyTensor& a) { return square_node(kCholesky, MatrixRoutine::cholesky, a); }
LazyTensor solve_node(const LazyTensor& a, const LazyTensor& b) {
  return make_node(kSolve, MatrixRoutine::solve, {a, b}, {a.shape(-1), b.shape(-1)});
}
LazyTensor solve_triangular_node(const LazyTensor& a, const LazyTensor& b, bool upper) {
  return make_node(kSolveTriangular, MatrixRoutine::solve_triangular, {a, b}, {a.shape(-1), b.shape(-1)},
                   upper);
}
LazyTensor divided_by_triangle(const LazyTensor& x, const LazyTensor& r, bool upper) {
  return turned(solve_triangular_node(turned(r), turned(x), !upper));
}
LazyTensor inv_node(const LazyTensor& a) { return square_node(kInv, MatrixRoutine::inv, a); }
LazyTensor power_inverse_node(const LazyTensor& a) {
  return square_node(kPowerInverse, MatrixRoutine::inv, a);
}

}  // namespace caldera::matrices
