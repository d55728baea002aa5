// How accurate the functions of float32 are: what accuracy_test.cpp measures, and the figures that
// docs/guide/operations.md prints.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "ops/ops.h"

namespace caldera::testing {

/// Errors are in units in the last place of the exact result (of the smallest normal number below that), or
/// of `scale` where the exact result is smaller.
struct AccuracyFigure {
  const char* function;
  LazyTensor (*call)(const LazyTensor& x, const LazyTensor& y);
  double (*exact)(double x, double y);
  double low, high;            // where it is interesting: half of the points lie there
  double cpu;                  // the largest error found, with AVX2, rounded up
  double vulkan;               // the same with Mesa's lavapipe, 22.3 to 26.2: fma rounds once or twice
  const char* required = "-";  // of Vulkan's own function, by its specification; - where it has none
  double scale = 0;
  bool has_second = false;
};

template <LazyTensor (*F)(const LazyTensor&)>
LazyTensor one(const LazyTensor& x, const LazyTensor&) {
  return F(x);
}
template <double (*F)(double)>
double one(double x, double) {
  return F(x);
}
/// gelu.
inline double half_erfc(double x, double) {
  return std::isinf(x) && x < 0 ? NAN : x * 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

/// The first six must stay within 2 ulp on the CPU, and are tried on more points than the others.
inline constexpr std::size_t kRequiredCount = 6;
inline constexpr double kRequiredUlp = 2;
constexpr std::int64_t accuracy_points(std::size_t row) { return row < kRequiredCount ? 1'000'000 : 200'000; }

inline constexpr std::array kAccuracyFigures{
    AccuracyFigure{"exp", one<exp>, one<std::exp>, -104, 89, 1.0, 1.3, "3 + 2 \\|x\\| ulp"},
    AccuracyFigure{"log", one<log>, one<std::log>, 0.5, 2, 0.9, 0.9, "3 ulp; 2^-21 within [0.5, 2]"},
    AccuracyFigure{"tanh", one<tanh>, one<std::tanh>, -10, 10, 1.3, 1.3, "as of sinh / cosh"},
    AccuracyFigure{"sin", one<sin>, one<std::sin>, -400, 400, 1.6, 2.5, "2^-11 within [-pi, pi]"},
    AccuracyFigure{"cos", one<cos>, one<std::cos>, -400, 400, 1.6, 2.5, "2^-11 within [-pi, pi]"},
    AccuracyFigure{"erf", one<erf>, one<std::erf>, -4.5, 4.5, 1.2, 1.2, "-"},
    AccuracyFigure{"exp2", one<exp2>, one<std::exp2>, -150, 129, 1.0, 1.8, "3 + 2 \\|x\\| ulp"},
    AccuracyFigure{"expm1", one<expm1>, one<std::expm1>, -2, 2, 1.6, 1.6, "-"},
    AccuracyFigure{"log2", one<log2>, one<std::log2>, 0.5, 2, 1.3, 1.3, "3 ulp; 2^-21 within [0.5, 2]"},
    AccuracyFigure{"log10", one<log10>, one<std::log10>, 0.5, 2, 1.9, 2.0, "-"},
    AccuracyFigure{"log1p", one<log1p>, one<std::log1p>, -1, 1, 1.5, 2.4, "-"},
    AccuracyFigure{"sqrt", one<sqrt>, one<std::sqrt>, 0, 100, 0.5, 0.5, "as of 1 / inversesqrt"},
    AccuracyFigure{"rsqrt", one<rsqrt>, [](double x, double) { return 1 / std::sqrt(x); }, 0, 100, 1.5, 1.5,
                   "2 ulp"},
    AccuracyFigure{"reciprocal", one<reciprocal>, [](double x, double) { return 1 / x; }, -100, 100, 0.5, 0.5,
                   "2.5 ulp"},
    AccuracyFigure{"tan", one<tan>, one<std::tan>, -400, 400, 1.5, 4.3, "as of sin / cos"},
    AccuracyFigure{"sigmoid", one<sigmoid>, [](double x, double) { return 1 / (1 + std::exp(-x)); }, -104, 20,
                   2.2, 2.4, "-"},
    AccuracyFigure{"asin", one<asin>, one<std::asin>, -1, 1, 1.2, 2.0, "4096 ulp"},
    AccuracyFigure{"acos", one<acos>, one<std::acos>, -1, 1, 1.2, 1.2, "4096 ulp"},
    AccuracyFigure{"atan", one<atan>, one<std::atan>, -10, 10, 1.1, 1.3, "4096 ulp"},
    AccuracyFigure{"sinh", one<sinh>, one<std::sinh>, -90, 90, 2.2, 2.2, "as of exp"},
    AccuracyFigure{"cosh", one<cosh>, one<std::cosh>, -90, 90, 1.6, 1.6, "as of exp"},
    AccuracyFigure{"asinh", one<asinh>, one<std::asinh>, -10, 10, 2.0, 2.6, "as of log"},
    AccuracyFigure{"acosh", one<acosh>, one<std::acosh>, 1, 10, 2.8, 3.0, "as of log"},
    AccuracyFigure{"atanh", one<atanh>, one<std::atanh>, -1, 1, 2.2, 2.8, "as of log"},
    AccuracyFigure{"erfc", one<erfc>, one<std::erfc>, -4, 10.5, 5.0, 5.2, "-"},
    AccuracyFigure{"lgamma", one<lgamma>, one<std::lgamma>, 0, 20, 20, 20, "-", 1},
    AccuracyFigure{"gelu", [](const LazyTensor& x, const LazyTensor&) { return gelu(x); }, half_erfc, -14, 8,
                   1.5, 1.5, "-", 1},
    AccuracyFigure{.function = "pow",
                   .call = pow,
                   .exact = std::pow,
                   .low = 0,
                   .high = 10,
                   .cpu = 1.0,
                   .vulkan = 1.1,
                   .required = "as of exp2(y log2(x))",
                   .has_second = true},
    AccuracyFigure{.function = "atan2",
                   .call = atan2,
                   .exact = std::atan2,
                   .low = -10,
                   .high = 10,
                   .cpu = 1.5,
                   .vulkan = 3.2,
                   .required = "4096 ulp",
                   .has_second = true},
    AccuracyFigure{.function = "hypot",
                   .call = hypot,
                   .exact = std::hypot,
                   .low = -10,
                   .high = 10,
                   .cpu = 2.0,
                   .vulkan = 2.0,
                   .required = "-",
                   .has_second = true},
    AccuracyFigure{.function = "divide",
                   .call = divide,
                   .exact = [](double a, double b) { return a / b; },
                   .low = -10,
                   .high = 10,
                   .cpu = 0.5,
                   .vulkan = 0.5,
                   .required = "2.5 ulp",
                   .has_second = true},
};

}  // namespace caldera::testing
