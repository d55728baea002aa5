#include "ops/linalg/lu.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/graph/transfer.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/gather_scatter.h"
#include "ops/index/scatter.h"
#include "ops/linalg/linalg.h"
#include "ops/linalg/matmul.h"
#include "ops/linalg/matrix_nodes.h"
#include "ops/linalg/matrix_operands.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/shape/diagonals.h"
#include "ops/shape/joining.h"

namespace caldera {
namespace {

using matrices::identity_like;
using matrices::solve_triangular_node;
using matrices::turned;

/// Of matrices with P = min(M, N): the leading square parts of both factors, and what is left of the longer.
struct Triangles {
  LazyTensor l, u;               // square
  LazyTensor l_below, u_behind;  // defined where there is something
};

LazyTensor rows_of(const LazyTensor& x, std::int64_t first, std::int64_t last) {
  return slice(x, -2, first, last);
}
LazyTensor columns_of(const LazyTensor& x, std::int64_t first, std::int64_t last) {
  return slice(x, -1, first, last);
}

LazyTensor unit_lower(const LazyTensor& x) { return tril(x, -1) + identity_like(x, x.shape(-1)); }

Triangles triangles_of(const LazyTensor& packed) {
  const std::int64_t m = packed.shape(-2), n = packed.shape(-1), p = std::min(m, n);
  const LazyTensor leading = columns_of(rows_of(packed, 0, p), 0, p);
  Triangles out{.l = unit_lower(leading), .u = triu(leading), .l_below = {}, .u_behind = {}};
  if (m > n) out.l_below = rows_of(packed, p, m);
  if (n > m) out.u_behind = columns_of(packed, p, n);
  return out;
}

/// The parts of something of the matrices' shape that belong to them.
struct Parts {
  LazyTensor leading, below, behind;
};
Parts parts_of(const LazyTensor& x) {
  const std::int64_t m = x.shape(-2), n = x.shape(-1), p = std::min(m, n);
  Parts out{.leading = columns_of(rows_of(x, 0, p), 0, p), .below = {}, .behind = {}};
  if (m > n) out.below = rows_of(x, p, m);
  if (n > m) out.behind = columns_of(x, p, n);
  return out;
}
LazyTensor in_one_matrix(const Parts& parts) {
  if (parts.below.defined()) return concatenate({parts.leading, parts.below}, -2);
  return parts.behind.defined() ? concatenate({parts.leading, parts.behind}, -1) : parts.leading;
}

/// x u^-1 and l^-T x, of the square factors.
LazyTensor over_u(const LazyTensor& x, const LazyTensor& u) {
  return matrices::divided_by_triangle(x, u, true);
}
LazyTensor under_l(const LazyTensor& x, const LazyTensor& l) { return solve_triangular_node(l, x, false); }
LazyTensor under_turned_l(const LazyTensor& x, const LazyTensor& l) {
  return solve_triangular_node(turned(l), x, true);
}
LazyTensor over_turned_u(const LazyTensor& x, const LazyTensor& u) {
  return matrices::divided_by_triangle(x, turned(u), false);
}

// The packed factors (input 0, a value) as a function of the matrix with its rows exchanged (input 1). With
// F = l^-1 da u^-1 of the leading part, dl = l tril(F, -1) and du = triu(F) u; below it l = a u^-1, behind it
// u = l^-1 a.
void lu_vjp(VjpContext& c) {
  const Triangles t = triangles_of(c.output);
  const Parts g = parts_of(c.cotangent);
  Parts out;
  LazyTensor of_l = tril(g.leading, -1), of_u = triu(g.leading);
  if (g.below.defined()) {
    out.below = over_turned_u(g.below, t.u);
    of_u = of_u - matmul(turned(t.l_below), out.below);
  }
  if (g.behind.defined()) {
    out.behind = under_turned_l(g.behind, t.l);
    of_l = of_l - matmul(out.behind, turned(t.u_behind));
  }
  const LazyTensor inner = tril(matmul(turned(t.l), of_l), -1) + triu(matmul(of_u, turned(t.u)));
  out.leading = over_turned_u(under_turned_l(inner, t.l), t.u);
  c.grads[1] = in_one_matrix(out);
}
void lu_jvp(JvpContext& c) {
  const Triangles t = triangles_of(c.output);
  const Parts along = parts_of(c.tangents[1]);
  const LazyTensor inner = over_u(under_l(along.leading, t.l), t.u);
  const LazyTensor of_l = matmul(t.l, tril(inner, -1)), of_u = matmul(triu(inner), t.u);
  Parts out{.leading = of_l + of_u, .below = {}, .behind = {}};
  if (along.below.defined()) out.below = over_u(along.below - matmul(t.l_below, of_u), t.u);
  if (along.behind.defined()) out.behind = under_l(along.behind - matmul(of_l, t.u_behind), t.l);
  c.tangent = in_one_matrix(out);
}
const OpDef kFactors{.name = "lu", .kind = OpClass::identity, .vjp = lu_vjp, .jvp = lu_jvp};

/// On the CPU: the packed factors, the order of the rows, and their exchanges, both i32.
struct Factors {
  LazyTensor packed, order, pivots;
};
Factors factors_of(const LazyTensor& a) {
  const matrices::Lu raw = matrices::lu_node(stop_gradient(a));
  const LazyTensor order = astype(raw.order, DType::i32);
  const LazyTensor exchanged = take_along_axis(a, expand_dims(order, -1), -2);
  return {ops::make(kFactors, a.shape(), a.dtype(), {raw.packed, exchanged}), order,
          astype(raw.pivots, DType::i32)};
}

}  // namespace

LuResult lu(const LazyTensor& x) {
  matrices::check_matrices("lu", x, false);
  const Factors factors = factors_of(matrices::on_host(x));
  const Triangles t = triangles_of(factors.packed);
  // Row i of the identity stands where row i of x went: its column is that of l's row.
  const std::int64_t m = x.shape(-2);
  const LazyTensor row = iota(Shape{m, 1}, 0, DType::i32, factors.order.device());
  const LazyTensor p = astype(equal(row, expand_dims(factors.order, -2)), x.dtype());
  const LazyTensor l = t.l_below.defined() ? concatenate({t.l, t.l_below}, -2) : t.l;
  const LazyTensor u = t.u_behind.defined() ? concatenate({t.u, t.u_behind}, -1) : t.u;
  return {to(p, x.device()), to(l, x.device()), to(u, x.device())};
}

LuFactorResult lu_factor(const LazyTensor& x) {
  matrices::check_matrices("lu_factor", x, false);
  const Factors factors = factors_of(matrices::on_host(x));
  return {to(factors.packed, x.device()), to(factors.pivots, x.device())};
}

LazyTensor lu_solve(const LazyTensor& lu, const LazyTensor& pivots, const LazyTensor& b, bool left,
                    bool adjoint) {
  if (!left) {
    if (b.rank() < 2)
      throw ShapeError(
          fmt::format("lu_solve: x a = b needs matrices b, (..., K, M), got {}", b.shape().to_string()));
    return turned(lu_solve(lu, pivots, turned(b), true, !adjoint));
  }
  const matrices::System s = matrices::checked_system("lu_solve", lu, b, true);
  if (!is_integral(pivots.dtype()))
    throw DTypeError(fmt::format("lu_solve: pivots are {}, want integers", name(pivots.dtype())));
  const auto all_but_last = [](const LazyTensor& x) {
    return Shape(x.shape().span().first(static_cast<std::size_t>(x.rank() - 1)));
  };
  const Shape rows = all_but_last(lu);
  if (pivots.shape() != rows)
    throw ShapeError(fmt::format("lu_solve: pivots of {} for factors of {}", pivots.shape().to_string(),
                                 lu.shape().to_string()));
  const LazyTensor a = matrices::on_host(s.a), right = matrices::on_host(s.b);
  const LazyTensor l = unit_lower(a), u = triu(a);
  const LazyTensor exchanges = broadcast_to(astype(matrices::on_host(pivots), a.dtype()), all_but_last(a));
  const LazyTensor order = expand_dims(astype(matrices::exchanges_node(exchanges), DType::i32), -1);
  LazyTensor x;
  if (adjoint) {
    // a^T = u^T l^T p^T.
    const LazyTensor inner = under_turned_l(solve_triangular_node(turned(u), right, false), l);
    x = put_along_axis(zeros_like(inner), order, inner, -2);
  } else {
    x = solve_triangular_node(u, under_l(take_along_axis(right, order, -2), l), true);
  }
  return s.answer(to(x, lu.device()));
}

}  // namespace caldera
