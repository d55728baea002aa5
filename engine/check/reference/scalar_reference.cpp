#include "engine/check/reference/scalar_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <type_traits>

#include "engine/tensor/dispatch.h"

namespace caldera::reference {
namespace {

template <class T>
T read_as(const std::vector<std::byte>& buffer, std::int64_t element) {
  if (element < 0 || (static_cast<std::size_t>(element) + 1) * sizeof(T) > buffer.size())
    throw std::out_of_range("reference: read outside a buffer");
  T value;
  std::memcpy(&value, buffer.data() + static_cast<std::size_t>(element) * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void write_as(std::vector<std::byte>& buffer, std::int64_t element, T value) {
  if (element < 0 || (static_cast<std::size_t>(element) + 1) * sizeof(T) > buffer.size())
    throw std::out_of_range("reference: write outside a buffer");
  std::memcpy(buffer.data() + static_cast<std::size_t>(element) * sizeof(T), &value, sizeof(T));
}

std::int64_t wrap(DType type, std::int64_t i) {
  return dispatch(type, [&]<class T>() -> std::int64_t {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(i);
    else
      return i;  // floating numbers are elsewhere
  });
}

double half_to_even(double x) {
  const double lower = std::floor(x);
  const double rest = x - lower;
  if (rest < 0.5) return lower;
  if (rest > 0.5) return lower + 1;
  return std::fmod(lower, 2) == 0 ? lower : lower + 1;
}

double floor_remainder(double x, double y) {
  double rest = std::fmod(x, y);
  if (rest != 0 && (rest < 0) != (y < 0)) rest += y;
  return rest == 0 ? std::copysign(0.0, y) : rest;
}

double floating_unary(ScalarOp op, double x) {
  switch (op) {
    case ScalarOp::neg:
      return -x;
    case ScalarOp::abs:
      return std::fabs(x);
    case ScalarOp::sign:
      return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;
    case ScalarOp::floor:
      return std::floor(x);
    case ScalarOp::ceil:
      return std::ceil(x);
    case ScalarOp::round:
      return std::isfinite(x) ? half_to_even(x) : x;
    case ScalarOp::trunc:
      return std::trunc(x);
    case ScalarOp::exp:
      return std::exp(x);
    case ScalarOp::expm1:
      return std::expm1(x);
    case ScalarOp::log:
      return std::log(x);
    case ScalarOp::log1p:
      return std::log1p(x);
    case ScalarOp::sqrt:
      return std::sqrt(x);
    case ScalarOp::rsqrt:
      return 1 / std::sqrt(x);
    case ScalarOp::sin:
      return std::sin(x);
    case ScalarOp::cos:
      return std::cos(x);
    case ScalarOp::tan:
      return std::tan(x);
    case ScalarOp::asin:
      return std::asin(x);
    case ScalarOp::acos:
      return std::acos(x);
    case ScalarOp::atan:
      return std::atan(x);
    case ScalarOp::tanh:
      return std::tanh(x);
    case ScalarOp::sigmoid:
      return 1 / (1 + std::exp(-x));
    case ScalarOp::erf:
      return std::erf(x);
    case ScalarOp::exp2:
      return std::exp2(x);
    case ScalarOp::log2:
      return std::log2(x);
    case ScalarOp::log10:
      return std::log10(x);
    case ScalarOp::reciprocal:
      return 1 / x;
    default:
      throw std::logic_error("reference: not a floating unary function");
  }
}

/// What incomplete gamma functions are made of, in long double and with more terms than count.
double gamma_term(ScalarOp op, double of_a, double of_x) {
  const long double a = of_a, x = of_x, edge = a > 1 ? a : 1;
  if (!(a > 0) || !(x > 0)) return std::nan("");
  if (op == ScalarOp::gamma_weight)
    return static_cast<double>(std::exp(a * (std::log(x) - std::log(a)) + (a - x)));
  constexpr int kTerms = 500;
  if (op == ScalarOp::gamma_series) {
    long double sum = 1, term = 1;
    for (int i = 1; i <= kTerms; ++i) sum += term *= x / (a + i);
    return x <= edge ? static_cast<double>(sum) : std::nan("");
  }
  long double value = x + 1 - a + 2 * kTerms;
  for (int i = kTerms; i > 0; --i) value = x + 1 - a + 2 * (i - 1) + i * (a - i) / value;
  return x >= edge ? static_cast<double>(1 / value) : std::nan("");
}

double floating_binary(ScalarOp op, DType type, double x, double y) {
  switch (op) {
    case ScalarOp::add:
      return x + y;
    case ScalarOp::sub:
      return x - y;
    case ScalarOp::mul:
      return x * y;
    case ScalarOp::div:
      return x / y;
    case ScalarOp::floor_div: {
      if (y == 0 || std::isinf(x)) return std::floor(type == DType::f32 ? static_cast<float>(x / y) : x / y);
      const double q = (x - std::fmod(x, y)) / y;
      const double rest = std::fmod(x, y);
      return half_to_even(rest != 0 && (rest < 0) != (y < 0) ? q - 1 : q);
    }
    case ScalarOp::remainder:
      return floor_remainder(x, y);
    case ScalarOp::pow:
      return std::pow(x, y);
    case ScalarOp::maximum:
      return std::isnan(x) || std::isnan(y) ? x + y : x > y ? x : y;
    case ScalarOp::minimum:
      return std::isnan(x) || std::isnan(y) ? x + y : x < y ? x : y;
    case ScalarOp::atan2:
      return std::atan2(x, y);
    case ScalarOp::copysign:
      return std::copysign(x, y);
    case ScalarOp::gamma_weight:
    case ScalarOp::gamma_series:
    case ScalarOp::gamma_fraction:
      return gamma_term(op, x, y);
    default:
      throw std::logic_error("reference: not a floating binary function");
  }
}

std::int64_t wrapped_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  std::uint64_t result = 1;
  for (std::int64_t e = 0; e < exponent; ++e) result *= static_cast<std::uint64_t>(base);
  return static_cast<std::int64_t>(result);
}

std::int64_t integer_op(ScalarOp op, std::int64_t x, std::int64_t y) {
  const auto u = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  const auto s = [](std::uint64_t v) { return static_cast<std::int64_t>(v); };
  switch (op) {
    case ScalarOp::neg:
      return s(-u(x));
    case ScalarOp::abs:
      return x < 0 ? s(-u(x)) : x;
    case ScalarOp::sign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::round:
    case ScalarOp::trunc:
      return x;
    case ScalarOp::add:
      return s(u(x) + u(y));
    case ScalarOp::sub:
      return s(u(x) - u(y));
    case ScalarOp::mul:
      return s(u(x) * u(y));
    case ScalarOp::floor_div: {
      if (y == 0) return 0;
      if (y == -1) return s(-u(x));
      return x / y - (x % y != 0 && (x < 0) != (y < 0));
    }
    case ScalarOp::remainder: {
      if (y == 0 || y == -1) return 0;
      const std::int64_t rest = x % y;
      return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
    }
    case ScalarOp::pow:
      return wrapped_power(x, y);
    case ScalarOp::maximum:
      return x > y ? x : y;
    case ScalarOp::minimum:
      return x < y ? x : y;
    case ScalarOp::bit_not:
      return ~x;
    case ScalarOp::bit_and:
      return x & y;
    case ScalarOp::bit_or:
      return x | y;
    case ScalarOp::bit_xor:
      return x ^ y;
    // What the width of a narrower type would move out is cut off afterwards.
    case ScalarOp::shift_left:
      return y < 0 || y > 63 ? 0 : s(u(x) << y);
    case ScalarOp::shift_right:
      return x >> (y < 0 || y > 63 ? 63 : y);
    default:
      throw std::logic_error("reference: not an integer function");
  }
}

template <class T>
bool compare(ScalarOp op, T x, T y) {
  switch (op) {
    case ScalarOp::equal:
      return x == y;
    case ScalarOp::not_equal:
      return x != y;
    case ScalarOp::less:
      return x < y;
    case ScalarOp::less_equal:
      return x <= y;
    case ScalarOp::greater:
      return x > y;
    default:
      return x >= y;
  }
}

/// Floating types of 16 bits: bits of the fraction, and the least exponent of a normal number.
struct HalfFormat {
  int fraction, least;
  int largest() const { return 1 - least; }  // exponent
};
HalfFormat half_format(DType type) { return type == DType::f16 ? HalfFormat{10, -14} : HalfFormat{7, -126}; }

double half_value(DType type, std::uint16_t bits) {
  const HalfFormat format = half_format(type);
  const int fraction = bits & ((1 << format.fraction) - 1);
  const int exponent = (bits & 0x7fff) >> format.fraction;
  double x = std::ldexp(fraction, format.least - format.fraction);
  if (exponent > format.largest() * 2)
    x = fraction == 0 ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  else if (exponent > 0)
    x = std::ldexp((1 << format.fraction) + fraction, exponent - 1 + format.least - format.fraction);
  return (bits & 0x8000) != 0 ? -x : x;
}

/// The nearest number of the type; of two the one whose last bit is 0.
double nearest_half(DType type, double x) {
  if (!std::isfinite(x) || x == 0) return x;
  const HalfFormat format = half_format(type);
  int exponent = 0;
  std::frexp(x, &exponent);  // in [0.5, 1)
  const int step = std::max(exponent - 1, format.least) - format.fraction;
  const double whole = half_to_even(std::ldexp(std::fabs(x), -step));
  const double magnitude = std::ldexp(whole, step);
  return std::copysign(magnitude >= std::ldexp(1, format.largest() + 1) ? HUGE_VAL : magnitude, x);
}

std::uint16_t half_bits(DType type, double x) {
  const HalfFormat format = half_format(type);
  const int sign = std::signbit(x) ? 0x8000 : 0;
  const int all = (format.largest() * 2 + 1) << format.fraction;
  if (std::isnan(x)) return static_cast<std::uint16_t>(sign | all | 1 << (format.fraction - 1));
  const double magnitude = std::fabs(nearest_half(type, x));
  if (std::isinf(magnitude)) return static_cast<std::uint16_t>(sign | all);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = magnitude == 0 ? format.least : std::max(exponent - 1, format.least);
  // Subnormals have the field 0 and the steps of the field 1.
  const int whole = static_cast<int>(std::ldexp(magnitude, format.fraction - exponent));
  return static_cast<std::uint16_t>(sign | (whole + ((exponent - format.least) << format.fraction)));
}

/// Philox as Random123 writes it: one round, then the key is bumped.
void philox_round(std::uint32_t counter[4], std::uint32_t key[2]) {
  const std::uint64_t a = 0xD2511F53ULL * counter[0];
  const std::uint64_t b = 0xCD9E8D57ULL * counter[2];
  const std::uint32_t next[4] = {
      static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
      static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
  std::memcpy(counter, next, sizeof next);
  key[0] += 0x9E3779B9;
  key[1] += 0xBB67AE85;
}

}  // namespace

Number rounded(DType type, Number x) {
  if (type == DType::f32) return floating(static_cast<float>(x.f));
  if (type == DType::f64) return x;
  if (is_half(type)) return floating(nearest_half(type, x.f));
  return integer(wrap(type, x.i));
}

std::int64_t saturated(DType type, double x) {
  if (std::isnan(x)) return 0;
  const std::int64_t lowest = facts(type).lowest;
  const std::int64_t highest = facts(type).highest;
  // Of i64 the latter is 2^63, which is out of range.
  const auto low = static_cast<double>(lowest);
  const auto high = static_cast<double>(highest);
  if (x <= low) return lowest;
  if (x >= high) return highest;
  return static_cast<std::int64_t>(x);
}

Number convert(DType from, DType to, Number x) {
  if (to == DType::boolean) return integer(is_floating(from) ? x.f != 0 : x.i != 0);
  if (is_floating(to)) {
    if (is_floating(from)) return rounded(to, x);
    // Straight from the integer: through f64 the value would be rounded twice.
    if (to == DType::f64) return floating(static_cast<double>(x.i));
    return rounded(to, floating(static_cast<double>(static_cast<float>(x.i))));
  }
  return integer(is_floating(from) ? saturated(to, x.f) : wrap(to, x.i));
}

double difference(DType type, Number got, Number want) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (!is_floating(type)) {
    // Of large i64 that are close the difference in f64 may be 0.
    const double apart = std::fabs(static_cast<double>(got.i) - static_cast<double>(want.i));
    return got.i == want.i ? 0 : std::max(apart, 1.0);
  }
  if (std::isnan(want.f)) return std::isnan(got.f) ? 0 : kInfinite;
  if (got.f == want.f) return 0;
  return std::isfinite(got.f) && std::isfinite(want.f) ? std::fabs(got.f - want.f) : kInfinite;
}

std::string to_text(DType type, Number number) {
  return is_floating(type) ? fmt::format("{:.9g}", number.f) : std::to_string(number.i);
}

Number read_number(const std::vector<std::byte>& buffer, DType type, std::int64_t element) {
  return dispatch(type, [&]<class T>() {
    if constexpr (kIsHalf<T>)
      return floating(half_value(type, read_as<T>(buffer, element).bits));
    else if constexpr (std::is_floating_point_v<T>)
      return floating(read_as<T>(buffer, element));
    else
      return integer(wrap(type, read_as<Stored<T>>(buffer, element)));
  });
}

void write_number(std::vector<std::byte>& buffer, DType type, std::int64_t element, Number value) {
  dispatch(type, [&]<class T>() {
    if constexpr (kIsHalf<T>)
      write_as(buffer, element, half_bits(type, value.f));
    else if constexpr (std::is_floating_point_v<T>)
      write_as(buffer, element, static_cast<T>(value.f));
    else
      write_as(buffer, element, static_cast<T>(value.i));
  });
}

Number apply_scalar_op(ScalarOp op, DType operand, DType result, Number a, Number b, Number c) {
  const bool real = is_floating(operand);
  const auto truth = [&](Number x) { return real ? x.f != 0 : x.i != 0; };
  switch (op) {
    case ScalarOp::cast:
      return convert(operand, result, a);
    case ScalarOp::round_f16:
      return rounded(DType::f16, a);
    case ScalarOp::round_bf16:
      return rounded(DType::bf16, a);
    case ScalarOp::narrow_i8:
      return convert(operand, DType::i8, a);
    case ScalarOp::narrow_i16:
      return convert(operand, DType::i16, a);
    case ScalarOp::narrow_u32:
      return convert(operand, DType::u32, a);
    case ScalarOp::select:
      return a.i != 0 ? b : c;
    case ScalarOp::isnan:
      return integer(real && std::isnan(a.f));
    case ScalarOp::logical_not:
      return integer(!truth(a));
    case ScalarOp::logical_and:
      return integer(truth(a) && truth(b));
    case ScalarOp::logical_or:
      return integer(truth(a) || truth(b));
    case ScalarOp::logical_xor:
      return integer(truth(a) != truth(b));
    case ScalarOp::equal:
    case ScalarOp::not_equal:
    case ScalarOp::less:
    case ScalarOp::less_equal:
    case ScalarOp::greater:
    case ScalarOp::greater_equal:
      return integer(real ? compare(op, a.f, b.f) : compare(op, a.i, b.i));
    default:
      break;
  }
  if (!real) return integer(wrap(result, integer_op(op, a.i, b.i)));
  if (info(op).arity == 1) return rounded(result, floating(floating_unary(op, a.f)));
  return rounded(result, floating(floating_binary(op, operand, a.f, b.f)));
}

std::uint32_t reference_philox_word(std::uint64_t seed, std::uint32_t i) {
  std::uint32_t counter[4] = {i / 4, 0, 0, 0};
  std::uint32_t key[2] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) philox_round(counter, key);
  return counter[i % 4];
}

Number random_number(ScalarOp op, DType type, std::uint64_t seed, std::uint32_t i) {
  if (op == ScalarOp::philox_uniform) {
    const std::uint32_t word = reference_philox_word(seed, i);
    return type == DType::f32 ? floating((word >> 8) * 0x1p-24) : floating(word * 0x1p-32);
  }
  const std::uint32_t first = i - i % 2;
  const double u1 = ((reference_philox_word(seed, first) >> 8) + 1) * 0x1p-24;
  const double u2 = (reference_philox_word(seed, first + 1) >> 8) * 0x1p-24;
  const double radius = std::sqrt(-2 * std::log(u1));
  const double angle = 2 * std::numbers::pi * u2;
  return rounded(type, floating(i % 2 == 0 ? radius * std::cos(angle) : radius * std::sin(angle)));
}

}  // namespace caldera::reference
