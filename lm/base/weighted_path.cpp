#include "lm/base/weighted_path.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "engine/base/error.h"

namespace caldera {

WeightedPath parse_weighted_path(const std::string& text, std::string_view what) {
  std::error_code ignored;
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || std::filesystem::exists(text, ignored)) return {.path = text};
  double weight = 0;
  const char* const begin = text.data() + colon + 1;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, weight);
  if (error != std::errc() || stopped != end) return {.path = text};
  if (!std::isfinite(weight) || weight <= 0 || weight > 1000)
    throw ValueError(fmt::format("{}: the weight of {} must be above 0, and at most 1000", text, what));
  return {.path = text.substr(0, colon), .weight = weight};
}

}  // namespace caldera
