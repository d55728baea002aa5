// The entries of the family `elementwise_unary`.
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

constexpr EntriesOf entry{.family = "elementwise_unary", .samples = unary_samples, .errors = no_errors};

std::vector<Sample> astype_samples(const Operation&) {
  std::vector<Sample> out;
  for (const DType to : kAllDTypes) {
    // Casts of negative numbers to unsigned types are not defined by the standard.
    const Range range{.low = is_unsigned(to) ? 0.0 : -2.0, .high = 2};
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 3}, Shape{0, 3}}) {
      out.push_back({{{shape, range}}, {{"dtype", to}}});
    }
  }
  return out;
}

}  // namespace

std::span<const Operation> elementwise_unary_operations() {
  using R = ResultType;
  using G = Gradient;
  static const Operation kTable[] = {
      entry("negative", "negative(x)", "-x.", kNumeric, R::same, G::full, call_unary<caldera::negative>),
      entry("abs", "abs(x)", "The magnitude of x. The slope at 0 is 0.", kNumeric, R::same, G::full,
            Range{.away_from_zero = 0.125}, call_unary<caldera::abs>),
      entry("sign", "sign(x)", "-1, 0 or 1; NaN stays NaN.", kNumeric, R::same, G::zero,
            Range{.away_from_zero = 0.125}, call_unary<caldera::sign>),
      entry("square", "square(x)", "x times x.", kNumeric, R::same, G::full, call_unary<caldera::square>),
      entry("floor", "floor(x)", "The largest integer that is not above x. Integers stay as they are.",
            kNumeric, R::same, G::zero, call_unary<caldera::floor>),
      entry("ceil", "ceil(x)", "The smallest integer that is not below x. Integers stay as they are.",
            kNumeric, R::same, G::zero, call_unary<caldera::ceil>),
      entry(
          "round", "round(x, decimals=0)",
          "The nearest number with so many digits behind the point, or -decimals zeros in front of it; "
          "halves "
          "to the even one.",
          kNumeric, R::same, G::zero,
          [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
            if (!a.has("decimals")) return {caldera::round(x[0])};
            return {caldera::round(x[0], static_cast<int>(a.integer("decimals", 0)))};
          },
          [](const Operation& operation) {
            std::vector<Sample> out = unary_samples(operation);
            for (const std::int64_t decimals : {0, 1, 2, -1})
              out.push_back({{{{7}, {.low = -15, .high = 15}}}, {{"decimals", decimals}}});
            return out;
          },
          [](const Operation&) {
            return refused_values(
                {{{{"decimals", std::int64_t{39}}}, "39"}, {{{"decimals", std::int64_t{-39}}}, "-39"}});
          }),
      entry("trunc", "trunc(x)", "x without its fraction. Integers stay as they are.", kNumeric, R::same,
            G::zero, call_unary<caldera::trunc>),
      entry("exp", "exp(x)", "e to the power of x.", kAnyType, R::floating, G::full,
            call_unary<caldera::exp>),
      entry("expm1", "expm1(x)", "exp(x) - 1 without cancellation near 0.", kAnyType, R::floating, G::full,
            call_unary<caldera::expm1>),
      entry("log", "log(x)", "The natural logarithm; NaN below 0, -inf at 0.", kAnyType, R::floating, G::full,
            Range{.low = 0.25, .high = 4}, call_unary<caldera::log>),
      entry("log1p", "log1p(x)", "log(1 + x) without cancellation near 0.", kAnyType, R::floating, G::full,
            Range{.low = -0.75, .high = 4}, call_unary<caldera::log1p>),
      entry("sqrt", "sqrt(x)", "The square root; NaN below 0.", kAnyType, R::floating, G::full,
            Range{.low = 0.25, .high = 4}, call_unary<caldera::sqrt>),
      entry("rsqrt", "rsqrt(x)", "1 / sqrt(x).", kAnyType, R::floating, G::full,
            Range{.low = 0.25, .high = 4}, call_unary<caldera::rsqrt>),
      entry("sin", "sin(x)", "The sine of x in radians.", kAnyType, R::floating, G::full,
            call_unary<caldera::sin>),
      entry("cos", "cos(x)", "The cosine of x in radians.", kAnyType, R::floating, G::full,
            call_unary<caldera::cos>),
      entry("tan", "tan(x)", "The tangent of x in radians.", kAnyType, R::floating, G::full,
            Range{.low = -1.25, .high = 1.25}, call_unary<caldera::tan>),
      entry("tanh", "tanh(x)", "The hyperbolic tangent.", kAnyType, R::floating, G::full,
            call_unary<caldera::tanh>),
      entry("sigmoid", "sigmoid(x)", "1 / (1 + exp(-x)).", kAnyType, R::floating, G::full,
            call_unary<caldera::sigmoid>),
      entry("erf", "erf(x)", "The error function.", kAnyType, R::floating, G::full, call_unary<caldera::erf>),
      entry("reciprocal", "reciprocal(x)", "1 / x.", kAnyType, R::floating, G::full,
            Range{.low = 0.25, .high = 4}, call_unary<caldera::reciprocal>),
      entry("logical_not", "logical_not(x)", "Whether x is false.", kBoolean, R::boolean, G::none,
            call_unary<caldera::logical_not>),
      entry("isnan", "isnan(x)", "Whether x is NaN.", kNumeric, R::boolean, G::none,
            call_unary<caldera::isnan>),
      {.name = "astype",
       .family = "elementwise_unary",
       .signature = "astype(x, dtype)",
       .summary = "x in another type: floating to integer truncates, to bool tests for not 0, to a narrower "
                  "floating type rounds to nearest even.",
       .types = kAnyType,
       .result = R::argument,
       .gradient = G::full,
       .call = [](Tensors x, const Arguments& a) -> std::vector<LazyTensor> {
         return {caldera::astype(x[0], a.dtype("dtype", x[0].dtype()))};
       },
       .samples = astype_samples,
       .errors = no_errors},
  };
  return kTable;
}

}  // namespace caldera::catalogue
