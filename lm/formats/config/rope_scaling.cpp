#include "lm/formats/config/rope_scaling.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

namespace caldera {

std::int64_t RopeScaling::original_positions(std::int64_t max_positions) const {
  if (type == RopeType::dynamic) return max_positions;  // whatever the file says beside it
  return original_max_position_embeddings.value_or(max_positions);
}

double RopeScaling::stretch(std::int64_t max_positions) const {
  return factor.value_or(static_cast<double>(max_positions) /
                         static_cast<double>(original_positions(max_positions)));
}

std::int64_t RopeScaling::usable_positions(std::int64_t max_positions) const {
  if (type != RopeType::linear && type != RopeType::dynamic && type != RopeType::yarn) return max_positions;
  const double stretched = stretch(max_positions) * static_cast<double>(original_positions(max_positions));
  constexpr auto kMost = static_cast<double>(std::numeric_limits<std::int32_t>::max());
  return std::max(max_positions, static_cast<std::int64_t>(std::min(stretched, kMost)));
}

std::string_view name(RopeType type) {
  static constexpr std::array<std::string_view, 6> kNames{"default", "linear", "dynamic",
                                                          "llama3",  "yarn",   "longrope"};
  return kNames.at(static_cast<std::size_t>(type));
}

}  // namespace caldera
