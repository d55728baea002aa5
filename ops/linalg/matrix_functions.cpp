#include "ops/linalg/matrix_functions.h"

#include <fmt/core.h>

#include <limits>

#include "engine/graph/transfer.h"
#include "ops/core/broadcast.h"
#include "ops/linalg/linalg.h"
#include "ops/linalg/matmul.h"
#include "ops/linalg/matrix_nodes.h"
#include "ops/linalg/matrix_operands.h"
#include "ops/linalg/matrix_rules.h"

namespace caldera {
namespace {

struct Chain {
  std::vector<LazyTensor> factors;
  std::vector<std::int64_t> extents;  // factor i is extents[i] x extents[i + 1]
  std::vector<std::vector<std::size_t>> split;

  /// Where each product of neighbours is divided: the classic dynamic programme.
  void plan() {
    const std::size_t n = factors.size();
    split.assign(n, std::vector<std::size_t>(n));
    std::vector<std::vector<double>> cost(n, std::vector<double>(n));
    for (std::size_t length = 1; length < n; ++length) {
      for (std::size_t i = 0; i + length < n; ++i) {
        const std::size_t j = i + length;
        cost[i][j] = std::numeric_limits<double>::infinity();
        for (std::size_t k = i; k < j; ++k) {
          const double own = static_cast<double>(extents[i]) * static_cast<double>(extents[k + 1]) *
                             static_cast<double>(extents[j + 1]);
          const double total = cost[i][k] + cost[k + 1][j] + own;
          if (total >= cost[i][j]) continue;
          cost[i][j] = total;
          split[i][j] = k;
        }
      }
    }
  }
  LazyTensor product(std::size_t i, std::size_t j) const {
    if (i == j) return factors[i];
    const std::size_t k = split[i][j];
    return matmul(product(i, k), product(k + 1, j));
  }
};

std::int64_t count_of(const Shape& shape, int first, int last) {
  std::int64_t n = 1;
  for (int i = first; i < last; ++i) n *= shape[i];
  return n;
}

}  // namespace

LazyTensor matrix_exp(const LazyTensor& x) {
  matrices::check_matrices("matrix_exp", x, true);
  return to(matrices::exp_node(matrices::on_host(x)), x.device());
}

LazyTensor cholesky_solve(const LazyTensor& b, const LazyTensor& l, bool upper) {
  if (b.rank() < 2)
    throw ShapeError(
        fmt::format("cholesky_solve: b is matrices, (..., M, K), got {}", b.shape().to_string()));
  const matrices::System s = matrices::checked_system("cholesky_solve", l, b, true);
  const LazyTensor lower = upper ? transpose(matrices::on_host(s.a)) : matrices::on_host(s.a);
  const LazyTensor half = matrices::solve_triangular_node(lower, matrices::on_host(s.b), false);
  return to(matrices::solve_triangular_node(transpose(lower), half, true), l.device());
}

LazyTensor cholesky_inverse(const LazyTensor& l, bool upper) {
  matrices::check_matrices("cholesky_inverse", l, true);
  const LazyTensor factor = matrices::on_host(l);
  const LazyTensor lower = upper ? transpose(factor) : factor;
  const LazyTensor unit = broadcast_to(matrices::identity_like(factor, factor.shape(-1)), factor.shape());
  const LazyTensor inverse = matrices::solve_triangular_node(lower, unit, false);
  return to(matmul(transpose(inverse), inverse), l.device());
}

LazyTensor multi_dot(const std::vector<LazyTensor>& given) {
  if (given.size() < 2)
    throw ValueError(fmt::format("multi_dot: {} matrices, want two or more", given.size()));
  for (const LazyTensor& factor : given)
    ops::check_domain("multi_dot", ScalarDomain::numeric, factor.dtype());
  Chain chain{.factors = given, .extents = {}, .split = {}};
  const std::size_t last = given.size() - 1;
  const bool row = given[0].rank() == 1, column = given[last].rank() == 1;
  if (row) chain.factors[0] = expand_dims(given[0], 0);
  if (column) chain.factors[last] = expand_dims(given[last], 1);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const LazyTensor& factor = chain.factors[i];
    if (factor.rank() != 2)
      throw ShapeError(fmt::format("multi_dot: operand {} is {}, want a matrix{}", i,
                                   given[i].shape().to_string(), i == 0 || i == last ? " or a vector" : ""));
    if (i > 0 && factor.shape(0) != chain.extents.back())
      throw ShapeError(fmt::format("multi_dot: operand {} of {} has no product with {}", i,
                                   given[i].shape().to_string(), given[i - 1].shape().to_string()));
    if (i == 0) chain.extents.push_back(factor.shape(0));
    chain.extents.push_back(factor.shape(1));
  }
  chain.plan();
  LazyTensor out = chain.product(0, last);
  if (column) out = squeeze(out, 1);
  return row ? squeeze(out, 0) : out;
}

LazyTensor tensorinv(const LazyTensor& x, int ind) {
  if (ind < 1) throw ValueError(fmt::format("tensorinv: ind is {}, want 1 or more", ind));
  const std::int64_t n = ind <= x.rank() ? count_of(x.shape(), 0, ind) : -1;
  if (ind >= x.rank() || n != count_of(x.shape(), ind, x.rank()))
    throw ShapeError(
        fmt::format("tensorinv: the first {} extents of {} and the others have different products", ind,
                    x.shape().to_string()));
  const LazyTensor square = reshape(x, Shape{n, n});
  matrices::check_matrices("tensorinv", square, true);
  Shape shape;
  for (int i = ind; i < x.rank(); ++i) shape.push_back(x.shape(i));
  for (int i = 0; i < ind; ++i) shape.push_back(x.shape(i));
  return reshape(inv(square), shape);
}

LazyTensor tensorsolve(const LazyTensor& a, const LazyTensor& b) {
  const std::int64_t n = b.numel();
  const int own = b.rank();
  bool fits = a.rank() >= own && count_of(a.shape(), own, a.rank()) == n;
  for (int i = 0; fits && i < own; ++i) fits = a.shape(i) == b.shape(i);
  if (!fits)
    throw ShapeError(
        fmt::format("tensorsolve: {} does not begin with the axes of {}, or the others have "
                    "another product",
                    a.shape().to_string(), b.shape().to_string()));
  const LazyTensor square = reshape(a, Shape{n, n});
  matrices::check_matrices("tensorsolve", square, true);
  Shape shape;
  for (int i = own; i < a.rank(); ++i) shape.push_back(a.shape(i));
  return reshape(solve(square, reshape(b, Shape{n})), shape);
}

}  // namespace caldera
