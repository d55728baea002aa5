// Domains: checks of option values while the arguments are parsed. A value outside ends the program with exit
// code 2.
#pragma once

#include <cstdint>
#include <limits>

#include "cli/arguments/arguments.h"

namespace caldera::cli {

/// A whole number in [low, high], in decimal.
Domain integer_in(std::int64_t low, std::int64_t high = std::numeric_limits<std::int64_t>::max());

/// Any unsigned 64-bit number, in decimal.
Domain seed_value();

/// A finite number in [low, high]; `open_low` and `open_high` leave the ends out.
Domain number_in(double low, double high, bool open_low = false, bool open_high = false);
/// A finite number above 0.
Domain positive_number();
/// A finite number, 0 or above.
Domain non_negative_number();
/// Accepts any text but none.
Domain not_empty();

}  // namespace caldera::cli
