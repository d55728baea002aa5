// The entries of the family `functions`.
#include <optional>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/elementwise/function_entries.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

constexpr Range kNotZero{.away_from_zero = 0.25};
constexpr Range kInside{.low = -0.9375, .high = 0.9375};
constexpr Range kAboveZero{.low = 0.25, .high = 4};

Results call_logit(Tensors x, const Arguments& a) {
  return {caldera::logit(x[0], a.has("eps") ? std::optional<double>(a.real("eps", 0)) : std::nullopt)};
}

std::vector<Sample> logit_samples(const Operation& operation) {
  std::vector<Sample> out = unary_samples(operation);
  for (Sample sample : unary_samples(operation)) {
    sample.arguments = {{"eps", 0.25}};
    out.push_back(sample);
  }
  return out;
}

std::vector<ErrorSample> logit_errors(const Operation&) {
  return {{.refusal = Refusal::value, .operands = {{{3}}}, .arguments = {{"eps", 0.75}}, .mentions = "0.75"},
          {.refusal = Refusal::value, .operands = {{{3}}}, .arguments = {{"eps", -0.5}}, .mentions = "-0.5"}};
}

std::vector<Operation> elementary_operations() {
  using R = ResultType;
  return {
      of_one("acos", "acos(x)", "The angle in [0, pi] whose cosine is x; NaN outside [-1, 1].", kInside,
             call_unary<caldera::acos>),
      of_one("asin", "asin(x)", "The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1].", kInside,
             call_unary<caldera::asin>),
      of_one("atan", "atan(x)", "The angle in [-pi/2, pi/2] whose tangent is x.", call_unary<caldera::atan>),
      of_one("deg2rad", "deg2rad(x)", "x degrees in radians.", call_unary<caldera::deg2rad>),
      of_one("rad2deg", "rad2deg(x)", "x radians in degrees.", call_unary<caldera::rad2deg>),
      of_one("cosh", "cosh(x)", "The hyperbolic cosine.", Range{.low = -3, .high = 3},
             call_unary<caldera::cosh>),
      of_one("sinh", "sinh(x)", "The hyperbolic sine.", Range{.low = -3, .high = 3},
             call_unary<caldera::sinh>),
      of_one("acosh", "acosh(x)", "Its inverse; NaN below 1.", Range{.low = 1.125, .high = 7.9375},
             call_unary<caldera::acosh>),
      of_one("asinh", "asinh(x)", "Its inverse.", Range{.low = -4, .high = 4}, call_unary<caldera::asinh>),
      of_one("atanh", "atanh(x)", "The inverse of tanh; infinite at -1 and 1, NaN beyond.", kInside,
             call_unary<caldera::atanh>),
      of_one("exp2", "exp2(x)", "2 to the power of x.", Range{.low = -4, .high = 4},
             call_unary<caldera::exp2>),
      of_one("log2", "log2(x)", "The logarithm to base 2, exact where x is a power of 2.", kAboveZero,
             call_unary<caldera::log2>),
      of_one("log10", "log10(x)", "The logarithm to base 10.", kAboveZero, call_unary<caldera::log10>),
      of_two(
          "hypot", "hypot(a, b)",
          "sqrt(a^2 + b^2) without overflow in between; infinite if either is. The slope at the origin is 0.",
          kNotZero, kNotZero, call_binary<caldera::hypot>, kAnyType, R::floating),
      of_two("xlogy", "xlogy(x, y)", "x log(y); 0 where x is 0, unless y is NaN.", kNotZero, kAboveZero,
             call_binary<caldera::xlogy>, kAnyType, R::floating),
      with(of_one("logit", "logit(x, eps=none)", "log(x / (1 - x)), of x limited to [eps, 1 - eps] if given.",
                  Range{.low = 0.0625, .high = 0.9375, .offset = 1.0 / 128}, call_logit),
           logit_samples, logit_errors),
  };
}

}  // namespace

std::span<const Operation> function_operations() {
  static const std::vector<Operation> kTable = [] {
    std::vector<Operation> all = elementary_operations();
    for (const std::span<const Operation> part : {special_functions(), limit_functions()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return kTable;
}

}  // namespace caldera::catalogue
