#include "lm/formats/quantize/encoders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <future>

#include "engine/base/error.h"
#include "engine/device/cpu_threads.h"
#include "lm/formats/quantize/scale_search.h"

namespace caldera::detail {
namespace {

constexpr std::size_t kSmall = 32;   // values of a block of Q8_0, Q4_0, MXFP4
constexpr std::size_t kSuper = 256;  // of Q4_K, Q6_K
constexpr std::size_t kSubs = kSuper / kSmall;

std::byte byte(unsigned value) { return static_cast<std::byte>(value & 255); }

/// A scale that no f16 holds: encode_blocks() says of which weight.
struct TooLarge {};

void put_half(std::byte* to, float value) {
  const Half half = to_half(value);
  if (!std::isfinite(to_float(half))) throw TooLarge{};
  std::memcpy(to, &half.bits, sizeof(half.bits));
}

/// 1 / d; 0 where that is no number.
float inverse_of(float d) { return std::isnormal(1.0F / d) ? 1.0F / d : 0.0F; }

void check_finite(std::span<const float> values, const std::string& weight) {
  if (!std::ranges::all_of(values, [](float v) { return std::isfinite(v); }))
    throw ValueError(
        fmt::format("weight {} holds a value that is infinite or no number: it cannot be quantised", weight));
}

[[noreturn]] void fail_too_large(const std::string& weight, std::string_view format) {
  throw ValueError(fmt::format(
      "weight {} holds values that are too large for the scales of {}; use f32 or bf16", weight, format));
}

/// d is what makes the largest magnitude 127; codes are rounded, halves away from zero.
void encode_q8_0(std::span<const float, kSmall> x, std::byte* to) {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::abs(v));
  const float d = largest / 127.0F;
  const float inverse = inverse_of(d);
  put_half(to, d);
  for (std::size_t i = 0; i < kSmall; ++i)
    to[2 + i] = byte(static_cast<unsigned>(static_cast<int>(std::round(x[i] * inverse))));
}

/// The value of the largest magnitude becomes code 0, which stands for -8 d.
void encode_q4_0(std::span<const float, kSmall> x, std::byte* to) {
  float extreme = 0;
  for (const float v : x)
    if (std::abs(v) > std::abs(extreme)) extreme = v;
  const float d = extreme / -8.0F;
  const float inverse = inverse_of(d);
  put_half(to, d);
  const auto code = [&](float v) {
    const float scaled = v * inverse;
    return static_cast<unsigned>(std::clamp(static_cast<int>(scaled + 8.5F), 0, 15));
  };
  for (std::size_t j = 0; j < kSmall / 2; ++j) to[2 + j] = byte(code(x[j]) | code(x[j + kSmall / 2]) << 4);
}

/// Scales and minima of 6 bits: the low four bits of those of the second half share bytes, and their high two
/// bits lie above those of the first half.
void put_scales(const std::array<unsigned, kSubs>& scales, const std::array<unsigned, kSubs>& minima,
                std::byte* to) {
  for (std::size_t j = 0; j < kSubs / 2; ++j) {
    to[j] = byte(scales[j] | (scales[j + 4] >> 4) << 6);
    to[j + 4] = byte(minima[j] | (minima[j + 4] >> 4) << 6);
    to[j + 8] = byte((scales[j + 4] & 15) | (minima[j + 4] & 15) << 4);
  }
}

void encode_q4_k(std::span<const float, kSuper> x, std::byte* to) {
  static_assert(kSubs == kScaleGroups && kSmall == kScaleGroup);
  const std::array<ScaleAndMinimum, kSubs> found = search_scales(x, 15);
  float largest_scale = 0;
  float largest_minimum = 0;
  for (const ScaleAndMinimum& f : found) {
    largest_scale = std::max(largest_scale, f.scale);
    largest_minimum = std::max(largest_minimum, f.minimum);
  }
  const float d = to_float(to_half(largest_scale / 63));
  const float m = to_float(to_half(largest_minimum / 63));
  const auto six_bits = [](float value, float largest) {
    return largest > 0 ? static_cast<unsigned>(std::clamp(std::nearbyint(63 * value / largest), 0.0F, 63.0F))
                       : 0U;
  };
  std::array<unsigned, kSubs> scales{};
  std::array<unsigned, kSubs> minima{};
  std::array<unsigned, kSuper> codes{};
  for (std::size_t j = 0; j < kSubs; ++j) {
    scales[j] = six_bits(found[j].scale, largest_scale);
    minima[j] = six_bits(found[j].minimum, largest_minimum);
    const float step = d * static_cast<float>(scales[j]);
    const float offset = m * static_cast<float>(minima[j]);
    if (step == 0) continue;
    for (std::size_t i = j * kSmall; i < (j + 1) * kSmall; ++i)
      codes[i] = static_cast<unsigned>(std::clamp(std::nearbyint((x[i] + offset) / step), 0.0F, 15.0F));
  }
  put_half(to, d);
  put_half(to + 2, m);
  put_scales(scales, minima, to + 4);
  for (std::size_t pair = 0; pair < kSubs / 2; ++pair)
    for (std::size_t i = 0; i < kSmall; ++i)
      to[16 + pair * kSmall + i] =
          byte(codes[2 * pair * kSmall + i] | codes[(2 * pair + 1) * kSmall + i] << 4);
}

constexpr std::size_t kSigned = 16;  // values that share a scale of Q6_K

/// Finds the scale of codes -32..31 for a group: of scales around the one that gives the value of the largest
/// magnitude the code -32 those by least squares, each for the codes that it gives, the one that leaves the
/// smallest error. Squares of values weigh the errors.
float signed_scale(std::span<const float, kSigned> x) {
  float extreme = 0;
  for (const float v : x)
    if (std::abs(v) > std::abs(extreme)) extreme = v;
  if (extreme == 0) return 0;
  std::array<float, kSigned> values{};  // of magnitude at most 1: no square overflows
  for (std::size_t i = 0; i < kSigned; ++i) values[i] = x[i] / extreme;
  float best = 0;
  float most = 0;
  constexpr int kSteps = 9;
  for (int step = -kSteps; step <= kSteps; ++step) {
    const float inverse = -32 - 0.1F * static_cast<float>(step);
    float products = 0;
    float squares = 0;
    for (const float v : values) {
      const float code = std::clamp(std::nearbyint(v * inverse), -32.0F, 31.0F);
      products += v * v * v * code;
      squares += v * v * code * code;
    }
    // What the best scale for the codes takes off the error.
    const float gain = squares > 0 ? products * products / squares : 0;
    if (gain <= most) continue;
    most = gain;
    best = products / squares;
  }
  return best * extreme;
}

void encode_q6_k(std::span<const float, kSuper> x, std::byte* to) {
  constexpr std::size_t kGroups = kSuper / kSigned;
  std::array<float, kGroups> found{};
  float extreme = 0;
  for (std::size_t g = 0; g < kGroups; ++g) {
    found[g] = signed_scale(x.subspan(g * kSigned).first<kSigned>());
    if (std::abs(found[g]) > std::abs(extreme)) extreme = found[g];
  }
  const float d = to_float(to_half(extreme / -128));
  const float inverse = inverse_of(d);
  std::array<unsigned, kSuper> codes{};
  for (std::size_t g = 0; g < kGroups; ++g) {
    const float scale = std::clamp(std::nearbyint(found[g] * inverse), -128.0F, 127.0F);
    to[192 + g] = byte(static_cast<unsigned>(static_cast<int>(scale)));
    const float step = d * scale;
    for (std::size_t i = g * kSigned; i < (g + 1) * kSigned; ++i) {
      const float code = step != 0 ? std::clamp(std::nearbyint(x[i] / step), -32.0F, 31.0F) : 0.0F;
      codes[i] = static_cast<unsigned>(static_cast<int>(code) + 32);
    }
  }
  // Of each half: four lots of 32, whose low nibbles share 64 bytes and whose high pairs of bits share 32.
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t i = 0; i < kSmall; ++i) {
      const unsigned* const q = codes.data() + half * kSuper / 2 + i;
      std::byte* const low = to + 64 * half + i;
      low[0] = byte((q[0] & 15) | (q[64] & 15) << 4);
      low[32] = byte((q[32] & 15) | (q[96] & 15) << 4);
      to[128 + 32 * half + i] = byte(q[0] >> 4 | (q[32] >> 4) << 2 | (q[64] >> 4) << 4 | (q[96] >> 4) << 6);
    }
  }
  put_half(to + 208, d);
}

