#include "lm/chat/template/value/format_spec.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "lm/chat/template/base/number_text.h"
#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {
namespace {

constexpr std::int64_t kMostDigits = 4096;
constexpr std::int64_t kWidest = std::int64_t{1} << 31;

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

std::int64_t read_count(std::string_view& spec) {
  std::int64_t count = 0;
  while (!spec.empty() && spec[0] >= '0' && spec[0] <= '9') {
    count = count * 10 + (spec[0] - '0');
    if (count > kWidest) fail("Too many decimal digits in format string");
    spec.remove_prefix(1);
  }
  return count;
}

std::string padded(std::string_view sign, std::string_view body, const FormatSpec& spec, char default_align) {
  const auto length = static_cast<std::int64_t>(sign.size() + code_point_count(body));
  const auto missing = static_cast<std::size_t>(std::max<std::int64_t>(0, spec.width - length));
  const char align = spec.align != '\0' ? spec.align : spec.zero_padded ? '=' : default_align;
  const std::string fill = spec.zero_padded && spec.align == '\0' ? "0" : spec.fill;
  const std::size_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  TextBuilder out;
  out.repeat(fill, left);
  out.add(sign);
  if (align == '=') out.repeat(fill, missing);
  out.add(body);
  if (align == '<' || align == '^') out.repeat(fill, missing - left);
  return out.take();
}

/// The digits of a number with separators between groups of them; with zeros before, where the width asks for
/// them.
std::string grouped(std::string digits, const FormatSpec& spec, std::size_t others) {
  if (spec.grouping == '\0') return digits;
  const bool decimal = spec.type != 'x' && spec.type != 'X' && spec.type != 'o' && spec.type != 'b';
  const std::size_t every = decimal ? 3 : 4;
  const auto separated = [every](std::size_t n) { return n + (n - 1) / every; };
  const auto width =
      static_cast<std::size_t>(spec.zero_padded ? std::clamp<std::int64_t>(spec.width, 0, 1 << 16) : 0);
  std::size_t count = digits.size();
  while (count > 0 && separated(count) + others < width) ++count;
  digits.insert(0, count - digits.size(), '0');
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % every == 0) out.push_back(spec.grouping);
    out.push_back(digits[i]);
  }
  return out;
}

std::string sign_of(bool negative, const FormatSpec& spec) {
  if (negative) return "-";
  return spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
}

std::string printed(double value, char type, std::int64_t precision, bool alternate) {
  const char format[] = {'%', alternate ? '#' : '.', alternate ? '.' : '*', alternate ? '*' : type, type,
                         '\0'};
  const char plain[] = {'%', '.', '*', type, '\0'};
  const char* used = alternate ? format : plain;
  const int digits = static_cast<int>(precision);
  const int size = std::snprintf(nullptr, 0, used, digits, value);  // NOLINT: one of two formats above
  std::string out(static_cast<std::size_t>(size) + 1, '\0');
  std::snprintf(out.data(), out.size(), used, digits, value);  // NOLINT
  out.pop_back();
  return out;
}

