#include "engine/device/vulkan/glsl/library/library_table.h"

namespace caldera {
namespace {

// The polynomials of the CPU device: engine/device/cpu/simd/math_f32-inl.h.
constexpr GlslFunction kAngles[] = {
    {"f_atan", {}, R"(
float f_atan(float x) {
  float a = abs(x);
  bool is_far = a > 1.0;  // pi/2 - atan(1 / a)
  float t = is_far ? -1.0 / a : a;
  float z = t * t;
  float p = -1.79362297e-03;
  p = p * z + 1.09146116e-02;
  p = p * z - 3.11778560e-02;
  p = p * z + 5.79576045e-02;
  p = p * z - 8.40345100e-02;
  p = p * z + 1.09521858e-01;
  p = p * z - 1.42642424e-01;
  p = p * z + 1.99985489e-01;
  p = p * z - 3.33332986e-01;
  float tail = p * z * t;
  float r = is_far ? 1.57079637 + (t + (tail - 4.37113883e-8)) : t + tail;
  return uintBitsToFloat(floatBitsToUint(r) ^ floatBitsToUint(x) & 0x80000000u);
}
)"},
    {"f_asin_tail", {}, R"(
// asin(s) - s where z = s^2 <= 1/4, over s z.
float f_asin_tail(float z) {
  float p = 4.21663076e-02;
  p = p * z + 2.41795145e-02;
  p = p * z + 4.54703756e-02;
  p = p * z + 7.49529749e-02;
  p = p * z + 1.66667521e-01;
  return p;
}
)"},
    {"f_asin", {"f_asin_tail", "constants"}, R"(
float f_asin(float x) {
  float a = abs(x);
  if (!(a <= 1.0)) return quiet_nan();
  float r;
  if (a > 0.5) {  // pi/2 - 2 asin(sqrt((1 - a) / 2))
    float z = (1.0 - a) * 0.5;
    float s = sqrt(z);
    r = (1.57079637 - 2.0 * s) - (2.0 * s * (z * f_asin_tail(z)) + 4.37113883e-8);
  } else {
    float z = a * a;
    r = a + a * (z * f_asin_tail(z));
  }
  return uintBitsToFloat(floatBitsToUint(r) ^ floatBitsToUint(x) & 0x80000000u);
}
)"},
    {"f_acos", {"f_asin_tail", "constants"}, R"(
float f_acos(float x) {
  float a = abs(x);
  if (!(a <= 1.0)) return quiet_nan();
  if (a <= 0.5) {
    float z = x * x;
    return (1.57079637 - x) - (x * (z * f_asin_tail(z)) + 4.37113883e-8);
  }
  float z = (1.0 - a) * 0.5;  // 2 asin(sqrt((1 - a) / 2)), or pi minus that
  float s = sqrt(z) * 2.0;
  float r = s + s * (z * f_asin_tail(z));
  return x < 0.0 ? 3.14159274 - (r + 8.74227766e-8) : r;
}
)"},
};

}  // namespace

std::span<const GlslFunction> glsl_angles_f32() { return kAngles; }

}  // namespace caldera