/// OCP Microscaling Formats, 6.3: the exponent is that of the largest magnitude less that of the largest
/// code, 2; values are rounded to the nearest code, of two as near to the smaller one.
void encode_mxfp4(std::span<const float, kSmall> x, std::byte* to) {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::abs(v));
  constexpr int kBias = 127;
  const int exponent = largest > 0 ? std::max(std::ilogb(largest) - 2 + kBias, 0) : 0;
  to[0] = byte(static_cast<unsigned>(exponent));
  const auto code = [&](float v) {
    // Halfway between the codes 0, 0.5, 1, 1.5, 2, 3, 4 and 6.
    constexpr std::array kBounds{0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F};
    const float magnitude = std::ldexp(std::abs(v), kBias - exponent);
    const auto index =
        static_cast<unsigned>(std::ranges::count_if(kBounds, [&](float b) { return magnitude > b; }));
    return index != 0 && v < 0 ? index | 8 : index;
  };
  for (std::size_t j = 0; j < kSmall / 2; ++j) to[1 + j] = byte(code(x[j]) | code(x[j + kSmall / 2]) << 4);
}

/// Calls body(begin, end) for parts of [0, count), on as many threads as kernels may use where each has at
/// least `worth` to do. Throws what the first part threw.
template <class Body>
void in_parts(std::size_t count, std::size_t worth, const Body& body) {
  const std::size_t parts =
      std::clamp<std::size_t>(count / worth, 1, static_cast<std::size_t>(std::max(1, cpu_threads())));
  std::vector<std::future<void>> others;
  for (std::size_t part = 1; part < parts; ++part)
    others.push_back(std::async(body, count * part / parts, count * (part + 1) / parts));
  body(std::size_t{0}, count / parts);
  for (std::future<void>& other : others) other.get();
}

