#include "engine/runtime/settings.h"

#include <cstdlib>
#include <string_view>

namespace caldera {
namespace {

int from_environment(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? fallback : static_cast<int>(std::strtol(text, nullptr, 10));
}

}  // namespace

Settings& settings() {
  static Settings instance{
      .fusion = from_environment("CALDERA_FUSION", 1) != 0,
      .plan_cache = from_environment("CALDERA_PLAN_CACHE", 1) != 0,
      .verify = from_environment("CALDERA_VERIFY", 0) != 0,
      .debug = from_environment("CALDERA_DEBUG", 0),
  };
  return instance;
}

}  // namespace caldera
