// Intervals around f64 values, one for each element of a tensor: what random graphs over the whole range of a
// type are bounded by.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tests/support/plans/dense_reference.h"

namespace caldera::testing {

struct Ranges {
  Dense low, value, high;
  const Shape& shape() const { return value.shape; }
};

/// The least, the f64 value, and the most.
using Interval = std::array<double, 3>;

namespace intervals {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr Interval kAnything{-kInfinity, std::numeric_limits<double>::quiet_NaN(), kInfinity};

inline Interval at(const Ranges& x, const Dims& point) {
  return {x.low[point], x.value[point], x.high[point]};
}
inline void set(Ranges& x, const Dims& point, const Interval& to) {
  x.low[point] = to[0];
  x.value[point] = to[1];
  x.high[point] = to[2];
}
inline Ranges ranges_of(const Shape& shape) { return {Dense(shape), Dense(shape), Dense(shape)}; }
inline bool is_open(const Interval& x) { return !(std::isfinite(x[0]) && std::isfinite(x[2])); }
inline double largest(const Interval& x) { return std::max(std::abs(x[0]), std::abs(x[2])); }

inline Interval plus(const Interval& a, const Interval& b) { return {a[0] + b[0], a[1] + b[1], a[2] + b[2]}; }
inline Interval minus(const Interval& a, const Interval& b) {
  return {a[0] - b[2], a[1] - b[1], a[2] - b[0]};
}
inline Interval times(const Interval& a, const Interval& b) {
  const auto [low, high] = std::minmax({a[0] * b[0], a[0] * b[2], a[2] * b[0], a[2] * b[2]});
  return {low, a[1] * b[1], high};
}
inline Interval over(const Interval& a, const Interval& b) {
  if (!(b[0] > 0) && !(b[2] < 0)) return kAnything;
  const auto [low, high] = std::minmax({a[0] / b[0], a[0] / b[2], a[2] / b[0], a[2] / b[2]});
  return {low, a[1] / b[1], high};
}

}  // namespace intervals
}  // namespace caldera::testing