template <std::size_t N, class Encode>
void encode_all(std::span<const float> values, std::byte* to, std::size_t bytes, const Encode& encode) {
  constexpr std::size_t kWorth = 1 << 16;  // values: a thread costs tens of microseconds
  in_parts(values.size() / N, kWorth / N, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      encode(values.subspan(i * N).template first<N>(), to + i * bytes);
  });
}

}  // namespace

std::vector<std::byte> encode_blocks(QuantizedFormat format, std::span<const float> values,
                                     std::int64_t columns, const std::string& weight) try {
  const QuantizedFacts& f = facts(format);
  if (f.block == 0 || columns < 1 || columns % f.block != 0 ||
      values.size() % static_cast<std::size_t>(columns) != 0)
    throw ValueError(fmt::format("rows of {} are no whole blocks of {}", columns, f.name));
  check_finite(values, weight);
  const auto block = static_cast<std::size_t>(f.block);
  const auto bytes = static_cast<std::size_t>(f.block_bytes);
  std::vector<std::byte> out(values.size() / block * bytes);
  if (format == QuantizedFormat::q8_0)
    encode_all<kSmall>(values, out.data(), bytes, encode_q8_0);
  else if (format == QuantizedFormat::q4_0)
    encode_all<kSmall>(values, out.data(), bytes, encode_q4_0);
  else if (format == QuantizedFormat::q4_k)
    encode_all<kSuper>(values, out.data(), bytes, encode_q4_k);
  else if (format == QuantizedFormat::q6_k)
    encode_all<kSuper>(values, out.data(), bytes, encode_q6_k);
  else if (format == QuantizedFormat::mxfp4)
    encode_all<kSmall>(values, out.data(), bytes, encode_mxfp4);
  else
    throw ValueError(fmt::format("no encoder for {} (there are: q8_0, q4_0, q4_k, q6_k, mxfp4)", f.name));
  return out;
} catch (const TooLarge&) {
  fail_too_large(weight, name(format));
}

// mlx/ops.cpp: the end of the range that is farther from zero is met exactly, by a code that is a whole
// number.
AffineCodes encode_affine(std::span<const float> values, std::int64_t columns, std::int64_t group,
                          std::int64_t bits, const std::string& weight) {
  if (group < 1 || columns < 1 || columns % group != 0 ||
      values.size() % static_cast<std::size_t>(columns) != 0)
    throw ValueError(fmt::format("rows of {} are no whole groups of {}", columns, group));
  check_finite(values, weight);
  const auto size = static_cast<std::size_t>(group);
  const auto per_word = static_cast<std::size_t>(32 / bits);
  const auto bins = static_cast<float>((1 << bits) - 1);
  AffineCodes out;
  out.codes.resize(values.size() / per_word);
  for (std::size_t begin = 0; begin < values.size(); begin += size) {
    const auto x = values.subspan(begin, size);
    const auto [low, high] = std::ranges::minmax(x);
    if (!std::isfinite(high - low)) fail_too_large(weight, "affine codes");
    const bool low_is_far = std::abs(low) > std::abs(high);
    const float magnitude = std::max((high - low) / bins, 1e-7F);
    float scale = low_is_far ? magnitude : -magnitude;
    const float edge = low_is_far ? low : high;
    const float zero = std::nearbyint(edge / scale);
    if (zero != 0) scale = edge / zero;
    const float bias = zero != 0 ? edge : 0;
    out.scales.push_back(scale);
    out.biases.push_back(bias);
    for (std::size_t i = 0; i < size; ++i) {
      const auto code =
          static_cast<std::uint32_t>(std::clamp(std::nearbyint((x[i] - bias) / scale), 0.0F, bins));
      const std::size_t at = begin + i;
      out.codes[at / per_word] |= code << (at % per_word * static_cast<std::size_t>(bits));
    }
  }
  return out;
}

}  // namespace caldera::detail
