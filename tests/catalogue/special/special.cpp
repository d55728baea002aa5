// The entries of the family `special`.
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;

/// A few shapes: what is long to compute is long to compile for a GPU, too.
std::vector<Sample> few_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  return {{{{{7}, range}}}, {{{{}, range}}}, {{{{0, 3}, range}}}};
}

std::vector<Sample> order_samples(const Operation& operation) {
  std::vector<Sample> out;
  // Of higher orders results are large next to poles.
  constexpr Range away{.low = 1, .high = 7};
  for (const std::int64_t n : {0, 1}) out.push_back({{{{7}, operation.ranges[0]}}, {{"n", n}}});
  out.push_back({{{{7}, away}}, {{"n", std::int64_t{4}}}});
  out.push_back({{{{0, 3}, operation.ranges[0]}}, {{"n", std::int64_t{3}}}});
  return out;
}

std::vector<Sample> zeta_samples(const Operation& operation) {
  const Range s = operation.ranges[0], q = operation.ranges[1];
  return {{{{{3}, s}, {{2, 3}, q}}}, {{{{0, 3}, s}, {{3}, q}}}};
}

/// There is no gradient in a, which is a number here: tests/ops/special has tensors of it.
template <LazyTensor (*F)(const LazyTensor&, const LazyTensor&)>
Results call_of_shape(Tensors x, const Arguments& a) {
  return {F(a.real("a", 1), x[0])};
}
std::vector<Sample> shape_samples(const Operation& operation) {
  const Range range = operation.ranges[0];
  std::vector<Sample> out;
  for (const double a : {0.375, 2.5, 12.0}) out.push_back({{{{7}, range}}, {{"a", a}}});
  // Of larger shapes PyTorch has ten digits.
  out.push_back({{{{5}, Range{.low = 8, .high = 15.9375}}}, {{"a", 15.0}}});
  out.push_back({{{{0, 3}, range}}, {{"a", 2.0}}});
  return out;
}

std::vector<Sample> dimension_samples(const Operation& operation) {
  return {{{{{7}, operation.ranges[0]}}, {{"p", std::int64_t{4}}}}};
}

/// Integers are four times as large.
constexpr Range kPositive{.low = 0.25, .high = 4, .offset = 1.0 / 64};
/// Between the poles.
constexpr Range kBetweenPoles{.low = -3, .high = 7, .away_from_zero = 0.125, .offset = 1.0 / 32};
constexpr Range kAround{.low = -3, .high = 3, .away_from_zero = 0.125, .offset = 1.0 / 64};
constexpr EntriesOf entry{.family = "special",
                          .types = kAnyType,
                          .result = ResultType::floating,
                          .ranges = {kAround},
                          .samples = few_samples};

}  // namespace

std::span<const Operation> special_operations() {
  static const Operation kTable[] = {
      entry("i0", "i0(x)", "The modified Bessel function of the first kind, of order 0.",
            call_unary<caldera::i0>),
      entry("i1", "i1(x)", "The modified Bessel function of the first kind, of order 1.",
            call_unary<caldera::i1>),
      entry("i0e", "i0e(x)", "exp(-|x|) i0(x), without overflow.", call_unary<caldera::i0e>),
      entry("i1e", "i1e(x)", "exp(-|x|) i1(x), without overflow.", call_unary<caldera::i1e>),
      entry("erfcx", "erfcx(x)", "exp(x^2) erfc(x), without overflow for positive x.",
            Range{.low = -2, .high = 3, .away_from_zero = 0.125, .offset = 1.0 / 64},
            call_unary<caldera::erfcx>),
      entry("ndtr", "ndtr(x)",
            "The probability that a standard normal variable is below x, accurate in both tails.",
            call_unary<caldera::ndtr>),
      entry("log_ndtr", "log_ndtr(x)", "log(ndtr(x)), where that is next to 0 or 1, too.",
            call_unary<caldera::log_ndtr>),
      entry("ndtri", "ndtri(p)", "The x of which p is ndtr; infinite at 0 and 1, NaN beyond.",
            Range{.low = 1.0 / 64, .high = 63.0 / 64}, call_unary<caldera::ndtri>),
      entry("entr", "entr(x)", "-x log(x); 0 at 0, -infinity below.", kPositive, call_unary<caldera::entr>),
      entry("xlog1py", "xlog1py(x, y)",
            "x log(1 + y), accurate for small y; 0 where x is 0, unless y is NaN.",
            Ranges{kAround, Range{.low = -0.75, .high = 3}}, call_binary<caldera::xlog1py>, binary_samples,
            binary_errors),
      entry("zeta", "zeta(s, q)",
            "Hurwitz' zeta function, the sum of (q + k)^-s: infinite at s = 1 and where q is 0 or a negative "
            "integer, NaN for other s below 1 and q below 0.",
            Ranges{Range{.low = 1.25, .high = 6}, kPositive}, call_binary<caldera::zeta>, zeta_samples,
            binary_errors),
      entry("igamma", "igamma(a, x)",
            "The regularised lower incomplete Gamma function, whose gradient is that in x alone; NaN where "
            "one is negative.",
            kPositive, call_of_shape<caldera::igamma>, shape_samples),
      entry("igammac", "igammac(a, x)", "1 - igamma(a, x), accurate where that is next to nothing.",
            kPositive, call_of_shape<caldera::igammac>, shape_samples),
      entry(
          "polygamma", "polygamma(n, x)",
          "The n-th derivative of digamma. For n > 0 infinite at 0 and negative integers, with the sign "
          "(-1)^(n + 1).",
          kBetweenPoles,
          [](Tensors x, const Arguments& a) -> Results {
            return {polygamma(static_cast<int>(a.integer("n", 1)), x[0])};
          },
          order_samples,
          [](const Operation&) {
            return refused_values({{{{"n", std::int64_t{-1}}}, "-1"}, {{{"n", std::int64_t{31}}}, "31"}});
          }),
      entry(
          "multigammaln", "multigammaln(a, p)",
          "The logarithm of the multivariate Gamma function of p dimensions; NaN unless a > (p - 1) / 2.",
          Range{.low = 1.75, .high = 7},
          [](Tensors x, const Arguments& a) -> Results {
            return {multigammaln(x[0], static_cast<int>(a.integer("p", 1)))};
          },
          dimension_samples,
          [](const Operation&) {
            return refused_values({{{{"p", std::int64_t{0}}}, "0"}, {{{"p", std::int64_t{1001}}}, "1001"}});
          }),
  };
  return kTable;
}

}  // namespace caldera::catalogue
