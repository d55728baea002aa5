// NumberRange: numbers between two bounds, as texts.
#pragma once

#include <cstdint>
#include <optional>

#include "lm/generate/grammar/rules.h"

namespace caldera::grammar {

/// A whole number in [low, high], without exponent, of at most 18 digits where a bound is missing.
StateId add_integer_range(Rules& rules, StateId from, std::optional<std::int64_t> low,
                          std::optional<std::int64_t> high);

/// Bounds of a number that need not be whole.
struct NumberBounds {
  std::optional<std::int64_t> low;
  std::optional<std::int64_t> high;
  bool open_low = false;  ///< the bound itself is left out
  bool open_high = false;
};

/// A number within bounds, as a decimal fraction without exponent.
StateId add_number_range(Rules& rules, StateId from, const NumberBounds& bounds);

}  // namespace caldera::grammar
