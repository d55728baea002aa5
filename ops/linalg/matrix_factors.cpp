// The primitives that factorise matrices. Sources of the rules: M. Giles, "An extended collection of matrix
// derivative results for forward and reverse mode algorithmic differentiation" (2008), for eigh; M. Seeger et
// al., "Auto-differentiating linear algebra" (2017), for qr; J. Townsend, "Differentiating the singular value
// decomposition" (2016); G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least
// squares problems whose variables separate" (1973). They are made of ordinary operations, so they have
// derivatives in turn.
#include <fmt/core.h>

#include <algorithm>

#include "ops/core/node_builder.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/linalg/matrix_nodes.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/shape/diagonals.h"
#include "ops/shape/joining.h"

namespace caldera::matrices {
namespace {

// ---- qr (Seeger et al.) ----

Qr unpacked_qr(const LazyTensor& packed, const LazyTensor& a, bool complete) {
  const std::int64_t m = a.shape(-2), n = a.shape(-1), p = complete ? m : std::min(m, n);
  Unpack parts(packed);
  LazyTensor q = parts.take({m, p});
  return {std::move(q), parts.take({p, n})};
}

/// Throws where the factors are not functions of a.
void check_qr(const LazyTensor& a, bool complete, const char* what) {
  const std::int64_t m = a.shape(-2), n = a.shape(-1);
  if (m < n || (complete && m > n))
    throw GradientError(
        fmt::format("{}: the complete q of qr of matrices {} has columns that are arbitrary; use "
                    "QrMode::reduced",
                    what, a.shape().to_string()));
}

void qr_vjp(VjpContext& c) {
  const LazyTensor& a = c.inputs[0];
  check_qr(a, option_of(c.output), "grad");
  const auto [q, r] = unpacked_qr(c.output, a, false);
  const auto [of_q, of_r] = unpacked_qr(c.cotangent, a, false);
  const LazyTensor inner = matmul(r, turned(of_r)) - matmul(turned(of_q), q);
  const LazyTensor mirrored = tril(inner) + turned(tril(inner, -1));
  c.grads[0] = divided_by_triangle(of_q + matmul(q, mirrored), turned(r), false);
}
void qr_jvp(JvpContext& c) {
  const LazyTensor& a = c.inputs[0];
  check_qr(a, option_of(c.output), "jvp");
  const auto [q, r] = unpacked_qr(c.output, a, false);
  const LazyTensor moved = divided_by_triangle(c.tangents[0], r, true);
  const LazyTensor inner = matmul(turned(q), moved);
  const LazyTensor below = tril(inner, -1);
  const LazyTensor of_r = inner - below + turned(below);  // times r
  c.tangent = concatenate({flat(moved - matmul(q, of_r)), flat(matmul(of_r, r))}, -1);
}

// ---- svd (Townsend) ----

Svd unpacked_svd(const LazyTensor& packed, std::int64_t m, std::int64_t n, bool full) {
  const std::int64_t p = std::min(m, n);
  Unpack parts(packed);
  LazyTensor u = parts.take({m, full ? m : p});
  LazyTensor s = parts.take({p});
  return {std::move(u), std::move(s), parts.take({full ? n : p, n})};
}

void check_svd(const LazyTensor& a, bool full, const char* what) {
  if (full && a.shape(-2) != a.shape(-1))
    throw GradientError(
        fmt::format("{}: svd of matrices {} with full_matrices has vectors that are arbitrary; use "
                    "full_matrices = false",
                    what, a.shape().to_string()));
}

/// 1 / (s_j^2 - s_i^2).
LazyTensor inverse_square_gaps(const LazyTensor& s) {
  const LazyTensor row = expand_dims(s, -2), column = expand_dims(s, -1);
  return reciprocal_or_zero((row - column) * (row + column));
}

void svd_vjp(VjpContext& c) {
  const LazyTensor& a = c.inputs[0];
  const std::int64_t m = a.shape(-2), n = a.shape(-1);
  check_svd(a, option_of(c.output), "grad");
  const auto [u, s, vh] = unpacked_svd(c.output, m, n, false);
  const auto [of_u, of_s, of_vh] = unpacked_svd(c.cotangent, m, n, false);
  const LazyTensor gaps = inverse_square_gaps(s);
  const LazyTensor uu = matmul(turned(u), of_u), vv = matmul(vh, turned(of_vh));
  const LazyTensor inner = scaled_columns(gaps * (uu - turned(uu)), s) + with_diagonal(of_s) +
                           scaled_rows(s, gaps * (vv - turned(vv)));
  LazyTensor grad = matmul(matmul(u, inner), vh);
  if (m > n) grad = grad + matmul(scaled_columns(of_u - matmul(u, uu), reciprocal_or_zero(s)), vh);
  if (n > m) grad = grad + matmul(u, scaled_rows(reciprocal_or_zero(s), of_vh - matmul(turned(vv), vh)));
  c.grads[0] = grad;
}
void svd_jvp(JvpContext& c) {
  const LazyTensor& a = c.inputs[0];
  const LazyTensor& along = c.tangents[0];
  const std::int64_t m = a.shape(-2), n = a.shape(-1);
  check_svd(a, option_of(c.output), "jvp");
  const auto [u, s, vh] = unpacked_svd(c.output, m, n, false);
  const LazyTensor v = turned(vh);
  const LazyTensor gaps = inverse_square_gaps(s);
  const LazyTensor along_v = matmul(along, v), along_u = matmul(turned(u), along);
  const LazyTensor inner = matmul(along_u, v);
  LazyTensor of_u = matmul(u, gaps * (scaled_columns(inner, s) + scaled_rows(s, turned(inner))));
  LazyTensor of_v = matmul(v, gaps * (scaled_rows(s, inner) + scaled_columns(turned(inner), s)));
  const LazyTensor inverse = reciprocal_or_zero(s);
  if (m > n) of_u = of_u + scaled_columns(along_v - matmul(u, inner), inverse);
  if (n > m) of_v = of_v + scaled_columns(turned(along_u) - matmul(v, turned(inner)), inverse);
  c.tangent = concatenate({flat(of_u), diagonal(inner), flat(turned(of_v))}, -1);
}

void svdvals_vjp(VjpContext& c) {
  const Svd d = svd_factors(c.inputs[0], false);
  c.grads[0] = matmul(scaled_columns(d.u, c.cotangent), d.vh);
}
void svdvals_jvp(JvpContext& c) {
  const Svd d = svd_factors(c.inputs[0], false);
  c.tangent = sum(d.u * matmul(c.tangents[0], turned(d.vh)), -2);
}

// ---- eigh (Giles) ----

Eigh unpacked_eigh(const LazyTensor& packed, std::int64_t n) {
  Unpack parts(packed);
  LazyTensor w = parts.take({n});
  return {std::move(w), parts.take({n, n})};
}

void eigh_vjp(VjpContext& c) {
  const std::int64_t n = c.inputs[0].shape(-1);
  const auto [w, v] = unpacked_eigh(c.output, n);
  const auto [of_w, of_v] = unpacked_eigh(c.cotangent, n);
  const LazyTensor inner = with_diagonal(of_w) + inverse_gaps(w) * matmul(turned(v), of_v);
  c.grads[0] = matmul(matmul(v, inner), turned(v));
}
void eigh_jvp(JvpContext& c) {
  const auto [w, v] = unpacked_eigh(c.output, c.inputs[0].shape(-1));
  const LazyTensor inner = matmul(matmul(turned(v), c.tangents[0]), v);
  c.tangent = concatenate({diagonal(inner), flat(matmul(v, inverse_gaps(w) * inner))}, -1);
}

void eigvalsh_vjp(VjpContext& c) {
  const LazyTensor v = eigh_factors(c.inputs[0]).v;
  c.grads[0] = matmul(scaled_columns(v, c.cotangent), turned(v));
}
void eigvalsh_jvp(JvpContext& c) {
  const LazyTensor v = eigh_factors(c.inputs[0]).v;
  c.tangent = sum(v * matmul(c.tangents[0], v), -2);
}

// ---- pinv (Golub and Pereyra) ----

void pinv_vjp(VjpContext& c) {
  const LazyTensor& a = c.inputs[0];
  const LazyTensor& y = c.output;
  const LazyTensor& g = c.cotangent;
  const LazyTensor ty = turned(y), tg = turned(g);
  const LazyTensor to_left = matmul(tg, matmul(y, ty)), to_right = matmul(matmul(ty, y), tg);
  c.grads[0] = to_left - matmul(a, matmul(y, to_left)) + to_right - matmul(matmul(to_right, y), a) -
               matmul(matmul(ty, g), ty);
}
void pinv_jvp(JvpContext& c) {
  const LazyTensor& a = c.inputs[0];
  const LazyTensor& y = c.output;
  const LazyTensor ty = turned(y), along = turned(c.tangents[0]);
  const LazyTensor to_left = matmul(matmul(y, ty), along), to_right = matmul(along, matmul(ty, y));
  c.tangent = to_left - matmul(matmul(to_left, a), y) + to_right - matmul(y, matmul(a, to_right)) -
              matmul(matmul(y, c.tangents[0]), y);
}

// ---- definitions ----

const OpDef kQr = definition("qr", qr_vjp, qr_jvp);
const OpDef kSvd = definition("svd", svd_vjp, svd_jvp);
const OpDef kSvdvals = definition("svdvals", svdvals_vjp, svdvals_jvp);
const OpDef kEigh = definition("eigh", eigh_vjp, eigh_jvp);
const OpDef kEigvalsh = definition("eigvalsh", eigvalsh_vjp, eigvalsh_jvp);
const OpDef kPinv = definition("pinv", pinv_vjp, pinv_jvp);

}  // namespace

LazyTensor svdvals_node(const LazyTensor& a) { return packed_node(kSvdvals, MatrixRoutine::svdvals, a); }
LazyTensor eigvalsh_node(const LazyTensor& a) { return packed_node(kEigvalsh, MatrixRoutine::eigvalsh, a); }
LazyTensor pinv_node(const LazyTensor& a, double tolerance) {
  return make_node(kPinv, MatrixRoutine::pinv, {a, ops::scalar(tolerance, a.dtype())},
                   {a.shape(-1), a.shape(-2)});
}

Qr qr_factors(const LazyTensor& a, bool complete) {
  return unpacked_qr(packed_node(kQr, MatrixRoutine::qr, a, complete), a, complete);
}
Svd svd_factors(const LazyTensor& a, bool full) {
  return unpacked_svd(packed_node(kSvd, MatrixRoutine::svd, a, full), a.shape(-2), a.shape(-1), full);
}
Eigh eigh_factors(const LazyTensor& a) {
  return unpacked_eigh(packed_node(kEigh, MatrixRoutine::eigh, a), a.shape(-1));
}

}  // namespace caldera::matrices
