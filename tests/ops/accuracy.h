// How accurate the functions of float32 are: the figures that accuracy_test.cpp measures and
// docs/operations.md prints.
#pragma once

#include <array>
#include <cstdint>

namespace caldera::testing {

/// Errors are in units in the last place of the exact result (of the smallest normal number below that), or
/// of `scale` where the exact result is smaller.
struct AccuracyFigure {
  const char* function;
  double cpu;                  // the largest error found, with AVX2, rounded up
  double vulkan;               // the same with Mesa's lavapipe
  const char* required = "-";  // of Vulkan's own function, by its specification; - where it has none
  double scale = 0;
};

/// The first six must stay within 2 ulp on the CPU, and are tried on more points than the others.
inline constexpr std::size_t kRequiredCount = 6;
inline constexpr double kRequiredUlp = 2;
constexpr std::int64_t accuracy_points(std::size_t row) { return row < kRequiredCount ? 1'000'000 : 200'000; }

inline constexpr std::array kAccuracyFigures{
    AccuracyFigure{"exp", 1.0, 1.0, "3 + 2 \\|x\\| ulp"},
    AccuracyFigure{"log", 0.9, 0.9, "3 ulp; 2^-21 within [0.5, 2]"},
    AccuracyFigure{"tanh", 1.3, 1.3, "as of sinh / cosh"},
    AccuracyFigure{"sin", 1.6, 2.5, "2^-11 within [-pi, pi]"},
    AccuracyFigure{"cos", 1.6, 2.5, "2^-11 within [-pi, pi]"},
    AccuracyFigure{"erf", 1.2, 1.2, "-"},
    AccuracyFigure{"exp2", 1.0, 1.0, "3 + 2 \\|x\\| ulp"},
    AccuracyFigure{"expm1", 1.6, 1.6, "-"},
    AccuracyFigure{"log2", 1.3, 1.3, "3 ulp; 2^-21 within [0.5, 2]"},
    AccuracyFigure{"log10", 1.9, 2.0, "-"},
    AccuracyFigure{"log1p", 1.5, 2.4, "-"},
    AccuracyFigure{"sqrt", 0.5, 0.5, "as of 1 / inversesqrt"},
    AccuracyFigure{"rsqrt", 1.5, 1.5, "2 ulp"},
    AccuracyFigure{"reciprocal", 0.5, 0.5, "2.5 ulp"},
    AccuracyFigure{"tan", 1.5, 4.0, "as of sin / cos"},
    AccuracyFigure{"sigmoid", 2.2, 2.2, "-"},
    AccuracyFigure{"asin", 2.5, 3.6, "4096 ulp"},
    AccuracyFigure{"acos", 2.0, 3.5, "4096 ulp"},
    AccuracyFigure{"atan", 1.0, 2.8, "4096 ulp"},
    AccuracyFigure{"sinh", 2.2, 2.2, "as of exp"},
    AccuracyFigure{"cosh", 1.6, 1.6, "as of exp"},
    AccuracyFigure{"asinh", 2.0, 2.6, "as of log"},
    AccuracyFigure{"acosh", 2.8, 3.0, "as of log"},
    AccuracyFigure{"atanh", 2.2, 2.8, "as of log"},
    AccuracyFigure{"erfc", 5.0, 5.0, "-"},
    AccuracyFigure{"lgamma", 20, 20, "-", 1},
    AccuracyFigure{"gelu", 1.5, 1.5, "-", 1},
    AccuracyFigure{"pow", 1.0, 120, "as of exp2(y log2(x))"},
    AccuracyFigure{"atan2", 1.5, 3.2, "4096 ulp"},
    AccuracyFigure{"hypot", 2.0, 2.0, "-"},
    AccuracyFigure{"divide", 0.5, 0.5, "2.5 ulp"},
};

}  // namespace caldera::testing
