// Python's format specifications, as in "{:>8.2f}" and "%-5d".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lm/chat/template/value/value.h"

namespace caldera::chat {

struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  ///< one of < > = ^, or none
  char sign = '-';
  bool alternate = false;
  bool zero_padded = false;
  std::int64_t width = 0;
  char grouping = '\0';
  std::int64_t precision = -1;  ///< -1 where none is given
  char type = '\0';
};

/// [[fill]align][sign][#][0][width][grouping][.precision][type]
FormatSpec parse_format_spec(std::string_view spec);

/// format(value, spec). Throws a Fault for what the type of the value does not take.
std::string format_value(const Value& value, std::string_view spec);

std::string format_integer(std::int64_t value, const FormatSpec& spec);
std::string format_float(double value, const FormatSpec& spec);
/// Cut to the precision, then padded to the width.
std::string format_text(std::string_view text, const FormatSpec& spec);

}  // namespace caldera::chat
