#include "engine/runtime/settings.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "engine/runtime/byte_size.h"
#include "engine/tensor/error.h"

namespace caldera {
namespace {

/// A small number from the environment. A value that is none is an error: a switch that is silently off, or
/// silently on, is worse than a program that does not start.
int from_environment(const char* name, int fallback, int highest) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return fallback;
  const std::string_view text = value;
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= 0 && number <= highest)
    return number;
  throw ValueError(fmt::format("{}: '{}' is not a number from 0 to {}", name, text, highest));
}

std::uint64_t memory_limit_of_environment() {
  constexpr const char* kName = "CALDERA_MEMORY_LIMIT";
  const char* value = std::getenv(kName);
  return value == nullptr || *value == '\0' ? 0 : parse_bytes(value, kName);
}

Settings from_environment() {
  constexpr int kHighestDebug = 4;
  return {
      .fusion = from_environment("CALDERA_FUSION", 1, 1) != 0,
      .plan_cache = from_environment("CALDERA_PLAN_CACHE", 1, 1) != 0,
      .verify = from_environment("CALDERA_VERIFY", 0, 1) != 0,
      .memory_limit = memory_limit_of_environment(),
      .debug = from_environment("CALDERA_DEBUG", 0, kHighestDebug),
  };
}

}  // namespace

Settings& settings() {
  static Settings instance = from_environment();
  return instance;
}

}  // namespace caldera
