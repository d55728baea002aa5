// Numbers as Python writes and reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caldera::chat {

/// repr() of a float: the fewest digits that read back as the same number.
std::string float_repr(double value);

/// int(text, base): with a sign, underscores, whitespace around it and, for base 0, 2, 8 and 16, a prefix;
/// nothing where it is no such number. Throws a Fault where it does not fit into 64 bits.
std::optional<std::int64_t> parse_integer(std::string_view text, int base);
/// float(text): as above, with inf and nan.
std::optional<double> parse_float(std::string_view text);

/// The whole part of a float; throws a Fault where it does not fit into 64 bits.
std::int64_t truncate_float(double value);

}  // namespace caldera::chat
