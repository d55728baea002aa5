#include "engine/device/vulkan/glsl/library/library.h"

#include <stdexcept>

#include "engine/device/vulkan/glsl/library/library_table.h"

namespace caldera {
namespace {

// NaN is told by its bits: drivers and optimisers may assume that there is none.
constexpr GlslFunction kFunctions[] = {
    {"is_nan", {}, R"(
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }
)"},
    {"constants", {}, R"(
float quiet_nan() { return uintBitsToFloat(0x7fc00000u); }
float infinity() { return uintBitsToFloat(0x7f800000u); }
)"},
    {"max_nan", {"is_nan"}, R"(
float max_nan(float a, float b) { return is_nan(a) ? a : (is_nan(b) ? b : max(a, b)); }
)"},
    {"min_nan", {"is_nan"}, R"(
float min_nan(float a, float b) { return is_nan(a) ? a : (is_nan(b) ? b : min(a, b)); }
)"},
    // n / d for n < 2^31: d is at most 2^shift, and `by` is magic_divisor(d) (space.h).
    {"quotient", {}, R"(
uint quotient(uint n, uint by, uint shift) {
  uint high, low;
  umulExtended(n, by, high, low);
  return (high + n) >> shift;
}
)"},
    // 16-bit types by their bits. The built-in conversions may round towards zero and flush subnormals.
    // Subnormals of f16 are rounded by f32 sums, which have to round to the nearest even number (Vulkan
    // leaves that open; the doctor's casts find out).
    {"from_float16", {}, R"(
float from_float16(uint h) {
  uint magnitude = h & 0x7fffu;
  uint normal = (magnitude << 13) + (magnitude >= 0x7c00u ? 0x70000000u : 0x38000000u);
  // Subnormals: as fractions of a number between 2^-14 and 2^-13.
  precise float fraction = uintBitsToFloat((magnitude << 13) + 0x38800000u) - 6.103515625e-5;
  uint small = floatBitsToUint(fraction);
  return uintBitsToFloat((h & 0x8000u) << 16 | (magnitude < 0x400u ? small : normal));
}
)"},
    {"to_float16", {}, R"(
uint to_float16(float x) {
  uint bits = floatBitsToUint(x);
  uint magnitude = bits & 0x7fffffffu;
  precise float sum = uintBitsToFloat(magnitude) + 0.5;  // of what is below 2^-14: rounded to steps of 2^-24
  uint small = floatBitsToUint(sum) - 0x3f000000u;
  uint limited = min(magnitude, 0x47800000u);  // 2^16 becomes infinity
  uint normal = (limited + 0xfffu + (limited >> 13 & 1u) - 0x38000000u) >> 13;
  uint result = magnitude < 0x38800000u ? small : normal;
  return (bits >> 16 & 0x8000u) | (magnitude > 0x7f800000u ? 0x7e00u : result);
}
)"},
    // As from_float16(to_float16(x)), but for the payload of NaN.
    {"round_float16", {}, R"(
float round_float16(float x) {
  uint bits = floatBitsToUint(x);
  uint magnitude = bits & 0x7fffffffu;
  precise float small = (uintBitsToFloat(magnitude) + 0.5) - 0.5;  // below 2^-14: in steps of 2^-24
  uint normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u)) & 0xffffe000u;
  uint result = magnitude < 0x38800000u ? floatBitsToUint(small) : normal;
  return uintBitsToFloat((bits & 0x80000000u) | (magnitude < 0x477ff000u ? result : max(magnitude, 0x7f800000u)));
}
)"},
    {"from_bfloat16", {}, R"(
float from_bfloat16(uint h) { return uintBitsToFloat(h << 16); }
)"},
    {"to_bfloat16", {}, R"(
uint to_bfloat16(float x) {
  uint bits = floatBitsToUint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
)"},
    {"f_sin", {"f_sincos"}, "float f_sin(float x) { return x == 0.0 ? x : f_sincos(x).x; }\n"},
    {"f_cos", {"f_sincos"}, "float f_cos(float x) { return f_sincos(x).y; }\n"},
    // Division by zero gives 0, and the lowest integer divided by -1 wraps: some processors trap on both.
    {"i_floor_div", {}, R"(
int i_floor_div(int a, int b) {
  if (b == 0) return 0;
  if (b == -1) return -a;
  int d = b == 0 || b == -1 ? 1 : b;
  int q = a / d;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
)"},
    {"i_remainder", {}, R"(
int i_remainder(int a, int b) {
  int d = b == 0 || b == -1 ? 1 : b;
  int r = a - (a / d) * d;
  if (b == 0 || b == -1) return 0;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)"},
    {"i_pow", {}, R"(
int i_pow(int x, int y) {
  if (y < 0) return x == 1 ? 1 : (x == -1 ? ((y & 1) != 0 ? -1 : 1) : 0);
  int r = 1;
  for (uint n = uint(y); n != 0u; n >>= 1) {
    if ((n & 1u) != 0u) r *= x;
    x *= x;
  }
  return r;
}
)"},
    {"l_floor_div", {}, R"(
int64_t l_floor_div(int64_t a, int64_t b) {
  if (b == 0l) return 0l;
  if (b == -1l) return -a;
  int64_t d = b == 0l || b == -1l ? 1l : b;
  int64_t q = a / d;
  // By what is left, as in l_remainder. Quirk: lavapipe gets q * d != a && (a < 0) != (b < 0) wrong where `a` was
  // widened from 32 bits.
  int64_t r = a - q * d;
  return r != 0l && (r < 0l) != (b < 0l) ? q - 1l : q;
}
)"},
    {"l_remainder", {}, R"(
int64_t l_remainder(int64_t a, int64_t b) {
  int64_t d = b == 0l || b == -1l ? 1l : b;
  int64_t r = a - (a / d) * d;
  if (b == 0l || b == -1l) return 0l;
  return r != 0l && (r < 0l) != (b < 0l) ? r + b : r;
}
)"},
    {"l_pow", {}, R"(
int64_t l_pow(int64_t x, int64_t y) {
  if (y < 0l) return x == 1l ? 1l : (x == -1l ? ((y & 1l) != 0l ? -1l : 1l) : 0l);
  int64_t r = 1l;
  for (int64_t n = y; n != 0l; n >>= 1) {
    if ((n & 1l) != 0l) r *= x;
    x *= x;
  }
  return r;
}
)"},
    {"f_to_i32", {"is_nan"}, R"(
int f_to_i32(float x) {
  if (is_nan(x)) return 0;
  if (x >= 2147483648.0) return 2147483647;
  if (x <= -2147483648.0) return -2147483647 - 1;
  return int(x);
}
)"},
    {"f_to_u8", {"is_nan"}, R"(
uint f_to_u8(float x) { return is_nan(x) ? 0u : uint(clamp(x, 0.0, 255.0)); }
)"},
    {"f_to_i64", {"is_nan"}, R"(
int64_t f_to_i64(float x) {
  if (is_nan(x)) return 0l;
  if (x >= 9223372036854775808.0) return 9223372036854775807l;
  if (x <= -9223372036854775808.0) return -9223372036854775807l - 1l;
  return int64_t(x);
}
)"},
    {"philox", {}, R"(
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"; constants of Random123).
uvec4 philox(uint block, uvec2 key) {
  uvec4 c = uvec4(block, 0u, 0u, 0u);
  for (int round = 0; round < 10; ++round) {
    uint high0, low0, high1, low1;
    umulExtended(0xD2511F53u, c.x, high0, low0);
    umulExtended(0xCD9E8D57u, c.z, high1, low1);
    c = uvec4(high1 ^ c.y ^ key.x, low1, high0 ^ c.w ^ key.y, low0);
    key += uvec2(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
)"},
    {"philox_uniform", {"philox"}, R"(
float philox_uniform(uvec2 key, uint i) { return float(philox(i >> 2, key)[i & 3u] >> 8) * (1.0 / 16777216.0); }
)"},
    {"philox_normal", {"philox", "f_log", "f_sincos"}, R"(
// Box-Muller: the even and the odd element of a pair are the cosine and the sine of one angle.
float philox_normal(uvec2 key, uint i) {
  uvec4 w = philox(i >> 2, key);
  uvec2 pair = (i & 2u) == 0u ? w.xy : w.zw;
  float u1 = float((pair.x >> 8) + 1u) * (1.0 / 16777216.0);
  float u2 = float(pair.y >> 8) * (1.0 / 16777216.0);
  float r = sqrt(-2.0 * f_log(u1));
  vec2 sc = f_sincos(6.28318530717958648 * u2);
  return r * ((i & 1u) == 0u ? sc.y : sc.x);
}
)"},
};

}  // namespace

void append_glsl_function(std::string_view function, std::set<std::string, std::less<>>& done,
                          std::string& out) {
  if (done.contains(function)) return;
  for (std::span<const GlslFunction> table :
       {std::span<const GlslFunction>(kFunctions), glsl_functions_f32(), glsl_angles_f32(),
        glsl_functions_f64(), glsl_gamma_functions()}) {
    for (const GlslFunction& f : table) {
      if (f.name != function) continue;
      for (std::string_view need : f.needs) {
        if (!need.empty()) append_glsl_function(need, done, out);
      }
      done.emplace(function);
      out += f.text;
      return;
    }
  }
  throw std::logic_error("no GLSL function " + std::string(function));
}

}  // namespace caldera
