// The function that cubic interpolation weighs neighbours by. Private to ops/.
#pragma once

#include <cmath>

namespace caldera {

/// Returns what an element `away` steps off counts for: 1 at 0, 0 at 1 and from 2 on, smooth between (Keys,
/// Cubic convolution interpolation, 1981). `a` is the slope at 1.
inline double cubic_weight(double away, double a) {
  const double x = std::abs(away);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((x - 5) * x + 8) * x * a - 4 * a;
  return 0;
}

}  // namespace caldera
