#include "ops/linalg/linalg.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "engine/graph/transfer.h"
#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/linalg/matrix_nodes.h"
#include "ops/linalg/matrix_operands.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/linalg/products.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/diagonals.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

using matrices::check_matrices;
using matrices::checked_system;
using matrices::on_host;
using matrices::System;

void check_square(const char* op, const LazyTensor& x) { check_matrices(op, x, true); }

LazyTensor symmetric_part(const LazyTensor& x) { return (x + transpose(x)) * 0.5; }

double tolerance_of(const char* op, const LazyTensor& x, std::optional<double> rtol) {
  // Written so that NaN is refused too.
  if (rtol && !(*rtol >= 0)) throw ValueError(fmt::format("{}: rtol is {}, want 0 or more", op, *rtol));
  const double epsilon = x.dtype() == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                 : std::numeric_limits<float>::epsilon();
  return rtol.value_or(epsilon * static_cast<double>(std::max(x.shape(-2), x.shape(-1))));
}

/// The transpose of a in x a = b, which is a^T x^T = b^T.
LazyTensor right_factor(const char* op, const LazyTensor& a, const LazyTensor& b) {
  check_square(op, a);
  if (b.rank() < 2)
    throw ShapeError(
        fmt::format("{}: x a = b needs matrices b, (..., K, M), got {}", op, b.shape().to_string()));
  return transpose(a);
}

/// Both tolerances of singular values: what is up to either of them counts as 0.
struct Cut {
  double relative, absolute;
};
Cut cut_of(const char* op, const LazyTensor& x, std::optional<double> rtol, std::optional<double> atol) {
  if (atol && !(*atol >= 0)) throw ValueError(fmt::format("{}: atol is {}, want 0 or more", op, *atol));
  const double absolute = atol.value_or(0);
  // As in PyTorch the relative tolerance is 0 unless it is given, where an absolute one is.
  if (!rtol && absolute > 0) return {0, absolute};
  return {tolerance_of(op, x, rtol), absolute};
}

LazyTensor host_svdvals(const LazyTensor& x) { return to(matrices::svdvals_node(on_host(x)), x.device()); }

LazyTensor first(const LazyTensor& s) { return slice(s, -1, 0, 1); }
LazyTensor last(const LazyTensor& s) { return slice(s, -1, -1, std::nullopt); }

LazyTensor norm_of(const char* op, const LazyTensor& x, double ord, bool keepdims) {
  const bool by_values = std::abs(ord) == 2, by_columns = std::abs(ord) == 1;
  if (!by_values && !by_columns && !std::isinf(ord))
    throw ValueError(fmt::format(
        "{}: ord is {}, not one of \"fro\", \"nuc\", 1, -1, 2, -2, infinity and -infinity", op, ord));
  // Sums of nothing are 0, and of no sums is none the largest.
  if ((by_columns || by_values ? x.shape(-1) : 1) == 0 || (by_columns ? 1 : x.shape(-2)) == 0)
    throw ShapeError(
        fmt::format("{}: an empty matrix has no norm of ord {} (shape {})", op, ord, x.shape().to_string()));
  if (by_values) {
    const LazyTensor s = host_svdvals(x);
    const LazyTensor norm = ord > 0 ? first(s) : last(s);
    return keepdims ? expand_dims(norm, -1) : squeeze(norm, -1);
  }
  const LazyTensor sums = sum(abs(x), by_columns ? -2 : -1, true);
  const LazyTensor norm = ord > 0 ? max(sums, {-2, -1}, true) : min(sums, {-2, -1}, true);
  return keepdims ? norm : squeeze(squeeze(norm, -1), -1);
}

LazyTensor norm_of(const char* op, const LazyTensor& x, std::string_view ord, bool keepdims) {
  if (ord == "fro") return vector_norm(x, {-2, -1}, 2, keepdims);
  if (ord != "nuc") throw ValueError(fmt::format("{}: ord is \"{}\", not \"fro\" or \"nuc\"", op, ord));
  const LazyTensor norm = sum(host_svdvals(x), -1, keepdims);
  return keepdims ? expand_dims(norm, -1) : norm;
}

