#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lm/generate/grammar/decimal_range.h"
#include "lm/generate/grammar/schema_compiler.h"

namespace caldera::grammar {
namespace {

constexpr std::int64_t kMostStep = 2000;
constexpr std::int64_t kMostWhole = 999999999999999999;

/// A number that a keyword has, exactly as it is written.
std::optional<Decimal> decimal(const Schema& schema, const char* keyword, const std::string& where) {
  const auto found = schema.find(keyword);
  if (found == schema.end()) return std::nullopt;
  std::optional<Decimal> value;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > static_cast<std::uint64_t>(kMostWhole))
    value = std::nullopt;
  else if (found->is_number_integer())
    value = Decimal{found->get<std::int64_t>(), 0};
  else
    value = decimal_of(found->get<double>());
  if (!value || std::abs(value->digits) > kMostWhole)
    refuse_schema(fmt::format("'{}' has too many digits", keyword), where, keyword);
  return value;
}

/// Bounds in units of 10^-decimals. Those that are no whole number of units are the next within.
struct UnitBounds {
  std::optional<std::int64_t> low, high;
};

std::int64_t rounded(const Decimal& value, int decimals, bool up) {
  if (const auto whole = value.decimals <= decimals ? in_units(value, decimals) : std::nullopt) return *whole;
  if (value.decimals <= decimals) return value.digits < 0 ? -kMostWhole : kMostWhole;
  std::int64_t unit = 1;
  for (int i = decimals; i < value.decimals; ++i) unit *= 10;
  const std::int64_t part = value.digits / unit;
  if (value.digits % unit == 0) return part;
  if (up) return value.digits > 0 ? part + 1 : part;
  return value.digits > 0 ? part : part - 1;
}

UnitBounds unit_bounds(const Schema& schema, int decimals, const std::string& where) {
  UnitBounds bounds;
  const auto raise = [&](std::int64_t low) { bounds.low = std::max(bounds.low.value_or(low), low); };
  const auto lower = [&](std::int64_t high) { bounds.high = std::min(bounds.high.value_or(high), high); };
  if (const auto value = decimal(schema, "minimum", where)) raise(rounded(*value, decimals, true));
  if (const auto value = decimal(schema, "maximum", where)) lower(rounded(*value, decimals, false));
  if (const auto value = decimal(schema, "exclusiveMinimum", where))
    raise(rounded(*value, decimals, false) + 1);
  if (const auto value = decimal(schema, "exclusiveMaximum", where))
    lower(rounded(*value, decimals, true) - 1);
  return bounds;
}

bool is_whole(const Schema& schema, const char* keyword) {
  const auto found = schema.find(keyword);
  return found == schema.end() || found->is_number_integer() ||
         found->get<double>() == std::floor(found->get<double>());
}

}  // namespace

void SchemaCompiler::add_numbers(StateId from, StateId to, const Schema& schema, bool whole,
                                 const std::string& where) {
  constexpr std::int64_t kLow = -1000000000000000000;
  bool plain = !schema.contains("multipleOf");
  for (const char* bound : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
    plain = plain && is_whole(schema, bound);
  if (!plain) return add_decimals(from, to, schema, whole, where);
  NumberBounds bounds;
  bounds.low = whole_number(schema, "minimum", kLow, where);
  bounds.high = whole_number(schema, "maximum", kLow, where);
  if (const auto low = whole_number(schema, "exclusiveMinimum", kLow, where);
      low && (!bounds.low || *low >= *bounds.low)) {
    bounds.low = low;
    bounds.open_low = true;
  }
  if (const auto high = whole_number(schema, "exclusiveMaximum", kLow, where);
      high && (!bounds.high || *high <= *bounds.high)) {
    bounds.high = high;
    bounds.open_high = true;
  }
  if (whole && bounds.low && bounds.open_low) bounds.low = *bounds.low + 1;
  if (whole && bounds.high && bounds.open_high) bounds.high = *bounds.high - 1;
  if (whole) bounds.open_low = bounds.open_high = false;
  add_between(from, to, schema, bounds, whole, where);
}

/// Numbers between whole bounds, but for those of "not".
void SchemaCompiler::add_between(StateId from, StateId to, const Schema& schema, NumberBounds bounds,
                                 bool whole, const std::string& where) {
  std::vector<std::int64_t> refused;
  if (schema.contains("not"))
    for (const Schema& value : constants(schema["not"])) {
      if (!value.is_number()) continue;
      const auto number = decimal({{"not", value}}, "not", where);
      if (number->decimals == 0) refused.push_back(number->digits);
      if (number->decimals > 0 && !whole)
        refuse_schema("'not' of a number that is not whole is not supported", where, "not");
    }
  std::sort(refused.begin(), refused.end());
  const auto add = [&](const NumberBounds& part) {
    if (!part.low && !part.high)
      rules_.call(from, whole ? json_.integer() : json_.number(), to);
    else if (whole)
      rules_.skip(add_integer_range(rules_, from, part.low, part.high), to);
    else
      rules_.skip(add_number_range(rules_, from, part), to);
  };
  for (const std::int64_t value : refused) {
    if ((bounds.low && value < *bounds.low) || (bounds.high && value > *bounds.high)) continue;
    NumberBounds below = bounds;
    below.high = whole ? value - 1 : value;
    below.open_high = !whole;
    if (!below.low || *below.low <= *below.high) add(below);
    bounds.low = whole ? value + 1 : value;
    bounds.open_low = !whole;
  }
  if (!bounds.low || !bounds.high || *bounds.low <= *bounds.high) add(bounds);
}

/// Multiples of a number, or numbers between bounds that are not whole.
void SchemaCompiler::add_decimals(StateId from, StateId to, const Schema& schema, bool whole,
                                  const std::string& where) {
  if (schema.contains("not"))
    for (const Schema& value : constants(schema["not"]))
      if (value.is_number()) refuse_schema("'not' of a number is not supported here", where, "not");
  DecimalRange range;
  if (const auto step = decimal(schema, "multipleOf", where)) {
    if (step->digits <= 0) refuse_schema("'multipleOf' must be more than 0", where, "multipleOf");
    range.step = step->digits;
    range.decimals = whole ? 0 : step->decimals;
    // A whole number is a multiple of a/10^k where it is one of a without the factors of 10^k.
    for (int i = 0; whole && i < step->decimals; ++i) range.step /= std::gcd(range.step, std::int64_t{10});
    if (range.step > kMostStep)
      refuse_schema(
          fmt::format("'multipleOf' of more than {} units of its last digit is not supported", kMostStep),
          where, "multipleOf");
  } else if (!whole) {
    range.more = true;
    for (const char* bound : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
      if (const auto value = decimal(schema, bound, where))
        range.decimals = std::max(range.decimals, value->decimals);
    // Nothing is nearest to a bound that is left out: what is nearer than this is left out as well.
    constexpr int kNear = 3;
    if (schema.contains("exclusiveMinimum") || schema.contains("exclusiveMaximum"))
      range.decimals = std::min(range.decimals + kNear, 12);
  }
  const UnitBounds bounds = unit_bounds(schema, range.decimals, where);
  range.low = bounds.low.value_or(-kMostWhole);
  range.high = bounds.high.value_or(kMostWhole);
  rules_.skip(add_decimal_range(rules_, from, range), to);
}

}  // namespace caldera::grammar
