#include "engine/kernel/glsl_library_table.h"

namespace caldera {
namespace {

// Plain series after a reduction of the argument: right to a few units in the last place, and not fast.
// float64 on a GPU is for checking, not for training. The split constants of pi / 2 and log 2 are those of
// fdlibm.
constexpr GlslFunction kFunctions[] = {
    {"is_nan_d", {}, R"(
bool is_nan_d(double x) {
  uvec2 w = unpackDouble2x32(x);
  uint high = w.y & 0x7fffffffu;
  return high > 0x7ff00000u || (high == 0x7ff00000u && w.x != 0u);
}
)"},
    {"max_nan_d", {"is_nan_d"}, R"(
double max_nan_d(double a, double b) { return is_nan_d(a) ? a : (is_nan_d(b) ? b : max(a, b)); }
)"},
    {"min_nan_d", {"is_nan_d"}, R"(
double min_nan_d(double a, double b) { return is_nan_d(a) ? a : (is_nan_d(b) ? b : min(a, b)); }
)"},
    {"d_round", {}, R"(
// To the nearest integer, halves to even.
double d_round(double x) {
  double low = floor(x), above = x - low;
  bool up = above > 0.5lf || (above == 0.5lf && floor(low * 0.5lf) * 2.0lf != low);
  double r = up ? low + 1.0lf : low;
  return x < 0.0lf ? -abs(r) : r;
}
)"},
    {"d_to_i32", {"is_nan_d"}, R"(
int d_to_i32(double x) {
  if (is_nan_d(x)) return 0;
  if (x >= 2147483647.0lf) return 2147483647;
  if (x <= -2147483648.0lf) return -2147483647 - 1;
  return int(x);
}
)"},
    {"d_to_u8", {"is_nan_d"}, R"(
uint d_to_u8(double x) { return is_nan_d(x) ? 0u : uint(clamp(x, 0.0lf, 255.0lf)); }
)"},
    {"d_to_i64", {"is_nan_d"}, R"(
int64_t d_to_i64(double x) {
  if (is_nan_d(x)) return 0l;
  if (x >= 9223372036854775808.0lf) return 9223372036854775807l;
  if (x <= -9223372036854775808.0lf) return -9223372036854775807l - 1l;
  return int64_t(x);
}
)"},
    {"philox_uniform_d", {"philox"}, R"(
double philox_uniform_d(uvec2 key, uint i) { return double(philox(i >> 2, key)[i & 3u]) * (1.0lf / 4294967296.0lf); }
)"},
    {"d_constants", {}, R"(
double d_nan() { return packDouble2x32(uvec2(0u, 0x7ff80000u)); }
double d_infinity() { return packDouble2x32(uvec2(0u, 0x7ff00000u)); }
double d_pow2(int n) { return packDouble2x32(uvec2(0u, uint(n + 1023) << 20)); }
)"},
    {"d_reduced_exp", {"d_constants"}, R"(
// x = n log 2 + r; gives (n, exp(r) - 1).
dvec2 d_reduced_exp(double x) {
  double n = floor(x * 1.44269504088896338700lf + 0.5lf);
  double r = (x - n * 6.93147180369123816490e-01lf) - n * 1.90821492927058770002e-10lf;
  double s = 1.0lf;
  for (int i = 14; i > 1; --i) s = 1.0lf + r * s / double(i);
  return dvec2(n, r * s);
}
)"},
    {"d_exp", {"is_nan_d", "d_reduced_exp"}, R"(
double d_exp(double x) {
  if (is_nan_d(x)) return x;
  if (x > 709.782712893383973096lf) return d_infinity();
  if (x < -745.2lf) return 0.0lf;
  dvec2 p = d_reduced_exp(x);
  int i = int(p.x);
  int h = i >> 1;
  return (1.0lf + p.y) * d_pow2(h) * d_pow2(i - h);
}
)"},
    {"d_expm1", {"d_exp"}, R"(
double d_expm1(double x) {
  if (is_nan_d(x)) return x;
  if (x > 40.0lf) return d_exp(x) - 1.0lf;
  if (x < -40.0lf) return -1.0lf;
  dvec2 p = d_reduced_exp(x);
  double scale = d_pow2(int(p.x));
  return p.x == 0.0lf ? p.y : scale * p.y + (scale - 1.0lf);
}
)"},
    {"d_exp2", {"is_nan_d", "d_reduced_exp"}, R"(
double d_exp2(double x) {
  if (is_nan_d(x)) return x;
  if (x >= 1024.0lf) return d_infinity();
  if (x < -1076.0lf) return 0.0lf;
  double n = floor(x + 0.5lf);
  dvec2 p = d_reduced_exp((x - n) * 0.69314718055994530942lf);
  int i = int(n + p.x);
  int h = i >> 1;
  return (1.0lf + p.y) * d_pow2(h) * d_pow2(i - h);
}
)"},
    {"d_log_parts", {"d_constants"}, R"(
// x = 2^e m, as (e, log(m)), for positive finite x.
dvec2 d_log_parts(double x) {
  double e = 0.0lf;
  if (x < 2.2250738585072014e-308lf) {
    x *= 18014398509481984.0lf;
    e = -54.0lf;
  }
  uvec2 w = unpackDouble2x32(x);
  e += double(int(w.y >> 20) - 1022);
  double m = packDouble2x32(uvec2(w.x, (w.y & 0x000fffffu) | 0x3fe00000u));
  if (m < 0.70710678118654752440lf) {
    e -= 1.0lf;
    m *= 2.0lf;
  }
  double s = (m - 1.0lf) / (m + 1.0lf);
  double z = s * s;
  double t = 0.0lf;
  for (int i = 11; i >= 0; --i) t = t * z + 1.0lf / double(2 * i + 1);
  return dvec2(e, 2.0lf * s * t);
}
)"},
    {"d_log_limit", {"is_nan_d", "d_constants"}, R"(
// What a logarithm is where its argument is not positive and finite.
double d_log_limit(double x) {
  if (is_nan_d(x)) return x;
  return x == 0.0lf ? -d_infinity() : (x < 0.0lf ? d_nan() : x);
}
)"},
    {"d_log", {"d_log_parts", "d_log_limit"}, R"(
double d_log(double x) {
  if (!(x > 0.0lf) || x == d_infinity()) return d_log_limit(x);
  dvec2 p = d_log_parts(x);
  return (p.y + p.x * 1.90821492927058770002e-10lf) + p.x * 6.93147180369123816490e-01lf;
}
)"},
    {"d_log2", {"d_log_parts", "d_log_limit"}, R"(
double d_log2(double x) {
  if (!(x > 0.0lf) || x == d_infinity()) return d_log_limit(x);
  dvec2 p = d_log_parts(x);
  return p.y * 1.44269504088896340736lf + p.x;
}
)"},
    {"d_log10", {"d_log_parts", "d_log_limit"}, R"(
// log10(2) in two parts, of which the product of the first with an exponent is exact.
double d_log10(double x) {
  if (!(x > 0.0lf) || x == d_infinity()) return d_log_limit(x);
  dvec2 p = d_log_parts(x);
  double low = p.y * 0.43429448190325182765lf + p.x * 3.69423907715893078616e-13lf;
  return low + p.x * 3.01029995663611771306e-01lf;
}
)"},
    {"d_copysign", {}, R"(
double d_copysign(double x, double y) {
  uvec2 w = unpackDouble2x32(x);
  uint sign = unpackDouble2x32(y).y & 0x80000000u;
  return packDouble2x32(uvec2(w.x, w.y & 0x7fffffffu | sign));
}
)"},
    {"d_log1p", {"d_log"}, R"(
double d_log1p(double x) {
  precise double u = 1.0lf + x;
  precise double d = u - 1.0lf;
  if (d == 0.0lf) return x;
  if (u == d_infinity() || is_nan_d(u)) return u;
  return d_log(u) * (x / d);
}
)"},
    {"d_sincos", {"is_nan_d", "d_constants"}, R"(
dvec2 d_sincos(double x) {
  double a = abs(x);
  if (is_nan_d(x) || a == d_infinity()) return dvec2(d_nan());
  a = min(a, 1e9lf);
  double n = floor(a * 0.63661977236758134308lf + 0.5lf);
  precise double r = ((a - n * 1.57079632673412561417e+00lf) - n * 6.07710050630396597660e-11lf) -
                     n * 2.02226624879595063154e-21lf;
  double z = r * r;
  double s = 1.0lf, c = 1.0lf;
  for (int i = 9; i > 0; --i) {
    s = 1.0lf - z * s / double((2 * i) * (2 * i + 1));
    c = 1.0lf - z * c / double((2 * i - 1) * (2 * i));
  }
  s *= r;
  int q = int(n) & 3;
  dvec2 sc = (q & 1) != 0 ? dvec2(c, s) : dvec2(s, c);
  if (q >= 2) sc.x = -sc.x;
  if (q == 1 || q == 2) sc.y = -sc.y;
  if (x < 0.0lf) sc.x = -sc.x;
  return sc;
}
)"},
    {"d_sin", {"d_sincos"}, "double d_sin(double x) { return x == 0.0lf ? x : d_sincos(x).x; }\n"},
    {"d_cos", {"d_sincos"}, "double d_cos(double x) { return d_sincos(x).y; }\n"},
    {"d_tan", {"d_sincos"}, R"(
double d_tan(double x) {
  dvec2 sc = d_sincos(x);
  return x == 0.0lf ? x : sc.x / sc.y;
}
)"},
    {"d_tanh", {"d_expm1"}, R"(
double d_tanh(double x) {
  if (is_nan_d(x)) return x;
  double a = abs(x);
  double t = d_expm1(2.0lf * min(a, 22.0lf));
  double y = t / (t + 2.0lf);
  return x < 0.0lf ? -y : y;
}
)"},
    {"d_sigmoid", {"d_exp"}, R"(
double d_sigmoid(double x) {
  double e = d_exp(-abs(x));
  return (x < 0.0lf ? e : 1.0lf) / (1.0lf + e);
}
)"},
    {"d_erf", {"d_exp"}, R"(
// erf x = 2 / sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (2n+1)!!, whose terms all have one sign.
double d_erf(double x) {
  if (is_nan_d(x)) return x;
  if (abs(x) > 6.0lf) return x < 0.0lf ? -1.0lf : 1.0lf;
  double z = x * x;
  double term = 1.0lf, sum = 1.0lf;
  for (int n = 1; n < 200 && term > 1e-17lf * sum; ++n) {
    term *= 2.0lf * z / double(2 * n + 1);
    sum += term;
  }
  return 1.12837916709551257390lf * x * d_exp(-z) * sum;
}
)"},
    {"d_pow", {"d_exp", "d_log"}, R"(
double d_pow(double x, double y) {
  if (y == 0.0lf || x == 1.0lf) return 1.0lf;
  if (is_nan_d(x) || is_nan_d(y)) return d_nan();
  double a = abs(x);
  double magnitude = abs(y);
  bool whole = floor(y) == y;
  bool odd = whole && magnitude < 2147483648.0lf && (uint(magnitude) & 1u) != 0u;
  if (x < 0.0lf && !whole && a != d_infinity()) return d_nan();
  double r;
  if (whole && magnitude <= 64.0lf) {
    r = 1.0lf;
    double square = a;
    for (uint n = uint(magnitude); n != 0u; n >>= 1) {
      if ((n & 1u) != 0u) r *= square;
      if (n > 1u) square *= square;
    }
    if (y < 0.0lf) r = 1.0lf / r;
  } else if (a == 1.0lf) {
    r = 1.0lf;
  } else {
    r = d_exp(y * d_log(a));
  }
  return odd && (unpackDouble2x32(x).y >> 31) != 0u ? -r : r;  // -0 too
}
)"},
    {"d_atan2", {"is_nan_d", "d_constants"}, R"(
double d_atan2(double y, double x) {
  if (is_nan_d(x) || is_nan_d(y)) return d_nan();
  double ax = abs(x), ay = abs(y);
  double low = min(ax, ay), high = max(ax, ay);
  double q = low == high ? (high == 0.0lf ? 0.0lf : 1.0lf) : low / high;
  // The angle is halved twice before the series.
  q = q / (1.0lf + sqrt(1.0lf + q * q));
  q = q / (1.0lf + sqrt(1.0lf + q * q));
  double z = q * q;
  double t = 0.0lf;
  for (int i = 12; i >= 0; --i) t = 1.0lf / double(2 * i + 1) - z * t;
  double r = 4.0lf * q * t;
  if (ay > ax) r = 1.57079632679489661923lf - r;
  if ((unpackDouble2x32(x).y >> 31) != 0u) r = 3.14159265358979323846lf - r;
  return (unpackDouble2x32(y).y >> 31) != 0u ? -r : r;
}
)"},
    {"d_remainder", {"is_nan_d", "d_constants"}, R"(
double d_remainder(double a, double b) {
  if (abs(b) == d_infinity() && abs(a) != d_infinity() && !is_nan_d(a)) {
    return a == 0.0lf || (a < 0.0lf) == (b < 0.0lf) ? a : b;
  }
  if (b == 0.0lf) return d_nan();
  precise double r = fma(-trunc(a / b), b, a);
  return r != 0.0lf && (r < 0.0lf) != (b < 0.0lf) ? r + b : r;
}
)"},
    {"philox_normal_d", {"philox", "d_log", "d_sincos"}, R"(
double philox_normal_d(uvec2 key, uint i) {
  uvec4 w = philox(i >> 2, key);
  uvec2 pair = (i & 2u) == 0u ? w.xy : w.zw;
  double u1 = double((pair.x >> 8) + 1u) * (1.0lf / 16777216.0lf);
  double u2 = double(pair.y >> 8) * (1.0lf / 16777216.0lf);
  double r = sqrt(-2.0lf * d_log(u1));
  dvec2 sc = d_sincos(6.28318530717958647693lf * u2);
  return r * ((i & 1u) == 0u ? sc.y : sc.x);
}
)"},
};

}  // namespace

std::span<const GlslFunction> glsl_functions_f64() { return kFunctions; }

}  // namespace caldera