template <class Order>
LazyTensor condition(const LazyTensor& x, Order ord) {
  check_square("cond", x);
  // Singular matrices have no inverse, and the condition infinity.
  const LazyTensor singular = equal(slogdet(stop_gradient(x)).sign, 0.0);
  const LazyTensor each = expand_dims(expand_dims(singular, -1), -1);
  const LazyTensor regular = where(each, matrices::identity_like(x, x.shape(-1)), x);
  const LazyTensor value = norm_of("cond", x, ord, false) * norm_of("cond", inv(regular), ord, false);
  return where(singular, full_like(value, std::numeric_limits<double>::infinity()), value);
}

}  // namespace

LazyTensor cholesky(const LazyTensor& x, bool upper) {
  check_square("cholesky", x);
  const LazyTensor lower = to(matrices::cholesky_node(symmetric_part(on_host(x))), x.device());
  return upper ? transpose(lower) : lower;
}

LazyTensor solve(const LazyTensor& a, const LazyTensor& b, bool left) {
  if (!left) return transpose(solve(right_factor("solve", a, b), transpose(b)));
  const System s = checked_system("solve", a, b, true);
  return s.answer(to(matrices::solve_node(on_host(s.a), on_host(s.b)), a.device()));
}

LazyTensor solve_triangular(const LazyTensor& a, const LazyTensor& b, bool upper, bool left,
                            bool unitriangular) {
  if (!left) {
    const LazyTensor factor = right_factor("solve_triangular", a, b);
    return transpose(solve_triangular(factor, transpose(b), !upper, true, unitriangular));
  }
  const System s = checked_system("solve_triangular", a, b, true);
  LazyTensor triangle = on_host(s.a);
  if (unitriangular)
    triangle = (upper ? triu(triangle, 1) : tril(triangle, -1)) +
               matrices::identity_like(triangle, triangle.shape(-1));
  return s.answer(to(matrices::solve_triangular_node(triangle, on_host(s.b), upper), a.device()));
}

LazyTensor inv(const LazyTensor& x) {
  check_square("inv", x);
  return to(matrices::inv_node(on_host(x)), x.device());
}

LazyTensor det(const LazyTensor& x) {
  check_square("det", x);
  return to(matrices::det_node(on_host(x)), x.device());
}

SlogdetResult slogdet(const LazyTensor& x) {
  check_square("slogdet", x);
  const LazyTensor both = to(matrices::slogdet_node(on_host(x)), x.device());
  return {squeeze(slice(both, -1, 0, 1), -1), squeeze(slice(both, -1, 1, 2), -1)};
}

QrResult qr(const LazyTensor& x, QrMode mode) {
  check_matrices("qr", x, false);
  const std::int64_t m = x.shape(-2), n = x.shape(-1);
  const LazyTensor a = on_host(x);
  if (m < n) {
    // The leading columns make q, and r of the others follows: that is the form that has gradients.
    const matrices::Qr leading = matrices::qr_factors(slice(a, -1, 0, m), false);
    const LazyTensor r =
        concatenate({leading.r, matmul(transpose(leading.q), slice(a, -1, m, std::nullopt))}, -1);
    return {to(leading.q, x.device()), to(r, x.device())};
  }
  const auto [q, r] = matrices::qr_factors(a, mode == QrMode::complete);
  return {to(q, x.device()), to(r, x.device())};
}

SvdResult svd(const LazyTensor& x, bool full_matrices) {
  check_matrices("svd", x, false);
  const auto [u, s, vh] = matrices::svd_factors(on_host(x), full_matrices);
  return {to(u, x.device()), to(s, x.device()), to(vh, x.device())};
}

LazyTensor svdvals(const LazyTensor& x) {
  check_matrices("svdvals", x, false);
  return host_svdvals(x);
}

