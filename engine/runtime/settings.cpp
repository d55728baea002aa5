#include "engine/runtime/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <vector>

#include "engine/base/byte_size.h"
#include "engine/base/error.h"
#include "engine/compile/compile.h"
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

StepChecks check_of_environment() {
  constexpr const char* kName = "CALDERA_CHECK";
  const char* value = std::getenv(kName);
  const std::string_view text = value == nullptr ? "" : value;
  if (text.empty() || text == "0") return {};
  if (text == "1") return {.on = true};
  StepChecks check{.on = true, .step = 0};
  const char* const end = text.data() + text.size();
  const auto evaluation = std::from_chars(text.data(), end, check.evaluation);
  if (evaluation.ec == std::errc() && evaluation.ptr != end && *evaluation.ptr == '.' &&
      check.evaluation > 0) {
    const auto step = std::from_chars(evaluation.ptr + 1, end, *check.step);
    if (step.ec == std::errc() && step.ptr == end) return check;
  }
  throw ValueError(fmt::format(
      "{} is '{}'; want 1, or the numbers of an evaluation (from 1) and of its step, such as 12.5", kName,
      text));
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
      .check = check_of_environment(),
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
