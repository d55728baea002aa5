// The entries of the family `analysis`.
#include <string>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/operands.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Samples = std::vector<Sample>;
using Errors = std::vector<ErrorSample>;
using Integers = Arguments::Integers;

// ---- closeness

template <LazyTensor (*F)(const LazyTensor&, const LazyTensor&, double, double, bool)>
Results call_close(Tensors x, const Arguments& a) {
  return {F(x[0], x[1], a.real("rtol", 1e-5), a.real("atol", 1e-8), a.flag("equal_nan", false))};
}

Samples close_samples(const Operation& operation) {
  Samples out = binary_samples(operation);
  const Operand a{.shape = {6}, .values = {1, 0, 2, 3, 0, 1}}, b{.shape = {6}, .values = {1, 1, 2, 2, 0, 3}};
  out.push_back({{a, b}});
  out.push_back({{a, b}, {{"rtol", 0.5}}});
  out.push_back({{a, b}, {{"atol", 1.0}, {"rtol", 0.0}}});
  out.push_back({{a, a}, {{"equal_nan", true}}});
  return out;
}
Errors close_errors(const Operation& operation) {
  Errors out = binary_errors(operation);
  out.push_back({Refusal::value, {{{3}}, {{3}}}, {{"rtol", -1.0}}, "-1"});
  out.push_back({Refusal::value, {{{3}}, {{3}}}, {{"atol", -0.5}}, "-0.5"});
  return out;
}

Samples membership_samples(const Operation&) {
  const Operand x{.shape = {2, 3}, .values = {1, 0, 1, 1, 0, 0}};
  Samples out;
  for (const bool invert : {false, true}) {
    const Arguments inverted{{"invert", invert}};
    out.push_back({{x, {.shape = {2}, .values = {1, 1}}}, inverted});
    out.push_back({{x, {.shape = {}, .values = {0}}}, inverted});
    out.push_back({{{{7}}, {{40}}}, inverted});
    out.push_back({{{{2, 5}}, {{3, 3}}}, inverted});
    out.push_back({{x, {{0}}}, inverted});
    out.push_back({{{{0, 3}}, {{2}}}, inverted});
  }
  return out;
}

// ---- covariance

/// Operands: x, then frequencies and weights as `weights` says.
Results call_cov(Tensors x, const Arguments& a) {
  const std::string weights = a.text("weights", "");
  const LazyTensor none;
  return {cov(x[0], a.real("correction", 1), weights == "f" || weights == "fa" ? x[1] : none,
              weights == "a"    ? x[1]
              : weights == "fa" ? x[2]
                                : none)};
}

Samples cov_samples(const Operation&) {
  const Operand often = index_operand({5}, {1, 2, 0, 3, 1});
  const Operand heavy{.shape = {5}, .range = {.low = 0.25, .high = 2}, .dtype = DType::f64};
  return {{{{{3, 5}}}},
          {{{{7}}}},
          {{{{2, 9}}}, {{"correction", 0.0}}},
          {{{{1, 4}}}},
          {{{{3, 5}}, often}, {{"weights", std::string("f")}}},
          {{{{3, 5}}, heavy}, {{"weights", std::string("a")}}},
          {{{{3, 5}}, often, heavy}, {{"weights", std::string("fa")}, {"correction", 0.0}}},
          {{{{3, 5}}, often, heavy}, {{"weights", std::string("fa")}}}};
}
Errors cov_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3, 4}}}, {}, "(2, 3, 4)"},
          {Refusal::shape,
           {{{2, 3}}, {.shape = {2}, .dtype = DType::i32}},
           {{"weights", std::string("f")}},
           "fweights"},
          {Refusal::dtype, {{{2, 3}}, {{3}}}, {{"weights", std::string("f")}}, "float32"},
          {Refusal::dtype,
           {{{2, 3}}, {.shape = {3}, .dtype = DType::i32}},
           {{"weights", std::string("a")}},
           "int32"}};
}

// ---- sampled functions

