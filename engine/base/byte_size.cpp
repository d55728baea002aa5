#include "engine/base/byte_size.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "engine/base/error.h"

namespace caldera {
namespace {

struct Unit {
  std::string_view name;  // lower case
  double bytes;
};

constexpr std::array<Unit, 10> kUnits{{{"", 1},
                                       {"b", 1},
                                       {"kb", 1e3},
                                       {"mb", 1e6},
                                       {"gb", 1e9},
                                       {"tb", 1e12},
                                       {"kib", 0x1p10},
                                       {"mib", 0x1p20},
                                       {"gib", 0x1p30},
                                       {"tib", 0x1p40}}};

/// "12.5 KiB", the number as `round` makes it of one that is to be whole.
std::string in_units(std::int64_t bytes, double (*round)(double)) {
  constexpr std::array<const char*, 4> kUnits{"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  const double scale = std::pow(10, digits);
  return fmt::format("{:.{}f} {}", round(value * scale) / scale, digits, kUnits[unit]);
}

bool is_same(std::string_view text, std::string_view lower_case) {
  return std::ranges::equal(text, lower_case, [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == static_cast<unsigned char>(b);
  });
}

}  // namespace

std::uint64_t parse_bytes(std::string_view text, std::string_view name) {
  constexpr double kMost = 0x1p62;
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
  std::string_view unit(end, static_cast<std::size_t>(last - end));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto* const found =
      std::ranges::find_if(kUnits, [&](const Unit& known) { return is_same(unit, known.name); });
  const double bytes = error == std::errc() && found != kUnits.end() ? number * found->bytes : 0;
  if (!(bytes >= 1 && bytes <= kMost)) {
    throw ValueError(
        fmt::format("{}: '{}' is no size in bytes; write for example 512MiB, 2GB or 1048576", name, text));
  }
  return static_cast<std::uint64_t>(bytes);
}

std::string format_bytes(std::int64_t bytes) { return in_units(bytes, std::nearbyint); }
std::string format_bytes_up(std::int64_t bytes) { return in_units(bytes, std::ceil); }

}  // namespace caldera
