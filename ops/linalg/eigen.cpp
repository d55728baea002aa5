// Rules: M. Giles, "An extended collection of matrix derivative results for forward and reverse mode
// algorithmic differentiation" (2008), with vectors whose length and phase are fixed.
#include "ops/linalg/eigen.h"

#include "engine/graph/transfer.h"
#include "ops/core/cast.h"
#include "ops/linalg/matmul.h"
#include "ops/linalg/matrix_nodes.h"
#include "ops/linalg/matrix_operands.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/diagonals.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace matrices {
namespace {

/// Complex numbers as two tensors.
struct Pair {
  LazyTensor re, im;
};
Pair operator+(const Pair& a, const Pair& b) { return {a.re + b.re, a.im + b.im}; }
Pair operator-(const Pair& a, const Pair& b) { return {a.re - b.re, a.im - b.im}; }
Pair operator*(const Pair& a, const Pair& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
Pair conjugate(const Pair& a) { return {a.re, -a.im}; }
Pair adjoint(const Pair& a) { return {turned(a.re), -turned(a.im)}; }
Pair product(const Pair& a, const Pair& b) {
  return {matmul(a.re, b.re) - matmul(a.im, b.im), matmul(a.re, b.im) + matmul(a.im, b.re)};
}
Pair real_product(const LazyTensor& a, const Pair& b) { return {matmul(a, b.re), matmul(a, b.im)}; }

/// a^-1 b, as a real system of twice the size.
Pair divided(const Pair& a, const Pair& b) {
  const LazyTensor system = concatenate({concatenate({a.re, -a.im}, -1), concatenate({a.im, a.re}, -1)}, -2);
  const LazyTensor x = solve_node(system, concatenate({b.re, b.im}, -2));
  const std::int64_t n = a.re.shape(-1);
  return {slice(x, -2, 0, n), slice(x, -2, n, 2 * n)};
}

struct Eigen {
  Pair w, v;
};
Eigen unpacked_eigen(const LazyTensor& packed, std::int64_t n) {
  Unpack parts(packed);
  LazyTensor wr = parts.take({n}), wi = parts.take({n});
  LazyTensor vr = parts.take({n, n});
  return {{std::move(wr), std::move(wi)}, {std::move(vr), parts.take({n, n})}};
}
LazyTensor packed_eigen(const Eigen& e) {
  return concatenate({e.w.re, e.w.im, flat(e.v.re), flat(e.v.im)}, -1);
}

/// 1 / (w_j - w_i), and 0 where they are equal.
Pair inverse_gap_pairs(const Pair& w) {
  const Pair gap{expand_dims(w.re, -2) - expand_dims(w.re, -1),
                 expand_dims(w.im, -2) - expand_dims(w.im, -1)};
  const LazyTensor inverse = reciprocal_or_zero(gap.re * gap.re + gap.im * gap.im);
  return {gap.re * inverse, -gap.im * inverse};
}

/// 1 where a column has its largest element.
LazyTensor largest_of_columns(const Pair& v) {
  if (v.re.numel() == 0) return zeros_like(v.re);
  const LazyTensor square = stop_gradient(v.re * v.re + v.im * v.im);
  const LazyTensor row = iota(square.shape(), square.rank() - 2, DType::i32, square.device());
  return astype(equal(row, argmax(square, -2, true)), square.dtype());
}

LazyTensor over_columns(const LazyTensor& x) { return sum(x, -2, true); }

// Of vectors that are perturbed by m, the part along themselves is taken away that would change their length,
// and what would give their largest element a phase: c = Re(v^H m) + i Im(m at the largest) / v there.
void eig_vjp(VjpContext& c) {
  const std::int64_t n = c.inputs[0].shape(-1);
  const Eigen e = unpacked_eigen(c.output, n), g = unpacked_eigen(c.cotangent, n);
  const Pair& v = e.v;
  const LazyTensor at = largest_of_columns(v);
  const LazyTensor height = over_columns(at * v.re);
  const Pair s{over_columns(g.v.re * v.re + g.v.im * v.im), over_columns(g.v.re * v.im - g.v.im * v.re)};
  const Pair of_m{g.v.re - v.re * s.re, g.v.im - v.im * s.re + at * (s.im / height)};
  const Pair inner = conjugate(inverse_gap_pairs(e.w)) * product(adjoint(v), of_m) +
                     Pair{with_diagonal(g.w.re), with_diagonal(g.w.im)};
  const Pair turned_v = adjoint(v);
  c.grads[0] = product(divided(turned_v, inner), turned_v).re;
}
void eig_jvp(JvpContext& c) {
  const Eigen e = unpacked_eigen(c.output, c.inputs[0].shape(-1));
  const Pair& v = e.v;
  const Pair inner = divided(v, real_product(c.tangents[0], v));
  const Pair m = product(v, inverse_gap_pairs(e.w) * inner);
  const LazyTensor at = largest_of_columns(v);
  const Pair along{over_columns(v.re * m.re + v.im * m.im),
                   over_columns(at * m.im) / over_columns(at * v.re)};
  c.tangent = packed_eigen({{diagonal(inner.re), diagonal(inner.im)}, m - v * along});
}

Eigen eigen_factors(const LazyTensor& a);

void eigvals_vjp(VjpContext& c) {
  const std::int64_t n = c.inputs[0].shape(-1);
  const Pair turned_v = adjoint(eigen_factors(c.inputs[0]).v);
  Unpack parts(c.cotangent);
  const LazyTensor of_re = parts.take({n});
  const Pair inner{with_diagonal(of_re), with_diagonal(parts.take({n}))};
  c.grads[0] = product(divided(turned_v, inner), turned_v).re;
}
void eigvals_jvp(JvpContext& c) {
  const Pair v = eigen_factors(c.inputs[0]).v;
  const Pair inner = divided(v, real_product(c.tangents[0], v));
  c.tangent = concatenate({diagonal(inner.re), diagonal(inner.im)}, -1);
}

const OpDef kEig = definition("eig", eig_vjp, eig_jvp);
const OpDef kEigvals = definition("eigvals", eigvals_vjp, eigvals_jvp);

Eigen eigen_factors(const LazyTensor& a) {
  return unpacked_eigen(packed_node(kEig, MatrixRoutine::eig, a, true), a.shape(-1));
}

}  // namespace
}  // namespace matrices

EigvalsResult eigvals(const LazyTensor& x) {
  matrices::check_matrices("eigvals", x, true);
  const LazyTensor both =
      matrices::packed_node(matrices::kEigvals, MatrixRoutine::eig, matrices::on_host(x), false);
  const std::int64_t n = x.shape(-1);
  return {to(slice(both, -1, 0, n), x.device()), to(slice(both, -1, n, 2 * n), x.device())};
}

EigResult eig(const LazyTensor& x) {
  matrices::check_matrices("eig", x, true);
  const matrices::Eigen e = matrices::eigen_factors(matrices::on_host(x));
  return {to(e.w.re, x.device()), to(e.w.im, x.device()), to(e.v.re, x.device()), to(e.v.im, x.device())};
}

}  // namespace caldera
