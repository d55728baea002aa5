// The table's entries of linear algebra. Samples have a diagonal that outweighs the rest of each row, and
// whose elements lie apart: so no matrix is near a singular one, and no two singular values or eigenvalues
// are near each other.
#include "ops/linalg/linalg.h"

#include <cmath>

#include "ops/ops.h"
#include "tests/catalogue/linalg/matrix_samples.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

constexpr Types kLapack{DType::f32, DType::f64};

std::vector<Sample> over(std::initializer_list<Shape> shapes, bool positive = false,
                         const Arguments& arguments = {}) {
  std::vector<Sample> out;
  for (const Shape& shape : shapes) out.push_back({{apart(shape, positive)}, arguments});
  return out;
}

void append(std::vector<Sample>& to, std::vector<Sample> more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::vector<Sample> square_samples(const Operation&) {
  return over({{3, 3}, {1, 1}, {2, 2}, {5, 5}, {2, 3, 3}, {2, 1, 4, 4}, {0, 0}, {2, 0, 0}, {0, 3, 3}});
}
std::vector<Sample> any_shape_samples(const Operation&) {
  return over(
      {{3, 3}, {1, 1}, {3, 2}, {2, 3}, {5, 3}, {2, 4}, {2, 4, 3}, {1, 4}, {4, 1}, {0, 3}, {3, 0}, {0, 2, 3}});
}

// ---- calls with arguments ----

std::vector<Sample> cholesky_samples(const Operation&) {
  std::vector<Sample> out =
      over({{3, 3}, {1, 1}, {2, 2}, {5, 5}, {2, 3, 3}, {2, 1, 4, 4}, {0, 0}, {0, 3, 3}}, true);
  append(out, over({{3, 3}, {2, 4, 4}}, true, {{"upper", true}}));
  return out;
}

std::vector<Sample> systems(std::initializer_list<std::pair<Shape, Shape>> shapes,
                            const Arguments& arguments = {}) {
  std::vector<Sample> out;
  for (const auto& [a, b] : shapes) out.push_back({{apart(a), {b}}, arguments});
  return out;
}
std::vector<Sample> solve_samples(const Operation&) {
  return systems({{{3, 3}, {3}},
                  {{3, 3}, {3, 2}},
                  {{1, 1}, {1}},
                  {{5, 5}, {5, 1}},
                  {{2, 3, 3}, {3}},
                  {{2, 3, 3}, {3, 1}},
                  {{2, 3, 3}, {2, 3, 2}},
                  {{3, 3}, {2, 3, 4}},
                  {{2, 1, 3, 3}, {4, 3, 2}},
                  {{0, 0}, {0, 2}},
                  {{3, 3}, {3, 0}},
                  {{0, 3, 3}, {3, 2}}});
}
std::vector<Sample> solve_triangular_samples(const Operation& operation) {
  std::vector<Sample> out = solve_samples(operation);
  append(out, systems({{{3, 3}, {3}}, {{4, 4}, {4, 3}}, {{2, 3, 3}, {3, 2}}}, {{"upper", true}}));
  return out;
}
std::vector<Sample> lstsq_samples(const Operation&) {
  std::vector<Sample> out = systems({{{5, 3}, {5}},
                                     {{5, 3}, {5, 2}},
                                     {{3, 5}, {3, 2}},
                                     {{3, 3}, {3}},
                                     {{2, 4, 3}, {4, 1}},
                                     {{4, 3}, {2, 4, 2}},
                                     {{0, 3}, {0, 2}}});
  append(out, systems({{{4, 3}, {4}}, {{3, 4}, {3, 2}}}, {{"rtol", 0.125}}));
  return out;
}
std::vector<ErrorSample> system_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{3, 3}}, {{2}}}, .mentions = "(2,)"},
          {.refusal = Refusal::shape, .operands = {{{3, 3}}, {{2, 3}}}, .mentions = "(2, 3)"},
          {.refusal = Refusal::shape, .operands = {{{3, 3}}, {{}}}, .mentions = "()"},
          {.refusal = Refusal::shape, .operands = {{{3}}, {{3}}}, .mentions = "(3,)"},
          {.refusal = Refusal::shape, .operands = {{{2, 3, 3}}, {{4, 3, 1}}}, .mentions = "(4, 3, 1)"},
          {.refusal = Refusal::dtype,
           .operands = {{{2, 2}}, {{2}}},
           .mentions = "bfloat16",
           .type = DType::bf16}};
}
std::vector<ErrorSample> lstsq_errors(const Operation& operation) {
  std::vector<ErrorSample> out = system_errors(operation);
  out.push_back({Refusal::value, {{{2, 2}}, {{2}}}, {{"rtol", -1.0}}, "-1"});
  return out;
}
std::vector<ErrorSample> square_system_errors(const Operation& operation) {
  std::vector<ErrorSample> out = system_errors(operation);
  out.push_back({.refusal = Refusal::shape, .operands = {{{2, 3}}, {{2}}}, .mentions = "(2, 3)"});
  return out;
}

