// The entries of the family `special_functions`.
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/elementwise/function_entries.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

/// Between the poles.
constexpr Range kGamma{.low = -3, .high = 7, .away_from_zero = 0.125, .offset = 1.0 / 32};

/// Beyond the ranges that samples are drawn from.
std::vector<Sample> with_large(const Operation& operation) {
  std::vector<Sample> out = unary_samples(operation);
  out.push_back({{{{7}, {.low = 9, .high = 15.9375}}}});
  return out;
}

}  // namespace

std::span<const Operation> special_functions() {
  static const Operation kTable[] = {
      of_one("sinc", "sinc(x)", "sin(pi x) / (pi x); 1 at 0.",
             Range{.low = -4, .high = 3.9375, .offset = 1.0 / 32}, call_unary<caldera::sinc>),
      of_one("erfc", "erfc(x)", "1 - erf(x), accurate where that is next to nothing.",
             Range{.low = -3, .high = 5}, call_unary<caldera::erfc>),
      of_one("erfinv", "erfinv(x)", "The y with erf(y) = x; infinite at -1 and 1, NaN beyond.",
             Range{.low = -0.96875, .high = 0.96875}, call_unary<caldera::erfinv>),
      with(of_one("lgamma", "lgamma(x)",
                  "The logarithm of the magnitude of Gamma(x); infinite at 0 and negative integers.", kGamma,
                  call_unary<caldera::lgamma>),
           with_large, no_errors),
      with(
          of_one(
              "digamma", "digamma(x)",
              "The derivative of log Gamma. NaN at negative integers, infinite at 0 with the sign of -1 / x.",
              kGamma, call_unary<caldera::digamma>),
          with_large, no_errors),
  };
  return kTable;
}

}  // namespace caldera::catalogue