/// The digits of a finite float that is not negative, as its type writes them.
std::string float_digits(double value, const FormatSpec& spec) {
  const bool upper = spec.type == 'E' || spec.type == 'F' || spec.type == 'G';
  if (!std::isfinite(value))
    return std::string(std::isnan(value) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf"));
  const std::int64_t precision = spec.precision < 0 ? 6 : spec.precision;
  if (precision > kMostDigits) fail("precision too big: {}", precision);
  switch (spec.type) {
    case '%':
      return printed(value * 100, 'f', precision, spec.alternate) + "%";
    case 'n':
      return printed(value, 'g', std::max<std::int64_t>(precision, 1), spec.alternate);
    case '\0':
      break;
    default:
      return printed(value, spec.type, precision, spec.alternate);
  }
  if (spec.precision < 0) return float_repr(value);
  std::string text = printed(value, 'g', std::max<std::int64_t>(precision, 1), spec.alternate);
  const auto exponent = value == 0 ? 0 : static_cast<std::int64_t>(std::floor(std::log10(value)));
  if (text.find_first_of(".e") == std::string::npos) {
    text = exponent + 1 >= std::max<std::int64_t>(precision, 1) && precision > 0 && value >= 1 && exponent > 0
               ? printed(value, 'e', std::max<std::int64_t>(precision, 1) - 1, spec.alternate)
               : text + ".0";
  }
  return text;
}

std::string digits_in_base(std::uint64_t value, unsigned base, bool upper) {
  const char* symbols = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do {
    digits.push_back(symbols[value % base]);
    value /= base;
  } while (value > 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace

FormatSpec parse_format_spec(std::string_view spec) {
  FormatSpec parsed;
  const std::size_t first = first_character(spec).bytes;
  if (spec.size() > first && first > 0 && is_align(spec[first])) {
    parsed.fill = spec.substr(0, first);
    parsed.align = spec[first];
    spec.remove_prefix(first + 1);
  } else if (!spec.empty() && is_align(spec[0])) {
    parsed.align = spec[0];
    spec.remove_prefix(1);
  }
  const auto take = [&](std::string_view any) {
    if (spec.empty() || any.find(spec[0]) == std::string_view::npos) return '\0';
    const char c = spec[0];
    spec.remove_prefix(1);
    return c;
  };
  if (const char sign = take("+- ")) parsed.sign = sign;
  take("z");
  parsed.alternate = take("#") != '\0';
  parsed.zero_padded = take("0") != '\0';
  parsed.width = read_count(spec);
  parsed.grouping = take(",_");
  if (take(".") != '\0') {
    if (spec.empty() || spec[0] < '0' || spec[0] > '9') fail("Format specifier missing precision");
    parsed.precision = read_count(spec);
  }
  if (spec.size() > 1) fail("Invalid format specifier");
  if (!spec.empty()) parsed.type = spec[0];
  return parsed;
}

std::string format_integer(std::int64_t value, const FormatSpec& spec) {
  const std::uint64_t magnitude =
      value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  std::string prefix;
  std::string digits;
  switch (spec.type) {
    case 'c': {
      if (value < 0 || value > 0x10FFFF) fail("%c arg not in range(0x110000)");
      if (value >= 0xD800 && value < 0xE000) fail("a surrogate is no character");
      std::string text;
      append_character(text, static_cast<char32_t>(value));
      return padded("", text, spec, '<');
    }
    case 'b':
    case 'o':
    case 'x':
    case 'X':
      digits = digits_in_base(magnitude, spec.type == 'b' ? 2 : spec.type == 'o' ? 8 : 16, spec.type == 'X');
      if (spec.alternate) prefix = std::string("0") + spec.type;
      break;
    case '\0':
    case 'd':
    case 'n':
      digits = digits_in_base(magnitude, 10, false);
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case '%':
      return format_float(static_cast<double>(value), spec);
    default:
      fail("Unknown format code '{}' for object of type 'int'", spec.type);
  }
  const std::string sign = sign_of(value < 0, spec) + prefix;
  return padded(sign, grouped(digits, spec, sign.size()), spec, '>');
}

std::string format_float(double value, const FormatSpec& spec) {
  constexpr std::string_view kTypes("eEfFgGn%\0", 9);
  if (kTypes.find(spec.type) == std::string_view::npos) {
    fail("Unknown format code '{}' for object of type 'float'", spec.type);
  }
  const bool negative = std::signbit(value) && !std::isnan(value);
  std::string digits = float_digits(std::abs(value), spec);
  const std::string sign = sign_of(negative, spec);
  if (spec.grouping != '\0' && std::isfinite(value)) {
    const std::size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
    digits =
        grouped(digits.substr(0, whole), spec, sign.size() + digits.size() - whole) + digits.substr(whole);
  }
  return padded(sign, digits, spec, '>');
}

std::string format_text(std::string_view text, const FormatSpec& spec) {
  if (spec.precision >= 0) text = text.substr(0, byte_offset(text, static_cast<std::size_t>(spec.precision)));
  FormatSpec used = spec;
  if (spec.zero_padded && spec.align == '\0') {
    used.zero_padded = false;
    used.fill = "0";
  }
  return padded("", text, used, '<');
}

std::string format_value(const Value& value, std::string_view spec) {
  if (spec.empty()) return bytes_of(value);
  if (value.is_text()) {
    const FormatSpec parsed = parse_format_spec(spec);
    if (parsed.type != '\0' && parsed.type != 's') {
      fail("Unknown format code '{}' for object of type 'str'", parsed.type);
    }
    if (parsed.align == '=') fail("'=' alignment not allowed in string format specifier");
    return format_text(value.bytes(), parsed);
  }
  if (value.is_integral()) {
    const FormatSpec parsed = parse_format_spec(spec);
    return format_integer(value.integral(), parsed);
  }
  if (value.kind() == Value::Kind::real) return format_float(value.real(), parse_format_spec(spec));
  require_defined(value);
  fail("unsupported format string passed to {}.__format__", type_name(value));
}

}  // namespace caldera::chat
