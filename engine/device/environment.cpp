#include "engine/device/environment.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "engine/base/error.h"

namespace caldera {

int environment_number(const char* name, int fallback, int lowest, int highest) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return fallback;
  const std::string_view text = value;
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= lowest && number <= highest)
    return number;
  throw ValueError(fmt::format("{}: '{}' is not a number from {} to {}", name, text, lowest, highest));
}

bool environment_flag(const char* name, bool fallback) {
  return environment_number(name, fallback ? 1 : 0, 0, 1) != 0;
}

}  // namespace caldera
