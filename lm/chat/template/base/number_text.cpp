#include "lm/chat/template/base/number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "lm/chat/template/base/budget.h"
#include "lm/chat/template/base/unicode.h"

namespace caldera::chat {
namespace {

/// Decimal digits of any script as ASCII; nothing where underscores do not stand between digits.
std::optional<std::string> plain_digits(std::string_view text) {
  text = strip_left(strip_right(text));
  std::string plain;
  char before = '\0';
  while (!text.empty()) {
    const Character c = first_character(text);
    char now = c.value < 0x80 ? static_cast<char>(c.value) : '?';
    if (c.value >= 0x80 && is_decimal(c.value)) now = static_cast<char>('0' + digit_value(c.value));
    const auto alphanumeric = [](char x) { return std::isalnum(static_cast<unsigned char>(x)) != 0; };
    if (now == '_') {
      if (!alphanumeric(before)) return std::nullopt;
    } else {
      if (before == '_' && !alphanumeric(now)) return std::nullopt;
      plain.push_back(now);
    }
    before = now;
    text.remove_prefix(c.bytes);
  }
  if (before == '_') return std::nullopt;
  return plain;
}

/// The base that a prefix such as 0x names, and the digits behind it; 0 for none.
int prefixed_base(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 0;
  switch (digits[1]) {
    case 'x':
    case 'X':
      return 16;
    case 'o':
    case 'O':
      return 8;
    case 'b':
    case 'B':
      return 2;
    default:
      return 0;
  }
}

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  const std::string_view written(buffer, static_cast<std::size_t>(result.ptr - buffer));
  const std::size_t e = written.find('e');
  const int exponent = std::atoi(std::string(written.substr(e + 1)).c_str());
  std::string digits;
  for (const char c : written.substr(0, e)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  const std::string sign = written[0] == '-' ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    const std::string fraction = digits.size() > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{}{:02}", sign, digits[0], fraction, exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::optional<std::int64_t> parse_integer(std::string_view text, int base) {
  if (base != 0 && (base < 2 || base > 36)) fail("int() base must be >= 2 and <= 36, or 0");
  const std::optional<std::string> plain = plain_digits(text);
  if (!plain) return std::nullopt;
  std::string_view digits = *plain;
  bool negative = false;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  const int named = prefixed_base(digits);
  if (named != 0 && (base == 0 || base == named)) {
    base = named;
    digits.remove_prefix(2);
  } else if (base == 0) {
    // A decimal number does not begin with a zero.
    if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != std::string_view::npos) {
      return std::nullopt;
    }
    base = 10;
  }
  if (digits.empty()) return std::nullopt;
  std::uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (end != digits.data() + digits.size()) return std::nullopt;
  const std::uint64_t most = std::uint64_t{1} << 63;
  if (error != std::errc() || magnitude > most || (magnitude == most && !negative)) {
    fail("an integer would not fit into 64 bits");
  }
  return static_cast<std::int64_t>(negative ? ~magnitude + 1 : magnitude);
}

std::optional<double> parse_float(std::string_view text) {
  const std::optional<std::string> plain = plain_digits(text);
  if (!plain || plain->empty()) return std::nullopt;
  std::string_view digits = *plain;
  double sign = 1;
  if (digits[0] == '-' || digits[0] == '+') {
    sign = digits[0] == '-' ? -1 : 1;
    digits.remove_prefix(1);
  }
  const std::string lower = to_lower(digits);
  if (lower == "inf" || lower == "infinity") return sign * std::numeric_limits<double>::infinity();
  if (lower == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (lower.find_first_not_of("0123456789.e+-") != std::string::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(lower.data(), lower.data() + lower.size(), value);
  if (end != lower.data() + lower.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) value = std::strtod(lower.c_str(), nullptr);
  return error == std::errc::invalid_argument ? std::nullopt : std::optional(sign * value);
}

std::int64_t truncate_float(double value) {
  if (std::isnan(value)) fail("cannot convert float NaN to integer");
  if (std::isinf(value)) fail("cannot convert float infinity to integer");
  if (std::abs(value) >= 9223372036854775808.0) fail("an integer would not fit into 64 bits");
  return static_cast<std::int64_t>(value);
}

}  // namespace caldera::chat
