#include "engine/runtime/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "engine/compile/compile.h"
#include "engine/device/byte_size.h"
#include "engine/device/environment.h"

namespace caldera {
namespace {

std::uint64_t memory_limit_of_environment() {
  constexpr const char* kName = "CALDERA_MEMORY_LIMIT";
  const char* value = std::getenv(kName);
  return value == nullptr || *value == '\0' ? 0 : parse_bytes(value, kName);
}

std::int64_t arena_segment_of_environment() {
  constexpr const char* kName = "CALDERA_ARENA_SEGMENT";
  const char* value = std::getenv(kName);
  if (value == nullptr || *value == '\0') return kArenaSegment;
  const std::uint64_t bytes = parse_bytes(value, kName);
  if (bytes < kArenaAlignment || bytes > kArenaSegment)
    throw ValueError(
        fmt::format("{} is {}; want {} to {} bytes", kName, value, kArenaAlignment, kArenaSegment));
  return static_cast<std::int64_t>(bytes) / kArenaAlignment * kArenaAlignment;
}

std::string debug_pass_of_environment() {
  constexpr const char* kName = "CALDERA_DEBUG_PASS";
  const char* value = std::getenv(kName);
  if (value == nullptr || *value == '\0' || std::string_view(value) == "all")
    return value == nullptr ? "" : value;
  const std::vector<std::string_view> names = pass_names();
  if (std::find(names.begin(), names.end(), value) == names.end())
    throw ValueError(fmt::format("{}: there is no pass '{}'; want all or one of {}", kName, value,
                                 fmt::join(names, ", ")));
  return value;
}

Settings from_environment() {
  constexpr int kHighestDebug = 4;
  return {
      .fusion = environment_flag("CALDERA_FUSION", true),
      .plan_cache = environment_flag("CALDERA_PLAN_CACHE", true),
      .verify = environment_flag("CALDERA_VERIFY"),
      .memory_limit = memory_limit_of_environment(),
      .arena_segment = arena_segment_of_environment(),
      .debug = environment_number("CALDERA_DEBUG", 0, 0, kHighestDebug),
      .debug_pass = debug_pass_of_environment(),
  };
}

}  // namespace

Settings& settings() {
  static auto* instance = new Settings(from_environment());  // outlives every static tensor
  return *instance;
}

}  // namespace caldera