/// Operands: y, and x for positions.
template <bool Cumulative>
Results call_trapezoid(Tensors x, const Arguments& a) {
  const int axis = a.axis("axis", -1);
  if (x.size() > 1)
    return {Cumulative ? cumulative_trapezoid(x[0], x[1], axis) : trapezoid(x[0], x[1], axis)};
  const double dx = a.real("dx", 1);
  return {Cumulative ? cumulative_trapezoid(x[0], dx, axis) : trapezoid(x[0], dx, axis)};
}
Samples trapezoid_samples(const Operation&) {
  Samples out{{{{{7}}}}, {{{{1}}}}, {{{{2, 3}}}, {{"dx", 0.5}}}, {{{{0, 3}}}}, {{{{3, 0}}}}};
  for (const std::int64_t axis : {0, 1, -1}) {
    out.push_back({{{{2, 3, 4}}}, {{"axis", axis}}});
    out.push_back({{{{3, 3, 3}}, {{3}}}, {{"axis", axis}}});
    out.push_back({{{{2, 3, 4}}, {{2, 3, 4}}}, {{"axis", axis}}});
  }
  return out;
}
Errors trapezoid_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}}, {{"axis", std::int64_t{2}}}, "(2, 3)"},
          {Refusal::shape, {{{}}}, {}, "()"},
          {Refusal::shape, {{{2, 3}}, {{2}}}, {}, "(2, 3)"},
          {Refusal::shape, {{{2, 3}}, {{2, 2}}}, {}, "(2, 2)"}};
}

/// Operands: x, and a vector of positions for each axis.
Results call_gradient(Tensors x, const Arguments& a) {
  const Axes axes = a.has("axis") ? Axes(a.axes("axis")) : Axes();
  const int order = static_cast<int>(a.integer("edge_order", 1));
  if (x.size() == 1) return gradient(x[0], a.real("spacing", 1), axes, order);
  return gradient(x[0], std::vector<LazyTensor>(x.begin() + 1, x.end()), axes, order);
}
Samples gradient_samples(const Operation&) {
  const auto positions = [](std::vector<double> values) {
    const auto n = static_cast<std::int64_t>(values.size());
    return Operand{.shape = {n}, .values = std::move(values)};
  };
  Samples out;
  for (const std::int64_t order : {1, 2}) {
    out.push_back({{{{7}}}, {{"edge_order", order}}});
    out.push_back({{{{3, 4}}}, {{"spacing", 0.5}, {"edge_order", order}}});
    out.push_back({{{{3, 4, 5}}}, {{"axis", Integers{1}}, {"edge_order", order}}});
    out.push_back({{{{3, 4, 5}}}, {{"axis", Integers{-1, 0}}, {"edge_order", order}}});
    out.push_back({{{{5}}, positions({0, 1, 3, 4, 7})}, {{"edge_order", order}}});
    out.push_back({{{{3, 4}}, positions({0, 2, 3}), positions({1, 2, 4, 7})}, {{"edge_order", order}}});
  }
  out.push_back({{{{2, 3}}}});
  return out;
}
Errors gradient_errors(const Operation&) {
  return {{Refusal::shape, {{{2, 3}}}, {{"axis", Integers{2}}}, "(2, 3)"},
          {Refusal::shape, {{{1, 3}}}, {}, "(1, 3)"},
          {Refusal::shape, {{{2, 3}}}, {{"edge_order", std::int64_t{2}}}, "(2, 3)"},
          {Refusal::value, {{{3}}}, {{"edge_order", std::int64_t{3}}}, "3"},
          {Refusal::value, {{{3, 3}}, {{3}}}, {}, "(3, 3)"},
          {Refusal::shape, {{{3}}, {{4}}}, {}, "(4,)"}};
}

// ---- distances

constexpr Range kApart{.low = -2, .high = 2, .away_from_zero = 0.125};

Samples normalize_samples(const Operation&) {
  Samples out{{{{{3, 4}, kApart}}},
              {{{{7}, kApart}}, {{"axis", std::int64_t{-1}}}},
              {{{{2, 3, 4}, kApart}}, {{"p", 3.0}}},
              {{{{2, 3}, kApart}}, {{"p", 1.0}, {"axis", std::int64_t{0}}}},
              {{{{2, 3}, kApart}}, {{"eps", 16.0}}},
              {{{{0, 3}, kApart}}}};
  return out;
}
Samples cdist_samples(const Operation&) {
  constexpr Range low{.low = -2, .high = -0.25, .distinct = true},
      high{.low = 0.25, .high = 2, .distinct = true};
  Samples out{{{{{3, 4}, low}, {{5, 4}, high}}},
              {{{{2, 3, 2}, low}, {{2, 4, 2}, high}}},
              {{{{2, 1, 3, 2}, low}, {{3, 4, 2}, high}}},
              {{{{0, 4}, low}, {{5, 4}, high}}}};
  for (const double p : {1.0, 3.0}) out.push_back({{{{3, 4}, low}, {{5, 4}, high}}, {{"p", p}}});
  return out;
}
Errors cdist_errors(const Operation&) {
  return {{Refusal::shape, {{{3, 4}}, {{5, 3}}}, {}, "(5, 3)"},
          {Refusal::shape, {{{3}}, {{5, 3}}}, {}, "(3,)"},
          {Refusal::shape, {{{2, 3, 4}}, {{3, 3, 4}}}, {}, "(3, 3, 4)"},
          {Refusal::value, {{{3, 4}}, {{3, 4}}}, {{"p", -1.0}}, "-1"}};
}
Samples pdist_samples(const Operation&) {
  constexpr Range distinct{.distinct = true};
  Samples out{{{{{4, 3}, distinct}}}, {{{{2, 5}, distinct}}}, {{{{1, 3}}}}, {{{{0, 3}}}}};
  for (const double p : {1.0, 3.0}) out.push_back({{{{4, 3}, distinct}}, {{"p", p}}});
  return out;
}
Errors pdist_errors(const Operation&) {
  return {{Refusal::shape, {{{3}}}, {}, "(3,)"}, {Refusal::value, {{{3, 4}}}, {{"p", -1.0}}, "-1"}};
}

