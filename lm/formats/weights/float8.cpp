#include "lm/formats/weights/float8.h"

#include <array>
#include <cmath>
#include <limits>

namespace caldera::detail {
namespace {

/// A float of 8 bits with a sign: so many bits of exponent and the rest of mantissa.
float decode(unsigned byte, int exponent_bits, int bias) {
  const int mantissa_bits = 7 - exponent_bits;
  const int exponent = static_cast<int>(byte >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(byte) & ((1 << mantissa_bits) - 1);
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits)
                                        : std::ldexp(static_cast<float>(mantissa + (1 << mantissa_bits)),
                                                     exponent - bias - mantissa_bits);
  return byte >= 128 ? -magnitude : magnitude;
}

float value_of(unsigned byte, ForeignType type) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  if (type == ForeignType::f8_e8m0)
    return byte == 255 ? kNaN : std::ldexp(1.0F, static_cast<int>(byte) - 127);
  if (type == ForeignType::f8_e4m3) return (byte & 127) == 127 ? kNaN : decode(byte, 4, 7);
  if ((byte & 127) == 124)
    return byte >= 128 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  return (byte & 127) > 124 ? kNaN : decode(byte, 5, 15);
}

}  // namespace

std::vector<float> float8_values(std::span<const std::byte> bytes, ForeignType type) {
  std::array<float, 256> table{};
  for (unsigned i = 0; i < table.size(); ++i) table[i] = value_of(i, type);
  std::vector<float> values(bytes.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = table[std::to_integer<std::size_t>(bytes[i])];
  return values;
}

}  // namespace caldera::detail
