#include "cli/arguments/domains.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

namespace caldera::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The whole text as a T, or false. CLI11's own conversion takes octal, hexadecimal and "nan", and saturates.
template <class T>
bool parse(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stopped == end;
}

}  // namespace

Domain integer_in(std::int64_t low, std::int64_t high) {
  return [=](const std::string& text) -> std::string {
    std::int64_t value = 0;
    if (parse(text, value) && value >= low && value <= high) return {};
    if (high == std::numeric_limits<std::int64_t>::max())
      return fmt::format("'{}' is not a whole number of at least {}", text, low);
    return fmt::format("'{}' is not a whole number from {} to {}", text, low, high);
  };
}

Domain not_empty() {
  return [](const std::string& text) -> std::string {
    return text.empty() ? "the value is empty; leave the flag out" : "";
  };
}

Domain seed_value() {
  return [](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    if (parse(text, value)) return {};
    return fmt::format("'{}' is not a whole number from 0 to {}", text,
                       std::numeric_limits<std::uint64_t>::max());
  };
}

Domain number_in(double low, double high, bool open_low, bool open_high) {
  return [=](const std::string& text) -> std::string {
    double value = 0;
    if (parse(text, value) && std::isfinite(value) && (open_low ? value > low : value >= low) &&
        (open_high ? value < high : value <= high))
      return {};
    const char* above = open_low ? "above" : "of at least";
    if (high == kInfinity) return fmt::format("'{}' is not a number {} {}", text, above, low);
    return fmt::format("'{}' is not a number {} {} and {} {}", text, above, low,
                       open_high ? "below" : "at most", high);
  };
}

Domain positive_number() { return number_in(0, kInfinity, true); }
Domain non_negative_number() { return number_in(0, kInfinity); }

}  // namespace caldera::cli
