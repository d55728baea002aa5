// Gives double the functions that the dynamics of environments are written in, as graphs and vectors of a
// processor have them too. Private to training/rl/.
#pragma once

#include <cmath>

#include "engine/graph/lazy_tensor.h"
#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/selection.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/rounding.h"
#include "ops/elementwise/trigonometry.h"

namespace caldera::rl::detail {

inline double sine(double x) { return std::sin(x); }
inline double cosine(double x) { return std::cos(x); }
inline double choose(bool condition, double a, double b) { return condition ? a : b; }
inline double at_least(double x, double low) { return x < low ? low : x; }
inline double at_most(double x, double high) { return high < x ? high : x; }
inline bool either(bool a, bool b) { return a || b; }
inline bool both(bool a, bool b) { return a && b; }
/// Returns the remainder with the sign of the divisor, which is positive, as Python's operator has it.
inline double modulo(double x, double divisor) {
  const double rest = std::fmod(x, divisor);
  return rest < 0 ? rest + divisor : rest;
}

inline LazyTensor sine(const LazyTensor& x) { return sin(x); }
inline LazyTensor cosine(const LazyTensor& x) { return cos(x); }
inline LazyTensor choose(const LazyTensor& condition, const LazyTensor& a, const LazyTensor& b) {
  return where(condition, a, b);
}
inline LazyTensor at_least(const LazyTensor& x, double low) { return clip(x, LazyTensor(low)); }
inline LazyTensor at_most(const LazyTensor& x, double high) {
  return clip(x, std::nullopt, LazyTensor(high));
}
inline LazyTensor either(const LazyTensor& a, const LazyTensor& b) { return logical_or(a, b); }
inline LazyTensor both(const LazyTensor& a, const LazyTensor& b) { return logical_and(a, b); }
inline LazyTensor modulo(const LazyTensor& x, double divisor) { return x - floor(x / divisor) * divisor; }

}  // namespace caldera::rl::detail