EighResult eigh(const LazyTensor& x) {
  check_square("eigh", x);
  const auto [w, v] = matrices::eigh_factors(symmetric_part(on_host(x)));
  return {to(w, x.device()), to(v, x.device())};
}

LazyTensor eigvalsh(const LazyTensor& x) {
  check_square("eigvalsh", x);
  return to(matrices::eigvalsh_node(symmetric_part(on_host(x))), x.device());
}

LazyTensor pinv(const LazyTensor& x, std::optional<double> rtol, std::optional<double> atol, bool hermitian) {
  check_matrices("pinv", x, hermitian);
  const Cut cut = cut_of("pinv", x, rtol, atol);
  const LazyTensor a = hermitian ? symmetric_part(on_host(x)) : on_host(x);
  if (cut.absolute == 0) return to(matrices::pinv_node(a, cut.relative), x.device());
  const LazyTensor by_absolute = matrices::pinv_node(a, -cut.absolute);
  if (cut.relative == 0 || a.numel() == 0) return to(by_absolute, x.device());
  // The larger counts, of each matrix.
  const LazyTensor largest = first(host_svdvals(stop_gradient(a)));
  const LazyTensor is_relative = expand_dims(largest * cut.relative > cut.absolute, -1);
  return to(where(is_relative, matrices::pinv_node(a, cut.relative), by_absolute), x.device());
}

LazyTensor matrix_rank(const LazyTensor& x, std::optional<double> rtol, std::optional<double> atol,
                       bool hermitian) {
  check_matrices("matrix_rank", x, hermitian);
  const Cut cut = cut_of("matrix_rank", x, rtol, atol);
  const LazyTensor s = host_svdvals(hermitian ? symmetric_part(x) : x);
  if (s.shape(-1) == 0) return sum(astype(s, DType::i32), -1);
  return sum(astype(greater(s, maximum(first(s) * cut.relative, cut.absolute)), DType::i32), -1);
}

LazyTensor lstsq(const LazyTensor& a, const LazyTensor& b, std::optional<double> rtol) {
  const System s = checked_system("lstsq", a, b, false);
  const double tolerance = tolerance_of("lstsq", s.a, rtol);
  return s.answer(to(matmul(matrices::pinv_node(on_host(s.a), tolerance), on_host(s.b)), a.device()));
}

LazyTensor matrix_norm(const LazyTensor& x, std::string_view ord, bool keepdims) {
  check_matrices("matrix_norm", x, false);
  return norm_of("matrix_norm", x, ord, keepdims);
}
LazyTensor matrix_norm(const LazyTensor& x, double ord, bool keepdims) {
  check_matrices("matrix_norm", x, false);
  return norm_of("matrix_norm", x, ord, keepdims);
}

LazyTensor cond(const LazyTensor& x) {
  check_matrices("cond", x, false);
  return norm_of("cond", x, 2.0, false) / norm_of("cond", x, -2.0, false);
}
LazyTensor cond(const LazyTensor& x, double ord) {
  if (ord == 2) return cond(x);
  return condition(x, ord);
}
LazyTensor cond(const LazyTensor& x, std::string_view ord) { return condition(x, ord); }

LazyTensor matrix_power(const LazyTensor& x, std::int64_t n) {
  check_square("matrix_power", x);
  if (n == 0) return zeros_like(x) + matrices::identity_like(x, x.shape(-1));
  LazyTensor square = n < 0 ? to(matrices::power_inverse_node(on_host(x)), x.device()) : x;
  LazyTensor out;
  for (std::uint64_t left = n < 0 ? 0 - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);;) {
    if ((left & 1) != 0) out = out.defined() ? matmul(out, square) : square;
    left >>= 1;
    if (left == 0) return out;
    square = matmul(square, square);
  }
}

LazyTensor matrix_transpose(const LazyTensor& x) {
  if (x.rank() < 2)
    throw ShapeError(
        fmt::format("matrix_transpose: needs matrices, (..., M, N), got shape {}", x.shape().to_string()));
  return transpose(x);
}

}  // namespace caldera
