#include "engine/runtime/settings.h"

#include <cstdlib>

#include "engine/device/environment.h"
#include "engine/runtime/byte_size.h"

namespace caldera {
namespace {

std::uint64_t memory_limit_of_environment() {
  constexpr const char* kName = "CALDERA_MEMORY_LIMIT";
  const char* value = std::getenv(kName);
  return value == nullptr || *value == '\0' ? 0 : parse_bytes(value, kName);
}

Settings from_environment() {
  constexpr int kHighestDebug = 4;
  return {
      .fusion = environment_flag("CALDERA_FUSION", true),
      .plan_cache = environment_flag("CALDERA_PLAN_CACHE", true),
      .verify = environment_flag("CALDERA_VERIFY"),
      .memory_limit = memory_limit_of_environment(),
      .debug = environment_number("CALDERA_DEBUG", 0, 0, kHighestDebug),
  };
}

}  // namespace

Settings& settings() {
  static Settings instance = from_environment();
  return instance;
}

}  // namespace caldera