std::vector<Sample> det_samples(const Operation& operation) {
  std::vector<Sample> out = square_samples(operation);
  out.push_back({{{.shape = {2, 2}, .values = {1, 2, 2, 4}}}});
  out.push_back({{{.shape = {2, 2}, .values = {0, 0, 0, 0}}}});
  out.push_back({{{.shape = {3, 3}, .values = {1, 2, 3, 2, 4, 6, -1, 0.5, 1}}}});
  return out;
}

std::vector<Sample> qr_samples(const Operation& operation) {
  std::vector<Sample> out = any_shape_samples(operation);
  append(out, over({{3, 3}, {2, 4}, {2, 2, 3}}, false, {{"mode", std::string("complete")}}));
  return out;
}
Results call_qr(Tensors x, const Arguments& a) {
  const auto [q, r] = qr(x[0], a.text("mode", "reduced") == "complete" ? QrMode::complete : QrMode::reduced);
  return {q, r};
}

std::vector<Sample> svd_samples(const Operation&) {
  std::vector<Sample> out =
      over({{3, 3}, {1, 1}, {2, 4, 4}, {0, 0}});  // full_matrices: of others there is no gradient
  append(out, over({{3, 2}, {2, 3}, {5, 3}, {2, 4}, {2, 4, 3}, {1, 4}, {4, 1}, {0, 3}, {3, 0}}, false,
                   {{"full_matrices", false}}));
  return out;
}
Results call_svd(Tensors x, const Arguments& a) {
  const auto [u, s, vh] = svd(x[0], a.flag("full_matrices", true));
  return {u, s, vh};
}
Results call_eigh(Tensors x, const Arguments&) {
  const auto [w, v] = eigh(x[0]);
  return {w, v};
}
Results call_slogdet(Tensors x, const Arguments&) {
  const auto [sign, logarithm] = slogdet(x[0]);
  return {sign, logarithm};
}

std::optional<double> rtol_of(const Arguments& a) {
  return a.has("rtol") ? std::optional<double>(a.real("rtol", 0)) : std::nullopt;
}
std::optional<double> atol_of(const Arguments& a) {
  return a.has("atol") ? std::optional<double>(a.real("atol", 0)) : std::nullopt;
}
std::vector<Sample> tolerance_samples(double atol, double rtol) {
  std::vector<Sample> out = over({{4, 3}, {3, 4}}, false, {{"atol", atol}});
  append(out, over({{3, 4}}, false, {{"atol", 0.5}, {"rtol", rtol}}));
  append(out, over({{4, 3}}, false, {{"atol", atol}, {"rtol", 0.125}}));
  append(out, over({{3, 3}}, false, {{"hermitian", true}}));
  return out;
}
std::vector<Sample> pinv_samples(const Operation& operation) {
  std::vector<Sample> out = any_shape_samples(operation);
  append(out, over({{4, 3}, {3, 4}}, false, {{"rtol", 0.125}}));
  return out;
}
std::vector<ErrorSample> pinv_errors(const Operation& operation) {
  std::vector<ErrorSample> out = matrix_errors(operation);
  out.push_back({Refusal::value, {{{2, 2}}}, {{"rtol", -1.0}}, "-1"});
  out.push_back({Refusal::value, {{{2, 2}}}, {{"atol", -1.0}}, "-1"});
  return out;
}
std::vector<Sample> rank_samples(const Operation& operation) {
  std::vector<Sample> out = pinv_samples(operation);
  append(out, over({{4, 3}, {2, 3, 4}}, false, {{"rtol", 0.5}}));
  out.push_back({{{.shape = {2, 2}, .values = {1, 2, 2, 4}}}});
  out.push_back({{{.shape = {2, 3}, .values = {0, 0, 0, 0, 0, 0}}}});
  out.push_back({{{.shape = {2, 2, 2}, .values = {1, 2, 2, 4, 1, 0, 0, 1}}}});
  return out;
}

