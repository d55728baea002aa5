// The rows that the library of GLSL functions is made of.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace caldera {

struct GlslFunction {
  std::string_view name;
  std::array<std::string_view, 3> needs;  // functions that it calls
  std::string_view text;
};

/// The elementary functions of float32.
std::span<const GlslFunction> glsl_functions_f32();

/// The angles of float32 that a sine, cosine or tangent has.
std::span<const GlslFunction> glsl_angles_f32();

/// The functions that incomplete gamma functions are made of, in both types.
std::span<const GlslFunction> glsl_gamma_functions();

/// The functions of float64, which GLSL has none of but square root and rounding.
std::span<const GlslFunction> glsl_functions_f64();

}  // namespace caldera
