// The entries of lu.h, eigen.h and matrix_functions.h.
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/linalg/matrix_samples.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/operands.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Samples = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;

std::vector<LazyTensor> list_of(Tensors x) { return {x.begin(), x.end()}; }

/// Rows in another order, so that some are exchanged.
Operand exchanged(const Shape& shape) {
  Operand out = apart(shape);
  const auto n = static_cast<std::size_t>(shape.back());
  if (out.values.size() >= 2 * n)
    std::rotate(out.values.begin(), out.values.begin() + static_cast<std::ptrdiff_t>(n), out.values.end());
  return out;
}
Samples lu_samples(const Operation&) {
  Samples out;
  for (const Shape& shape : {Shape{3, 3}, Shape{1, 1}, Shape{4, 2}, Shape{2, 4}, Shape{2, 3, 3}, Shape{0, 3},
                             Shape{3, 0}, Shape{0, 2, 2}})
    out.push_back({{exchanged(shape)}});
  return out;
}

/// Operands: factors that lu_factor would give, pivots, and b.
Samples lu_solve_samples(const Operation&) {
  const Operand factors = apart({3, 3});
  const Operand pivots = index_operand({3}, {2, 3, 3}), stays = index_operand({3}, {1, 2, 3});
  const Operand b{{3, 2}}, rows{{2, 3}};
  Samples out{{{factors, pivots, b}}, {{factors, stays, {{3}}}}};
  out.push_back({{factors, pivots, b}, {{"adjoint", true}}});
  out.push_back({{factors, pivots, rows}, {{"left", false}}});
  out.push_back({{factors, pivots, rows}, {{"left", false}, {"adjoint", true}}});
  out.push_back({{apart({2, 2, 2}), index_operand({2, 2}, {2, 2, 1, 2}), {{2, 1}}}});
  return out;
}
Errors lu_solve_errors(const Operation&) {
  const Operand pivots = index_operand({2}, {1, 2});
  return {{.refusal = Refusal::shape, .operands = {{{2, 2}}, pivots, {{3, 1}}}, .mentions = "(3, 1)"},
          {.refusal = Refusal::shape, .operands = {{{3, 3}}, pivots, {{3, 1}}}, .mentions = "(2,)"},
          {.refusal = Refusal::dtype, .operands = {{{2, 2}}, {{2}}, {{2, 1}}}, .mentions = "float32"},
          {.refusal = Refusal::shape,
           .operands = {{{2, 2}}, pivots, {{2}}},
           .arguments = {{"left", false}},
           .mentions = "(2,)"}};
}

/// Rotations with what is around them: some eigenvalues are pairs.
Samples eigen_samples(const Operation&) {
  const Operand rotated{.shape = {3, 3}, .values = {0.5, -2, 0.25, 1.5, 1, -0.125, 0.375, 0.75, 3}};
  return {{{apart({3, 3})}},    {{rotated}},          {{apart({1, 1})}},
          {{apart({2, 2, 2})}}, {{apart({0, 3, 3})}}, {{apart({0, 0})}}};
}

Samples exp_samples(const Operation&) {
  Samples out{{{apart({3, 3})}}, {{apart({1, 1})}}, {{apart({2, 2, 2})}}, {{apart({0, 0})}}, {{{{4, 4}}}}};
  out.push_back({{{.shape = {2, 2}, .values = {0, 1, 0, 0}}}});
  return out;
}

Samples factor_systems(const Operation&) {
  const Operand l = apart({3, 3}, true);
  return {{{{{3, 2}}, l}},
          {{{{3, 1}}, l}, {{"upper", true}}},
          {{{{2, 3, 1}}, l}},
          {{{{4, 2}}, apart({2, 4, 4}, true)}},
          {{{{0, 2}}, apart({0, 0})}}};
}
Errors factor_system_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{3}}, {{3, 3}}}, .mentions = "(3,)"},
          {.refusal = Refusal::shape, .operands = {{{2, 1}}, {{3, 3}}}, .mentions = "(3, 3)"},
          {.refusal = Refusal::shape, .operands = {{{2, 1}}, {{2, 3}}}, .mentions = "(2, 3)"}};
}
Samples factor_samples(const Operation&) {
  Samples out{
      {{apart({3, 3}, true)}}, {{apart({1, 1}, true)}}, {{apart({2, 3, 3}, true)}}, {{apart({0, 0})}}};
  out.push_back({{apart({3, 3}, true)}, {{"upper", true}}});
  return out;
}

constexpr EntriesOf entry{.family = "matrix_functions", .types = {DType::f32, DType::f64}};

}  // namespace