/// Calls f with the argument `ord`, which is a number or a name.
template <class F>
LazyTensor with_order(const Arguments& a, F f) {
  for (const auto& [key, value] : a.values()) {
    if (key == "ord") {
      if (const auto* number = std::get_if<double>(&value)) return f(*number);
      return f(std::string_view(std::get<std::string>(value)));
    }
  }
  return f(std::string_view("fro"));
}
const std::vector<Arguments::Value>& orders() {
  static const std::vector<Arguments::Value> kAll{
      std::string("fro"), std::string("nuc"), 1.0, -1.0, 2.0, -2.0, HUGE_VAL, -HUGE_VAL};
  return kAll;
}
Results call_norm(Tensors x, const Arguments& a) {
  return {with_order(a, [&](auto ord) { return matrix_norm(x[0], ord, a.flag("keepdims", false)); })};
}
std::vector<Sample> norm_samples(const Operation&) {
  std::vector<Sample> out = over({{3, 4}, {1, 1}, {0, 3}});
  for (const Arguments::Value& ord : orders()) {
    append(out, over({{3, 4}, {2, 3, 3}, {4, 2}}, false, {{"ord", ord}}));
    append(out, over({{2, 3, 2}}, false, {{"ord", ord}, {"keepdims", true}}));
  }
  return out;
}
std::vector<ErrorSample> norm_errors(const Operation& operation) {
  std::vector<ErrorSample> out = matrix_errors(operation);
  out.push_back({Refusal::value, {{{2, 2}}}, {{"ord", 3.0}}, "3"});
  out.push_back({Refusal::value, {{{2, 2}}}, {{"ord", std::string("max")}}, "max"});
  out.push_back({Refusal::shape, {{{0, 2}}}, {{"ord", 2.0}}, "(0, 2)"});
  return out;
}

Results call_cond(Tensors x, const Arguments& a) {
  if (!a.has("ord")) return {cond(x[0])};
  return {with_order(a, [&](auto ord) { return cond(x[0], ord); })};
}
std::vector<Sample> cond_samples(const Operation&) {
  std::vector<Sample> out = over({{3, 3}, {1, 1}, {4, 2}, {2, 3, 3}, {0, 2, 2}});
  for (const Arguments::Value& ord : orders()) append(out, over({{3, 3}, {2, 4, 4}}, false, {{"ord", ord}}));
  return out;
}

std::vector<Sample> power_samples(const Operation&) {
  std::vector<Sample> out;
  for (const std::int64_t n : {0, 1, 2, 5, -1, -3}) append(out, over({{3, 3}, {2, 2, 2}}, false, {{"n", n}}));
  append(out, over({{0, 0}}, false, {{"n", std::int64_t{3}}}));
  return out;
}

std::vector<ErrorSample> transpose_errors(const Operation&) {
  return {{.refusal = Refusal::shape, .operands = {{{3}}}, .mentions = "(3,)"},
          {.refusal = Refusal::shape, .operands = {{{}}}, .mentions = "()"}};
}
std::vector<Sample> transpose_samples(const Operation&) {
  return {{{{{2, 3}}}}, {{{{1, 7}}}}, {{{{2, 3, 4}}}}, {{{{0, 3}}}}};
}

constexpr EntriesOf entry{
    .family = "linalg", .types = kLapack, .result = ResultType::same, .gradient = Gradient::full};

}  // namespace