constexpr EntriesOf entry{.family = "analysis", .types = kFloating};

}  // namespace

std::span<const Operation> analysis_operations() {
  using R = ResultType;
  using G = Gradient;
  static const Operation kTable[] = {
      entry("isclose", "isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=false)",
            "|a - b| <= atol + rtol |b|, or a = b; with equal_nan NaN is close to NaN.", kNumeric, R::boolean,
            G::none, call_close<caldera::isclose>, close_samples, close_errors),
      entry("allclose", "allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=false)",
            "Whether all elements are close, as a tensor without axes.", kNumeric, R::boolean, G::none,
            call_close<caldera::allclose>, close_samples, close_errors),
      entry(
          "isin", "isin(x, values, invert=false)",
          "Whether each element equals one of the values, or with invert none. NaN equals nothing.", kAnyType,
          R::boolean, G::none,
          [](Tensors x, const Arguments& a) -> Results {
            return {isin(x[0], x[1], a.flag("invert", false))};
          },
          membership_samples),
      entry("cov", "cov(x, correction=1, fweights=none, aweights=none)",
            "The covariances of the rows, over n - correction, with observations that count several times or "
            "have weights; of a vector its variance.",
            kAnyType, R::floating, call_cov, cov_samples, cov_errors),
      entry(
          "corrcoef", "corrcoef(x)", "The correlations of the rows, within [-1, 1]; of a vector 1.", kAnyType,
          R::floating, call_unary<caldera::corrcoef>,
          [](const Operation&) -> Samples {
            return {{{{{2, 9}}}}, {{{{3, 7}}}}, {{{{4, 33}}}}};
          },
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{2, 3, 4}}}, {}, "(2, 3, 4)"}};
          }),
      entry("trapezoid", "trapezoid(y, dx=1 or x, axis=-1)",
            "The integral along an axis by the trapezoidal rule, of samples dx apart or at x.", kAnyType,
            R::floating, call_trapezoid<false>, trapezoid_samples, trapezoid_errors),
      entry("cumulative_trapezoid", "cumulative_trapezoid(y, dx=1 or x, axis=-1)",
            "trapezoid up to each sample but the first.", kAnyType, R::floating, call_trapezoid<true>,
            trapezoid_samples, trapezoid_errors),
      entry("gradient", "gradient(x, spacing=1 or {positions...}, axis=all, edge_order=1)",
            "The derivative along each axis: central differences, one-sided ones of edge_order at both ends.",
            kNumeric, R::floating, call_gradient, gradient_samples, gradient_errors),
      entry(
          "normalize", "normalize(x, p=2, axis=1, eps=1e-12)",
          "x over its p-norm along an axis, or over eps where that is larger.",
          [](Tensors x, const Arguments& a) -> Results {
            return {normalize(x[0], a.real("p", 2), a.axis("axis", 1), a.real("eps", 1e-12))};
          },
          normalize_samples,
          [](const Operation&) -> Errors {
            return {{Refusal::shape, {{{3}}}, {}, "(3,)"}, {Refusal::shape, {{{}}}, {}, "()"}};
          }),
      entry(
          "cdist", "cdist(a, b, p=2)",
          "The p-norms of the differences of all pairs of vectors: (..., P, M), (..., R, M) to (..., P, R).",
          [](Tensors x, const Arguments& a) -> Results { return {cdist(x[0], x[1], a.real("p", 2))}; },
          cdist_samples, cdist_errors),
      entry(
          "pdist", "pdist(x, p=2)", "The distances of all pairs of rows, as a vector.",
          [](Tensors x, const Arguments& a) -> Results { return {pdist(x[0], a.real("p", 2))}; },
          pdist_samples, pdist_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