std::span<const Operation> matrix_function_operations() {
  static const Operation kTable[] = {
      entry(
          "lu", "lu(x)",
          "x = p l u: a permutation, a lower triangle with ones on its diagonal, an upper one; with "
          "exchanges "
          "for the largest pivots.",
          [](Tensors x, const Arguments&) -> Results {
            const auto [p, l, u] = lu(x[0]);
            return {p, l, u};
          },
          lu_samples, matrix_errors),
      entry(
          "lu_factor", "lu_factor(x)",
          "l below the diagonal and u on and above it, and the rows, from 1, that each was exchanged with in "
          "turn.",
          [](Tensors x, const Arguments&) -> Results {
            const auto [factors, pivots] = lu_factor(x[0]);
            return {factors, astype(pivots, x[0].dtype())};  // entries have results of one type
          },
          lu_samples, matrix_errors),
      entry(
          "lu_solve", "lu_solve(lu, pivots, b, left=true, adjoint=false)",
          "The x with a x = b, or x a = b, or of a's transpose, by lu_factor(a).",
          [](Tensors x, const Arguments& a) -> Results {
            return {lu_solve(x[0], x[1], x[2], a.flag("left", true), a.flag("adjoint", false))};
          },
          lu_solve_samples, lu_solve_errors),
      entry(
          "eigvals", "eigvals(x)",
          "The eigenvalues of a general matrix, real and imaginary parts apart, in order of them.",
          [](Tensors x, const Arguments&) -> Results {
            const auto [real, imag] = eigvals(x[0]);
            return {real, imag};
          },
          eigen_samples, square_errors),
      entry(
          "eig", "eig(x)",
          "eigvals and the eigenvectors, of length 1, their element largest in magnitude real and positive. "
          "The gradient takes distinct eigenvalues.",
          [](Tensors x, const Arguments&) -> Results {
            const auto [real, imag, vectors_real, vectors_imag] = eig(x[0]);
            return {real, imag, vectors_real, vectors_imag};
          },
          eigen_samples, square_errors),
      entry("matrix_exp", "matrix_exp(x)", "The sum of x^k / k!.", call_unary<caldera::matrix_exp>,
            exp_samples, square_errors),
      entry(
          "cholesky_solve", "cholesky_solve(b, l, upper=false)",
          "The x with a x = b, by the factor of a = l l^T, or l^T l.",
          [](Tensors x, const Arguments& a) -> Results {
            return {cholesky_solve(x[0], x[1], a.flag("upper", false))};
          },
          factor_systems, factor_system_errors),
      entry(
          "cholesky_inverse", "cholesky_inverse(l, upper=false)", "The inverse of l l^T, or l^T l.",
          [](Tensors x, const Arguments& a) -> Results {
            return {cholesky_inverse(x[0], a.flag("upper", false))};
          },
          factor_samples, square_errors),
      entry(
          "multi_dot", "multi_dot({x...})",
          "The product of matrices in the order of the fewest multiplications; the first and last may be "
          "vectors.",
          kNumeric, [](Tensors x, const Arguments&) -> Results { return {multi_dot(list_of(x))}; },
          [](const Operation&) -> Samples {
            return {{{{{2, 3}}, {{3, 4}}}},
                    {{{{2, 3}}, {{3, 4}}, {{4, 1}}}},
                    {{{{5, 2}}, {{2, 6}}, {{6, 3}}, {{3, 2}}}},
                    {{{{3}}, {{3, 4}}, {{4}}}},
                    {{{{2, 0}}, {{0, 3}}}}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::value, {{{2, 3}}}, {}, "1"},
                    {Refusal::shape, {{{2, 3}}, {{2, 3}}}, {}, "(2, 3)"},
                    {Refusal::shape, {{{2, 3}}, {{3}}, {{3, 2}}}, {}, "(3,)"}};
          }),
      entry(
          "tensorinv", "tensorinv(x, ind=2)", "What gives the identity with x by tensordot over ind axes.",
          [](Tensors x, const Arguments& a) -> Results {
            const LazyTensor square = reshape(x[0], a.has("ind") ? Shape{4, 2, 2} : Shape{2, 2, 4});
            return {tensorinv(square, static_cast<int>(a.integer("ind", 2)))};
          },
          [](const Operation&) -> Samples {
            return {{{apart({4, 4})}}, {{apart({4, 4})}, {{"ind", std::int64_t{1}}}}};
          }),
      entry(
          "tensorsolve", "tensorsolve(a, b)", "The x with tensordot(a, x, rank of x) = b.",
          [](Tensors x, const Arguments&) -> Results {
            return {tensorsolve(reshape(x[0], Shape{2, 3, 6}), reshape(x[1], Shape{2, 3}))};
          },
          [](const Operation&) -> Samples {
            return {{{apart({6, 6}), {{6}}}}};
          }),
  };
  return kTable;
}

}  // namespace caldera::catalogue
