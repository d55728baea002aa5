// The search for the scale and the minimum of a few values' codes. Private to lm/formats/.
#pragma once

#include <span>

namespace caldera::detail {

/// A value is scale * code - minimum; neither is negative.
struct ScaleAndMinimum {
  float scale = 0;
  float minimum = 0;
};

/// Searches the scale of codes 0..most: tries scales around the one that spreads the values over all codes,
/// gives each the best scale and minimum by least squares (larger values count more), and takes the one of
/// the smallest error.
ScaleAndMinimum search_scale(std::span<const float> x, int most);

}  // namespace caldera::detail
