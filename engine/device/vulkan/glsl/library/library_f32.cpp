#include "engine/device/vulkan/glsl/library/library_table.h"

namespace caldera {
namespace {

// The polynomials are those of Cephes (S. Moshier, netlib.org/cephes, single precision). What an argument's
// reduction leaves is `precise`: compilers that may reorder sums (Metal's by default) would merge the two
// parts of a constant, and lose what the second one is for.
constexpr GlslFunction kF32Functions[] = {
    {"f_scaled_exp", {}, R"(
// exp(r) 2^n for |r| <= log(2) / 2.
float f_scaled_exp(float r, float n) {
  float p = 1.9875691500e-4;
  p = p * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  float y = (p * r * r + r) + 1.0;
  int i = int(n);
  // In two factors: 2^n itself may overflow or be subnormal where the result is not. The first leaves y normal, and
  // is added to its exponent.
  int h = i >> 1;
  return uintBitsToFloat(floatBitsToUint(y) + (uint(h) << 23)) * uintBitsToFloat(uint(i - h + 127) << 23);
}
)"},
    // Without branches: points that a lane takes together are computed side by side.
    {"f_exp", {"is_nan", "f_scaled_exp"}, R"(
float f_exp(float x) {
  float c = clamp(x, -104.0, 89.0);  // where it has long become 0 and infinity
  float n = floor(c * 1.44269504 + 0.5);
  precise float r = (c - n * 0.693359375) - n * -2.12194440e-4;
  float y = f_scaled_exp(r, n);
  return is_nan(x) ? x : y;
}
)"},
    {"f_exp2", {"is_nan", "f_scaled_exp"}, R"(
float f_exp2(float x) {
  float c = clamp(x, -151.0, 129.0);
  float n = floor(c + 0.5);
  float y = f_scaled_exp((c - n) * 0.693147181, n);
  return is_nan(x) ? x : y;
}
)"},
    {"f_expm1", {"f_exp"}, R"(
float f_expm1(float x) {
  if (is_nan(x) || x == 0.0) return x;
  if (x > 88.0) return f_exp(x);
  if (x < -18.0) return -1.0;
  float n = floor(x * 1.44269504 + 0.5);
  precise float r = (x - n * 0.693359375) - n * -2.12194440e-4;
  float p = 1.9875691500e-4;
  p = p * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  float y = p * r * r + r;
  float scale = uintBitsToFloat(uint(int(n) + 127) << 23);
  return n == 0.0 ? y : scale * y + (scale - 1.0);
}
)"},
    {"f_log_parts", {}, R"(
// x = 2^e (1 + m) and log(1 + m) = m + y, as (e, m, y), for positive finite x.
vec3 f_log_parts(float x) {
  float e = 0.0;
  if (x < 1.17549435e-38) {
    x *= 8388608.0;
    e = -23.0;
  }
  uint bits = floatBitsToUint(x);
  e += float(int(bits >> 23) - 126);
  float m = uintBitsToFloat((bits & 0x007fffffu) | 0x3f000000u);
  if (m < 0.707106781) {
    e -= 1.0;
    m = m + m;
  }
  m -= 1.0;
  float z = m * m;
  float p = 7.0376836292e-2;
  p = p * m - 1.1514610310e-1;
  p = p * m + 1.1676998740e-1;
  p = p * m - 1.2420140846e-1;
  p = p * m + 1.4249322787e-1;
  p = p * m - 1.6668057665e-1;
  p = p * m + 2.0000714765e-1;
  p = p * m - 2.4999993993e-1;
  p = p * m + 3.3333331174e-1;
  return vec3(e, m, p * m * z - 0.5 * z);
}
)"},
    {"f_log_limit", {"is_nan", "constants"}, R"(
// What a logarithm is where its argument is not positive and finite.
float f_log_limit(float x) {
  if (is_nan(x)) return x;
  return x == 0.0 ? -infinity() : (x < 0.0 ? quiet_nan() : x);
}
)"},
    {"f_log", {"f_log_parts", "f_log_limit"}, R"(
float f_log(float x) {
  if (!(x > 0.0) || x == infinity()) return f_log_limit(x);
  vec3 p = f_log_parts(x);
  precise float y = (p.y + (p.z + p.x * -2.12194440e-4)) + p.x * 0.693359375;
  return y;
}
)"},
    {"f_log2", {"f_log_parts", "f_log_limit"}, R"(
// (m + y) log2(e), the 1 of whose 1.44 is added apart.
float f_log2(float x) {
  if (!(x > 0.0) || x == infinity()) return f_log_limit(x);
  vec3 p = f_log_parts(x);
  return ((p.y * 0.442695041 + (p.z * 0.442695041 + p.z)) + p.y) + p.x;
}
)"},
    {"f_log10", {"f_log_parts", "f_log_limit"}, R"(
// log10(e) and log10(2) are each a short number, whose products are exact, and a rest.
float f_log10(float x) {
  if (!(x > 0.0) || x == infinity()) return f_log_limit(x);
  vec3 p = f_log_parts(x);
  float low = (p.y + p.z) * 7.00731903251827651129e-4 + p.x * 2.48745663981195213739e-4;
  return ((p.z * 0.43359375 + low) + p.y * 0.43359375) + p.x * 0.30078125;
}
)"},
    {"f_log1p", {"f_log"}, R"(
float f_log1p(float x) {
  precise float u = 1.0 + x;
  precise float d = u - 1.0;
  if (d == 0.0) return x;
  if (u == infinity() || is_nan(u)) return u;
  return f_log(u) * (x / d);
}
)"},
    {"f_far_angle", {}, R"(
// x - n pi/2 and n modulo 4 for finite x of 200 and above. Those of the bits of 2/pi count whose product with x is
// below 4; 96 of them leave 32 after the worst cancellation that a float can meet.
float f_far_angle(float x, out uint quadrant) {
  const uint two_over_pi[9] = uint[9](0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u,
                                      0x3c439041u, 0xfe5163abu, 0xdebbc561u);
  uint bits = floatBitsToUint(x);
  uint mantissa = bits & 0x7fffffu | 0x800000u;
  uint first = (bits >> 23) - 120u;
  uint word = first >> 5, shift = first & 31u;
  uint a = two_over_pi[word], b = two_over_pi[word + 1u], c = two_over_pi[word + 2u], d = two_over_pi[word + 3u];
  if (shift != 0u) {
    a = a << shift | b >> (32u - shift);
    b = b << shift | c >> (32u - shift);
    c = c << shift | d >> (32u - shift);
  }
  uint high, middle, above, low, carry;
  umulExtended(mantissa, c, above, low);
  umulExtended(mantissa, b, high, middle);
  middle = uaddCarry(middle, above, carry);
  high += carry + mantissa * a;
  // Two bits of n, then the fraction, of which a half and more belongs to the next n.
  uint fraction = high << 2 | middle >> 30;
  quadrant = (high >> 30) + (fraction >> 31) & 3u;
  // 24 bits of it with the two parts of pi/2, the others with one.
  float leading = float(int(fraction & 0xffffff00u)) * 2.3283064365386963e-10;
  float rest = float(fraction & 0xffu) * 2.3283064365386963e-10 +
               float(middle << 2 | low >> 30) * 5.421010862427522e-20;
  return leading * 1.57079637 + (leading * -4.37113883e-8 + rest * 1.57079637);
}
)"},
    {"f_sincos", {"is_nan", "constants", "f_far_angle"}, R"(
// (sin x, cos x).
vec2 f_sincos(float x) {
  float a = abs(x);
  if (is_nan(x) || a == infinity()) return vec2(quiet_nan());
  uint q;
  float r;
  if (a < 200.0) {
    // The first two parts of pi/2 have 16 bits, so that their products with n are exact.
    float n = floor(a * 0.636619772 + 0.5);
    q = uint(n) & 3u;
    precise float near = ((a - n * 1.570770263671875) - n * 2.6063062250614166e-05) - n * 6.0771005065e-11;
    r = near;
  } else {
    r = f_far_angle(a, q);
  }
  float z = r * r;
  float s = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * r + r;
  float c = ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
  vec2 sc = (q & 1u) != 0u ? vec2(c, s) : vec2(s, c);
  if ((q & 2u) != 0u) sc.x = -sc.x;
  if (q == 1u || q == 2u) sc.y = -sc.y;
  if (x < 0.0) sc.x = -sc.x;
  return sc;
}
)"},
    {"f_tan", {"f_sincos"}, R"(
float f_tan(float x) {
  vec2 sc = f_sincos(x);
  return x == 0.0 ? x : sc.x / sc.y;
}
)"},
    {"f_tanh", {"f_exp"}, R"(
float f_tanh(float x) {
  float a = abs(x);
  if (is_nan(x) || x == 0.0) return x;
  if (a > 9.1) return x < 0.0 ? -1.0 : 1.0;
  if (a >= 0.625) {
    float y = 1.0 - 2.0 / (f_exp(2.0 * a) + 1.0);
    return x < 0.0 ? -y : y;
  }
  float z = x * x;
  float p = -5.70498872745e-3;
  p = p * z + 2.06390887954e-2;
  p = p * z - 5.37397155531e-2;
  p = p * z + 1.33314422036e-1;
  p = p * z - 3.33332819422e-1;
  return p * z * x + x;
}
)"},
    {"f_sigmoid", {"f_exp"}, R"(
float f_sigmoid(float x) {
  float e = f_exp(-abs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}
)"},
    {"f_erf", {"f_exp"}, R"(
// The polynomials of the CPU device: engine/device/cpu/simd/math_f32-inl.h.
float f_erf(float x) {
  if (is_nan(x)) return x;
  float t = abs(x);
  float s = x * x;
  if (t > 4.0) return x < 0.0 ? -1.0 : 1.0;
  if (t > 0.927734375) {
    float p = -1.72853470e-5 * t + 3.83197126e-4;
    p = p * s + (-3.88396438e-3 * t + 2.42546219e-2);
    p = p * t - 1.06777877e-1;
    p = p * t - 6.34846687e-1;
    p = p * t - 1.28717512e-1;
    float y = 1.0 - f_exp(p * t - t);
    return x < 0.0 ? -y : y;
  }
  float p = -5.96761703e-4;
  p = p * s + 4.99119423e-3;
  p = p * s - 2.67681349e-2;
  p = p * s + 1.12819925e-1;
  p = p * s - 3.76125336e-1;
  p = p * s + 1.28379166e-1;
  return p * x + x;
}
)"},
    {"f_copysign", {}, R"(
float f_copysign(float x, float y) {
  return uintBitsToFloat(floatBitsToUint(x) & 0x7fffffffu | floatBitsToUint(y) & 0x80000000u);
}
)"},
    {"f_pair", {}, R"(
// Pairs (high, low) of numbers whose sum has twice the digits (Dekker 1971). A fused multiply-add would tell the rest
// of a product at once, but not every driver's is one.
vec2 f_pair_sum(float a, float b) {  // |a| >= |b|
  precise float high = a + b;
  precise float low = b - (high - a);
  return vec2(high, low);
}
vec2 f_pair_product(float a, float b) {
  float ah = uintBitsToFloat(floatBitsToUint(a) & 0xfffff000u), bh = uintBitsToFloat(floatBitsToUint(b) & 0xfffff000u);
  precise float al = a - ah;
  precise float bl = b - bh;
  precise float high = a * b;
  precise float low = ((ah * bh - high) + ah * bl + al * bh) + al * bl;
  return vec2(high, low);
}
vec2 f_pair_times(vec2 a, vec2 b) {
  vec2 p = f_pair_product(a.x, b.x);
  precise float low = p.y + (a.x * b.y + a.y * b.x);
  return f_pair_sum(p.x, low);
}
)"},
    {"f_pair_log2", {"f_pair", "is_nan"}, R"(
// log2 of a positive finite number to some 34 bits: with s = (m - 1) / (m + 1) of its significand m the logarithm is
// 2 (s + s^3 / 3 + s^5 / 5 + ...), whose first terms are pairs.
vec2 f_pair_log2(float x) {
  int e = 0;
  if (x < 1.17549435e-38) {
    x *= 16777216.0;
    e = -24;
  }
  uint w = floatBitsToUint(x);
  e += int(w >> 23) - 127;
  float m = uintBitsToFloat((w & 0x7fffffu) | 0x3f800000u);
  if (m > 1.41421354) {
    m *= 0.5;
    e += 1;
  }
  precise float f = m - 1.0;
  vec2 below = f_pair_sum(2.0, f);
  precise float s = f / below.x;
  vec2 back = f_pair_product(s, below.x);
  precise float rest = ((f - back.x) - back.y - s * below.y) / below.x;
  vec2 root = f_pair_sum(s, rest);
  vec2 square = f_pair_times(root, root);
  float z = square.x;
  float tail = z * z * (0.2 + z * (0.142857149 + z * (0.111111112 + z * 0.0909090936)));
  vec2 third = f_pair_times(square, vec2(0.333333343, -9.93410746e-9));
  precise float low = third.y + tail;
  vec2 factor = f_pair_sum(1.0, third.x);
  precise float more = factor.y + low;
  vec2 sum = f_pair_times(root, f_pair_sum(factor.x, more));
  vec2 scaled = f_pair_times(sum, vec2(2.88539004, 3.85192598e-8));  // 2 / log(2)
  vec2 whole = f_pair_sum(float(e), scaled.x);
  if (e == 0) return scaled;
  precise float end = whole.y + scaled.y;
  return f_pair_sum(whole.x, end);
}
)"},
    {"f_pow", {"constants", "f_pair_log2", "f_scaled_exp"}, R"(
float f_pow(float x, float y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (is_nan(x) || is_nan(y)) return quiet_nan();
  float a = abs(x);
  float magnitude = abs(y);
  bool whole = floor(y) == y;
  bool odd = whole && magnitude < 16777216.0 && (int(magnitude) & 1) != 0;
  if (x < 0.0 && !whole && a != infinity()) return quiet_nan();
  float r = 1.0;
  bool done = a == 1.0;
  if (whole && magnitude <= 32.0 && !done) {  // products that are exact, or of few roundings
    float square = a;
    for (uint n = uint(magnitude); n != 0u; n >>= 1) {
      if ((n & 1u) != 0u) r *= square;
      if (n > 1u) square *= square;
    }
    done = magnitude <= 3.0 || (floor(a) == a && r < 16777216.0);
    if (y < 0.0) r = 1.0 / r;
  }
  if (!done) {
    if (a == 0.0 || a == infinity() || magnitude == infinity()) {
      bool grows = magnitude == infinity() ? a > 1.0 : a != 0.0;
      r = grows == (y > 0.0) ? infinity() : 0.0;
    } else {
      vec2 l = f_pair_log2(a);
      vec2 p = f_pair_times(l, vec2(clamp(y, -1.0e10, 1.0e10), 0.0));
      float n = floor(clamp(p.x, -151.0, 129.0) + 0.5);
      precise float left = (p.x - n) + p.y;
      r = p.x > 129.0 ? infinity() : p.x < -151.0 ? 0.0 : f_scaled_exp(left * 0.693147181, n);
    }
  }
  return odd && (floatBitsToUint(x) >> 31) != 0u ? -r : r;  // -0 too
}
)"},
    {"f_atan2", {"is_nan", "constants"}, R"(
float f_atan2(float y, float x) {
  if (is_nan(x) || is_nan(y)) return quiet_nan();
  float ax = abs(x), ay = abs(y);
  float low = min(ax, ay), high = max(ax, ay);
  float q = low == high ? (high == 0.0 ? 0.0 : 1.0) : low / high;
  float base = 0.0;
  if (q > 0.414213562) {
    base = 0.785398163;
    q = (q - 1.0) / (q + 1.0);
  }
  float z = q * q;
  float p = 8.05374449538e-2;
  p = p * z - 1.38776856032e-1;
  p = p * z + 1.99777106478e-1;
  p = p * z - 3.33329491539e-1;
  float r = base + (p * z * q + q);
  if (ay > ax) r = 1.57079633 - r;
  if ((floatBitsToUint(x) >> 31) != 0u) r = 3.14159265 - r;
  return (floatBitsToUint(y) >> 31) != 0u ? -r : r;
}
)"},
    {"f_fmod", {"constants"}, R"(
// The remainder of a / b with the sign of a, exact: the long division of their bits, 8 at a time. In floating point
// the quotient would have to fit 24 bits.
float f_fmod(float a, float b) {
  uint sign = floatBitsToUint(a) & 0x80000000u;
  uint x = floatBitsToUint(a) ^ sign, y = floatBitsToUint(b) & 0x7fffffffu;
  if (x >= 0x7f800000u || y > 0x7f800000u || y == 0u) return quiet_nan();
  if (x < y) return a;
  int ex = max(int(x >> 23), 1), ey = max(int(y >> 23), 1);
  uint m = x >= 0x800000u ? x & 0x7fffffu | 0x800000u : x;
  uint d = y >= 0x800000u ? y & 0x7fffffu | 0x800000u : y;
  m %= d;
  for (int left = ex - ey; left > 0 && m != 0u; left -= 8) m = (m << min(left, 8)) % d;
  int up = min(23 - findMSB(max(m, 1u)), ey - 1);
  m <<= up;
  return uintBitsToFloat(sign | (m < 0x800000u ? m : uint(ey - up) << 23 | m & 0x7fffffu));
}
)"},
    {"f_remainder", {"f_fmod", "f_copysign"}, R"(
float f_remainder(float a, float b) {
  float r = f_fmod(a, b);
  if (r == 0.0) return f_copysign(r, b);
  return (r < 0.0) != (b < 0.0) ? r + b : r;
}
)"},
    {"f_div", {}, R"(
// Of divisors above 2^126 Vulkan says nothing: the reciprocal that a driver multiplies by is 0 there, and an infinite
// dividend would give NaN.
float f_div(float a, float b) {
  float scale = abs(b) > 8.5e37 ? 0.25 : 1.0;
  return (a * scale) / (b * scale);
}
)"},
    {"f_floor_div", {"f_fmod", "f_copysign", "constants"}, R"(
// The quotient may round up to an integer that it does not reach: it is taken from the exact remainder.
float f_floor_div(float a, float b) {
  if (b == 0.0 || abs(a) == infinity()) return floor(a / b);
  float r = f_fmod(a, b);
  float q = (a - r) / b;
  if (r != 0.0 && (r < 0.0) != (b < 0.0)) q -= 1.0;
  return q == 0.0 ? f_copysign(q, a / b) : roundEven(q);
}
)"},
};

}  // namespace

std::span<const GlslFunction> glsl_functions_f32() { return kF32Functions; }

}  // namespace caldera
