// The search for the scales and the minima of groups of values' codes. Private to lm/formats/.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace caldera::detail {

inline constexpr std::size_t kScaleGroups = 8;  ///< that are searched at once
inline constexpr std::size_t kScaleGroup = 32;  ///< values of a group

/// A value is scale * code - minimum; neither is negative.
struct ScaleAndMinimum {
  float scale = 0;
  float minimum = 0;
};

/// Searches the scale of codes 0..most for each group, one after the other in `x`, of finite values: tries
/// scales around the one that spreads the values over all codes, gives each the best scale and minimum by
/// least squares (larger values count more), and takes the one of the smallest error. A group is a lane of a
/// vector, so the result does not depend on the processor.
std::array<ScaleAndMinimum, kScaleGroups> search_scales(std::span<const float, kScaleGroups * kScaleGroup> x,
                                                        int most);

}  // namespace caldera::detail