std::span<const Operation> linalg_operations() {
  static const Operation kTable[] = {
      entry(
          "cholesky", "cholesky(x, upper=false)",
          "The lower triangular L with L L^T = x, or its transpose. Of x counts the symmetric part; "
          "evaluation fails unless it is positive definite.",
          [](Tensors x, const Arguments& a) -> Results { return {cholesky(x[0], a.flag("upper", false))}; },
          cholesky_samples, square_errors),
      entry(
          "solve", "solve(a, b, left=true)",
          "The x with a x = b, for b a vector or matrices; without left that with x a = b. Evaluation fails "
          "where a is singular.",
          [](Tensors x, const Arguments& a) -> Results { return {solve(x[0], x[1], a.flag("left", true))}; },
          [](const Operation& operation) {
            std::vector<Sample> out = solve_samples(operation);
            append(out, systems({{{3, 3}, {2, 3}}, {{2, 3, 3}, {1, 3}}}, {{"left", false}}));
            return out;
          },
          square_system_errors),
      entry(
          "solve_triangular", "solve_triangular(a, b, upper=false, left=true, unitriangular=false)",
          "solve of a triangular a, of which nothing else is read; of a unitriangular one not the diagonal.",
          [](Tensors x, const Arguments& a) -> Results {
            return {solve_triangular(x[0], x[1], a.flag("upper", false), a.flag("left", true),
                                     a.flag("unitriangular", false))};
          },
          [](const Operation& operation) {
            std::vector<Sample> out = solve_triangular_samples(operation);
            append(out, systems({{{3, 3}, {2, 3}}}, {{"left", false}}));
            append(out, systems({{{3, 3}, {2, 3}}}, {{"left", false}, {"upper", true}}));
            for (const bool upper : {false, true})
              append(out, systems({{{3, 3}, {3, 2}}}, {{"unitriangular", true}, {"upper", upper}}));
            return out;
          },
          square_system_errors),
      entry("inv", "inv(x)", "The inverse. Evaluation fails where x is singular.", call_unary<caldera::inv>,
            square_samples, square_errors),
      entry("det", "det(x)", "The determinant. Its gradient is right for singular matrices, too.",
            call_unary<caldera::det>, det_samples, square_errors),
      entry("slogdet", "slogdet(x)",
            "Sign and logarithm of the determinant's magnitude: 0 and -infinity of a singular matrix, whose "
            "gradient fails.",
            call_slogdet, square_samples, square_errors),
      entry("qr", "qr(x, mode=\"reduced\")",
            "x = q r, where no element of r's diagonal is negative (others leave the signs to LAPACK). Of "
            "more rows than columns the complete q has no gradient.",
            call_qr, qr_samples, matrix_errors),
      entry("svd", "svd(x, full_matrices=true)",
            "x = u diag(s) vh. In each column of u the element largest in magnitude is positive. The "
            "gradient of u and vh takes distinct s, and with full_matrices square x.",
            call_svd, svd_samples, matrix_errors),
      entry("svdvals", "svdvals(x)", "The singular values, from the largest down.",
            call_unary<caldera::svdvals>, any_shape_samples, matrix_errors),
      entry("eigh", "eigh(x)",
            "Eigenvalues, ascending, and eigenvectors of the symmetric part of x; signs of the vectors as in "
            "svd. The gradient of the vectors takes distinct eigenvalues.",
            call_eigh, square_samples, square_errors),
      entry("eigvalsh", "eigvalsh(x)", "The eigenvalues of the symmetric part of x, ascending.",
            call_unary<caldera::eigvalsh>, square_samples, square_errors),
      entry(
          "pinv", "pinv(x, rtol=max(M, N) * eps, atol=0, hermitian=false)",
          "The pseudo-inverse. Singular values up to rtol * the largest, or to atol, count as 0; the "
          "gradient "
          "is that at constant rank. Of hermitian matrices counts the symmetric part.",
          [](Tensors x, const Arguments& a) -> Results {
            return {pinv(x[0], rtol_of(a), atol_of(a), a.flag("hermitian", false))};
          },
          [](const Operation& operation) {
            std::vector<Sample> out = pinv_samples(operation);
            // No value is cut off: where one is that is not 0, the gradient is another function's.
            append(out, tolerance_samples(1, 0.25));
            return out;
          },
          pinv_errors),
      entry(
          "matrix_rank", "matrix_rank(x, rtol=max(M, N) * eps, atol=0, hermitian=false)",
          "How many singular values exceed both rtol * the largest and atol.",
          [](Tensors x, const Arguments& a) -> Results {
            return {matrix_rank(x[0], rtol_of(a), atol_of(a), a.flag("hermitian", false))};
          },
          [](const Operation& operation) {
            std::vector<Sample> out = rank_samples(operation);
            append(out, tolerance_samples(3, 0.5));
            return out;
          },
          pinv_errors, ResultType::index, Gradient::none),
      entry(
          "lstsq", "lstsq(a, b, rtol=max(M, N) * eps)",
          "The x of least norm among those with the least norm of a x - b.",
          [](Tensors x, const Arguments& a) -> Results { return {lstsq(x[0], x[1], rtol_of(a))}; },
          lstsq_samples, lstsq_errors),
      entry("matrix_norm", "matrix_norm(x, ord=\"fro\", keepdims=false)",
            "\"fro\", \"nuc\" (the sum of singular values), 2 and -2 (the largest and least of them), 1 and "
            "-1 (sums of |x| over columns), infinity and -infinity (over rows).",
            call_norm, norm_samples, norm_errors),
      entry("cond", "cond(x, ord=2)",
            "norm(x) norm(inv(x)); in the 2-norm of any matrices, infinite for singular ones.", call_cond,
            cond_samples, matrix_errors),
      entry(
          "matrix_power", "matrix_power(x, n)",
          "x multiplied with itself n times; of negative n the inverse, of 0 the identity.",
          [](Tensors x, const Arguments& a) -> Results { return {matrix_power(x[0], a.integer("n", 1))}; },
          power_samples, square_errors),
      {.name = "matrix_transpose",
       .family = "linalg",
       .signature = "matrix_transpose(x)",
       .summary = "Swaps the last two axes.",
       .types = kAnyType,
       .call = call_unary<caldera::matrix_transpose>,
       .samples = transpose_samples,
       .errors = transpose_errors},
  };
  return kTable;
}

}  // namespace caldera::catalogue
