// Filters of numbers, of JSON, and of any value.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "lm/chat/template/base/number_text.h"
#include "lm/chat/template/filters/filters.h"
#include "lm/chat/template/filters/pretty.h"
#include "lm/chat/template/methods/attributes.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/json_text.h"
#include "lm/chat/template/value/operators.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {
namespace {

Value or_default(const Value& subject, Arguments& arguments) {
  const Parameters given("default", arguments, {"default_value", "boolean"});
  const bool replaced = subject.is_undefined() || (given.truth_of(1, false) && !truth(subject));
  return replaced ? given.get(0, Value("")) : subject;
}

Value to_integer(const Value& subject, Arguments& arguments) {
  const Parameters given("int", arguments, {"default", "base"});
  require_defined(subject);
  if (subject.is_integral()) return subject.integral();
  if (subject.kind() == Value::Kind::real) {
    return std::isnan(subject.real()) ? given.get(0, std::int64_t{0}) : Value(truncate_float(subject.real()));
  }
  if (subject.is_text()) {
    const auto base = std::clamp<std::int64_t>(given.integer(1, 10), -1, 99);
    if (const auto whole = parse_integer(subject.bytes(), static_cast<int>(base))) return *whole;
    const auto real = parse_float(subject.bytes());
    if (real && std::isfinite(*real)) return truncate_float(*real);
  }
  return given.get(0, std::int64_t{0});
}

Value to_float(const Value& subject, Arguments& arguments) {
  const Parameters given("float", arguments, {"default"});
  require_defined(subject);
  if (subject.is_number()) return subject.real();
  if (subject.is_text()) {
    if (const auto real = parse_float(subject.bytes())) return *real;
  }
  return given.get(0, Value(0.0));
}

Value absolute(const Value& subject, Arguments& arguments) {
  const Parameters none("abs", arguments, {});
  if (subject.is_integral()) return subject.integral() < 0 ? negative(subject) : positive(subject);
  if (subject.kind() == Value::Kind::real) return std::abs(subject.real());
  fail("bad operand type for abs(): '{}'", type_name(subject));
}

/// To `digits` behind the point, half to even, by the number's exact value.
double rounded(double value, std::int64_t digits) {
  if (!std::isfinite(value) || digits > 330) return value;
  if (digits < -330) return std::copysign(0.0, value);
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(value / scale) * scale;
  }
  char text[800];
  std::snprintf(text, sizeof(text), "%.*f", static_cast<int>(digits), value);
  return std::strtod(text, nullptr);
}

std::int64_t rounded_integer(std::int64_t value, std::int64_t digits) {
  if (digits >= 0) return value;
  if (digits < -18) return 0;
  std::int64_t scale = 1;
  for (std::int64_t i = 0; i < -digits; ++i) scale *= 10;
  const std::int64_t rest = arithmetic(value, Arithmetic::modulo, scale).integral();
  const std::int64_t below = arithmetic(value, Arithmetic::subtract, rest).integral();
  const bool up = rest * 2 > scale || (rest * 2 == scale && (below / scale) % 2 != 0);
  return up ? arithmetic(below, Arithmetic::add, scale).integral() : below;
}

Value round_filter(const Value& subject, Arguments& arguments) {
  const Parameters given("round", arguments, {"precision", "method"});
  const std::int64_t digits = given.integer(0, 0);
  const std::string how = given.text(1, "common");
  if (how != "common" && how != "ceil" && how != "floor") fail("method must be common, ceil or floor");
  require_defined(subject);
  if (!subject.is_number()) fail("type {} doesn't define __round__ method", type_name(subject));
  if (how == "common") {
    return subject.is_integral() ? Value(rounded_integer(subject.integral(), digits))
                                 : Value(rounded(subject.real(), digits));
  }
  const Value scale = arithmetic(std::int64_t{10}, Arithmetic::power, digits);
  const double scaled = arithmetic(subject, Arithmetic::multiply, scale).real();
  const std::int64_t whole = truncate_float(how == "ceil" ? std::ceil(scaled) : std::floor(scaled));
  return arithmetic(whole, Arithmetic::divide, scale);
}

Value file_size(const Value& subject, Arguments& arguments) {
  const Parameters given("filesizeformat", arguments, {"binary"});
  const bool binary = given.truth_of(0, false);
  require_defined(subject);
  const std::optional<double> number = subject.is_number() ? std::optional(subject.real())
                                       : subject.is_text() ? parse_float(subject.bytes())
                                                           : std::nullopt;
  if (!number) fail("{} is no number", repr_of(subject));
  const double bytes = *number;
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return "1 Byte";
  if (!(bytes >= base)) return fmt::format("{} Bytes", truncate_float(bytes));
  constexpr std::string_view kPrefixes = "KMGTPEZY";
  double unit = base * base;
  std::size_t i = 0;
  for (; i + 1 < kPrefixes.size() && bytes >= unit; ++i) unit *= base;
  const char prefix = i == 0 && !binary ? 'k' : kPrefixes[i];
  return fmt::format("{:.1f} {}{}B", base * bytes / unit, prefix, binary ? "i" : "");
}

Value to_json(const Value& subject, Arguments& arguments) {
  const Parameters given("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = given.truth_of(0, false);
  if (given.has(1) && !given[1].is_none()) {
    const std::int64_t spaces = given[1].is_text() ? 0 : std::max<std::int64_t>(0, given.integer(1, 0));
    TextBuilder level;
    level.repeat(" ", static_cast<std::size_t>(spaces));
    style.indent = given[1].is_text() ? given[1].bytes() : level.take();
    style.item_separator = ",";
  }
  if (given.has(2) && !given[2].is_none()) {
    const bool pair = (given[2].is_list() || given[2].is_tuple()) && given[2].items().size() == 2;
    if (!pair) fail("separators must be a pair of texts");
    style.item_separator = require_text(given[2].items()[0], "separators");
    style.key_separator = require_text(given[2].items()[1], "separators");
  }
  style.sort_keys = given.truth_of(3, false);
  return json_text(subject, style);
}

Value attribute(const Value& subject, Arguments& arguments) {
  const Parameters given("attr", arguments, {"name"}, 1);
  const std::string name = given.text(0, "");
  Value found;
  if (find_attribute(subject, name, found)) return found;
  return Value::undefined(fmt::format("'{} object' has no attribute '{}'", type_name(subject), name));
}

Value pretty_print(const Value& subject, Arguments& arguments) {
  const Parameters none("pprint", arguments, {});
  return pretty(subject);
}

Value refuse_random(const Value& /*subject*/, Arguments& /*arguments*/) {
  fail("the filter random is not supported: a chat template gives the same text each time");
}

}  // namespace

const FilterTable& value_filters() {
  static const FilterTable kTable = {
      {"default", or_default}, {"d", or_default},        {"int", to_integer},           {"float", to_float},
      {"abs", absolute},       {"round", round_filter},  {"filesizeformat", file_size}, {"tojson", to_json},
      {"attr", attribute},     {"pprint", pretty_print}, {"random", refuse_random},
  };
  return kTable;
}

}  // namespace caldera::chat
