#include "engine/device/vulkan/glsl/library/library_table.h"

namespace caldera {
namespace {

// How many terms count: engine/device/cpu/simd/gamma_terms.cpp.
constexpr GlslFunction kGamma[] = {
    {"f_gamma_weight", {"f_pow", "f_exp"}, R"(
// The exponent in base 2 as a pair: a log2(x / a), with what the quotient lost, and (a - x) log2(e).
float f_gamma_weight(float a, float x) {
  if (!(a > 0.0 && x > 0.0)) return quiet_nan();
  float ratio = x / a;
  if (!(ratio > 1.0e-37 && ratio < 1.0e37)) return f_pow(ratio, a) * f_exp(a - x);
  vec2 p = f_pair_times(f_pair_log2(ratio), vec2(a, 0.0));
  vec2 back = f_pair_product(ratio, a);
  precise float rest = (x - back.x) - back.y;
  precise float high = a - x;
  precise float part = high - a;
  precise float low = (a - (high - part)) + (-x - part);
  vec2 q = f_pair_times(vec2(high, low + a * (rest / x)), vec2(1.44269502, 1.92596303e-8));
  precise float sum = p.x + q.x;
  precise float along = sum - p.x;
  precise float lost = (p.x - (sum - along)) + (q.x - along);
  float n = floor(clamp(sum, -151.0, 1.0) + 0.5);
  precise float left = (sum - n) + ((p.y + q.y) + lost);
  return sum < -151.0 ? 0.0 : f_scaled_exp(left * 0.693147181, n);
}
)"},
    {"f_gamma_series", {"constants"}, R"(
float f_gamma_series(float a, float x) {
  if (!(a > 0.0 && x > 0.0 && x <= max(a, 1.0))) return quiet_nan();
  int n = int(min(10.0 + 5.0 * sqrt(x), x <= 0.7 * a ? 52.0 : 10000.0));
  float sum = 1.0;
  for (int i = n; i > 0; --i) sum = 1.0 + sum * x / (a + float(i));
  return sum;
}
)"},
    {"f_gamma_fraction", {"constants"}, R"(
float f_gamma_fraction(float a, float x) {
  if (!(a > 0.0 && x >= max(a, 1.0))) return quiet_nan();
  int n = int(6.0 + 24.0 / x + min(2.0 * sqrt(x), 20.0));
  float start = x - a + 1.0, value = start + float(2 * n);
  for (int i = n; i > 0; --i) value = (start + float(2 * i - 2)) + float(i) * (a - float(i)) / value;
  return 1.0 / value;
}
)"},
    {"d_gamma_weight", {"d_constants", "d_exp", "d_log"}, R"(
double d_gamma_weight(double a, double x) {
  if (!(a > 0.0lf && x > 0.0lf)) return d_nan();
  double distance = x - a;
  if (abs(distance) >= 0.3lf * a) return d_exp(a * d_log(x / a) - distance);
  double u = distance / (x + a), square = u * u, tail = 0.0lf;
  for (int i = 23; i >= 3; i -= 2) tail = tail * square + 1.0lf / double(i);
  return d_exp(2.0lf * a * u * square * tail - distance * u);
}
)"},
    {"d_gamma_series", {"d_constants"}, R"(
double d_gamma_series(double a, double x) {
  if (!(a > 0.0lf && x > 0.0lf && x <= max(a, 1.0lf))) return d_nan();
  int n = int(min(18.0lf + 8.0lf * sqrt(x), x <= 0.7lf * a ? 104.0lf : 10000.0lf));
  double sum = 1.0lf;
  for (int i = n; i > 0; --i) sum = 1.0lf + sum * x / (a + double(i));
  return sum;
}
)"},
    {"d_gamma_fraction", {"d_constants"}, R"(
double d_gamma_fraction(double a, double x) {
  if (!(a > 0.0lf && x >= max(a, 1.0lf))) return d_nan();
  int n = int(12.0lf + 110.0lf / x + min(3.0lf * sqrt(x), 30.0lf));
  double start = x - a + 1.0lf, value = start + double(2 * n);
  for (int i = n; i > 0; --i) value = (start + double(2 * i - 2)) + double(i) * (a - double(i)) / value;
  return 1.0lf / value;
}
)"},
};

}  // namespace

std::span<const GlslFunction> glsl_gamma_functions() { return kGamma; }

}  // namespace caldera
