#include "engine/device/vulkan/glsl/library/library_table.h"

namespace caldera {
namespace {

// Plain series after a reduction of the argument: right to a few units in the last place, and not fast.
// float64 on a GPU is for checking, not for training. The split constants of pi / 2 and log 2 are those of
// fdlibm.
constexpr GlslFunction kF64Functions[] = {
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
  precise double r = (x - n * 6.93147180369123816490e-01lf) - n * 1.90821492927058770002e-10lf;
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
  precise double y = (p.y + p.x * 1.90821492927058770002e-10lf) + p.x * 6.93147180369123816490e-01lf;
  return y;
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
    {"d_far_angle", {"d_constants"}, R"(
// x - n pi/2 and n modulo 4 for finite x of 2^20 and above, as f_far_angle: 192 of the bits of 2/pi, from those on
// whose product with x is below 4. 75 of them are left after the worst cancellation that a double can meet.
double d_far_angle(double x, out uint quadrant) {
  const uint two_over_pi[40] = uint[40](
      0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
      0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
      0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu,
      0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du,
      0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu);
  uvec2 bits = unpackDouble2x32(x);
  // x = m 2^s; bit k of 2/pi, counted from 1, has the weight 2^(s-k) beside m, and bit s-1 is the first that counts.
  int s = int(bits.y >> 20) - 1075;
  uint first = uint(s - 2 + 64);
  uint word = first >> 5, shift = first & 31u;
  uint w[6];
  for (uint i = 0u; i < 6u; ++i) {
    uint high = two_over_pi[word + i], low = two_over_pi[word + i + 1u];
    w[i] = shift == 0u ? high : high << shift | low >> (32u - shift);
  }
  // The product with m, of which 192 bits count.
  uint m[2] = uint[2](bits.x, bits.y & 0xfffffu | 0x100000u);
  uint p[6] = uint[6](0u, 0u, 0u, 0u, 0u, 0u);
  for (int j = 0; j < 2; ++j) {
    uint carry = 0u;
    for (int i = 5; i - j >= 0; --i) {
      uint high, low, over;
      umulExtended(m[j], w[i], high, low);
      low = uaddCarry(low, p[i - j], over);
      high += over;
      p[i - j] = uaddCarry(low, carry, over);
      carry = high + over;
    }
  }
  // Two bits of n, then the fraction, of which a half and more belongs to the next n.
  for (int i = 0; i < 5; ++i) w[i] = p[i] << 2 | p[i + 1] >> 30;
  quadrant = (p[0] >> 30) + (w[0] >> 31) & 3u;
  double r = double(int(w[0]));
  for (int i = 1; i < 5; ++i) r = r * 4294967296.0lf + double(w[i]);  // exact where the leading bits cancel
  return r * (1.57079632679489661923lf * d_pow2(-160));
}
)"},
    {"d_sincos", {"is_nan_d", "d_constants", "d_far_angle"}, R"(
dvec2 d_sincos(double x) {
  double a = abs(x);
  if (is_nan_d(x) || a == d_infinity()) return dvec2(d_nan());
  uint q;
  double r;
  if (a < 1048576.0lf) {
    double n = floor(a * 0.63661977236758134308lf + 0.5lf);
    q = uint(n) & 3u;
    precise double near = ((a - n * 1.57079632673412561417e+00lf) - n * 6.07710050630396597660e-11lf) -
                          n * 2.02226624879595063154e-21lf;
    r = near;
  } else {
    r = d_far_angle(a, q);
  }
  double z = r * r;
  double s = 1.0lf, c = 1.0lf;
  for (int i = 9; i > 0; --i) {
    s = 1.0lf - z * s / double((2 * i) * (2 * i + 1));
    c = 1.0lf - z * c / double((2 * i - 1) * (2 * i));
  }
  s *= r;
  dvec2 sc = (q & 1u) != 0u ? dvec2(c, s) : dvec2(s, c);
  if (q >= 2u) sc.x = -sc.x;
  if (q == 1u || q == 2u) sc.y = -sc.y;
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
  if (is_nan_d(x) || x == 0.0lf) return x;
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
  bool odd = whole && floor(0.5lf * magnitude) * 2.0lf != magnitude;
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
    {"d_atan", {"d_atan2"}, "double d_atan(double x) { return d_atan2(x, 1.0lf); }\n"},
    {"d_asin", {"d_atan2", "d_constants"}, R"(
// (1 - x)(1 + x): 1 - x^2 would cancel near 1.
double d_asin(double x) { return abs(x) <= 1.0lf ? d_atan2(x, sqrt((1.0lf - x) * (1.0lf + x))) : d_nan(); }
)"},
    {"d_acos", {"d_atan2", "d_constants"}, R"(
double d_acos(double x) { return abs(x) <= 1.0lf ? d_atan2(sqrt((1.0lf - x) * (1.0lf + x)), x) : d_nan(); }
)"},
    {"d_trunc", {}, R"(
// Quirk: the built-in one of some drivers does nothing from 2^24 on.
double d_trunc(double x) { return x < 0.0lf ? -floor(-x) : floor(x); }
)"},
    {"d_fmod", {"is_nan_d", "d_constants", "d_copysign"}, R"(
// The remainder of a / b with the sign of a, exact: a long division by 20 bits at a time. The quotient's digit is rounded
// to the nearest, so that what is left, plus its product with the lower part of the divisor, fits 53 bits.
double d_fmod(double a, double b) {
  double r = abs(a), d = abs(b);
  if (is_nan_d(a) || is_nan_d(b) || r == d_infinity() || d == 0.0lf) return d_nan();
  if (r < d) return a;
  double part = d;
  while (part * 1048576.0lf <= r) part *= 1048576.0lf;
  for (; part >= d; part *= 1.0lf / 1048576.0lf) {
    uvec2 bits = unpackDouble2x32(part);
    double high = packDouble2x32(uvec2(bits.x & 0xf8000000u, bits.y));
    double q = floor(r / part + 0.5lf);
    precise double left = (r - q * high) - q * (part - high);
    r = left < 0.0lf ? left + part : left;
  }
  return d_copysign(r, a);
}
)"},
    {"d_remainder", {"d_fmod", "d_copysign"}, R"(
double d_remainder(double a, double b) {
  double r = d_fmod(a, b);
  if (r == 0.0lf) return d_copysign(r, b);
  return (r < 0.0lf) != (b < 0.0lf) ? r + b : r;
}
)"},
    {"d_floor_div", {"d_fmod", "d_copysign", "d_round"}, R"(
double d_floor_div(double a, double b) {
  if (b == 0.0lf || abs(a) == d_infinity()) return floor(a / b);
  double r = d_fmod(a, b);
  double q = (a - r) / b;
  if (r != 0.0lf && (r < 0.0lf) != (b < 0.0lf)) q -= 1.0lf;
  return q == 0.0lf ? d_copysign(q, a / b) : d_round(q);
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

std::span<const GlslFunction> glsl_functions_f64() { return kF64Functions; }

}  // namespace caldera
