// DecimalRange: decimal fractions between two bounds, or multiples of one, as texts.
#pragma once

#include <cstdint>
#include <optional>

#include "lm/generate/grammar/rules.h"

namespace caldera::grammar {

/// Numbers n / 10^decimals with n in [low, high] and a multiple of `step`.
struct DecimalRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
  int decimals = 0;       ///< 0 to 12
  std::int64_t step = 1;  ///< 1 to 2,000
  /// Whether digits may follow that are no part of n: then numbers from the range's low to its high.
  bool more = false;
};

/// Adds their texts, without exponent: without a fraction, or with zeros at its end, as well. Bounds beyond
/// 18 digits are cut.
StateId add_decimal_range(Rules& rules, StateId from, const DecimalRange& range);

/// A number as digits: digits / 10^decimals.
struct Decimal {
  std::int64_t digits = 0;
  int decimals = 0;
};
/// Reads what a double prints as in the fewest digits; none where that has more than 15, or 12 behind the
/// point.
std::optional<Decimal> decimal_of(double value);
/// Returns digits * 10^(decimals - value.decimals), the number in other units; none where it does not fit.
std::optional<std::int64_t> in_units(const Decimal& value, int decimals);

}  // namespace caldera::grammar
