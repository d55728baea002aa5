// Quantised matrices, one weight at a time, written from engine/tensor/quantized_format.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "engine/check/reference/reference_steps.h"
#include "engine/tensor/interleaved_rows.h"

namespace caldera::reference {
namespace {

constexpr std::array<int, 16> kIq4Table{-127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113};

/// A block's bytes.
class Block {
 public:
  Block(const std::vector<std::byte>& bytes, std::int64_t first) : bytes_(bytes), first_(first) {}

  int byte(std::int64_t i) const {
    return std::to_integer<int>(bytes_.at(static_cast<std::size_t>(first_ + i)));
  }
  int signed_byte(std::int64_t i) const { return byte(i) < 128 ? byte(i) : byte(i) - 256; }
  float half(std::int64_t i) const {
    return to_float(Half{static_cast<std::uint16_t>(byte(i) + 256 * byte(i + 1))});
  }
  /// `count` bits from bit `at` of the bytes from `i` on.
  int bits(std::int64_t i, std::int64_t at, int count) const {
    return byte(i + at / 8) >> (at % 8) & ((1 << count) - 1);
  }
  /// Of 16 bytes from `i` on, which hold elements j and j + 16.
  int nibble(std::int64_t i, std::int64_t j) const { return byte(i + j % 16) >> (j < 16 ? 0 : 4) & 15; }

 private:
  const std::vector<std::byte>& bytes_;
  std::int64_t first_;
};

struct ScaleAndMin {
  int scale, min;
};
/// Of the eight pairs of 6 bits that 12 bytes hold: four of each in low bits, then what the high bits of
/// those and four bytes more make.
ScaleAndMin pair_of(const Block& b, std::int64_t at, std::int64_t j) {
  if (j < 4) return {b.byte(at + j) % 64, b.byte(at + j + 4) % 64};
  return {b.byte(at + j + 4) % 16 + b.byte(at + j - 4) / 64 * 16,
          b.byte(at + j + 4) / 16 + b.byte(at + j) / 64 * 16};
}

float q2_k(const Block& b, std::int64_t k) {
  const std::int64_t within = k % 128;
  const int q = b.byte(16 + k / 128 * 32 + within % 32) >> (2 * (within / 32)) & 3;
  const int s = b.byte(k / 16);
  const float scale = b.half(80) * static_cast<float>(s & 15);
  const float min = b.half(82) * static_cast<float>(s >> 4);
  return scale * static_cast<float>(q) - min;
}

float q3_k(const Block& b, std::int64_t k) {
  const std::int64_t within = k % 128;
  const int low = b.byte(32 + k / 128 * 32 + within % 32) >> (2 * (within / 32)) & 3;
  const int high = b.byte(k % 32) >> (k / 32) & 1;
  const std::int64_t j = k / 16;
  const int s = b.byte(96 + j % 8) >> (j < 8 ? 0 : 4) & 15;
  const int top = b.byte(104 + j % 4) >> (2 * (j / 4)) & 3;
  return b.half(108) * static_cast<float>(s + 16 * top - 32) * static_cast<float>(low + 4 * high - 4);
}

/// Of q4_k and q5_k, whose nibbles begin at `at`.
float with_pairs(const Block& b, std::int64_t at, std::int64_t k, int fifth) {
  const std::int64_t j = k / 32;
  const ScaleAndMin pair = pair_of(b, 4, j);
  const int nibble = b.byte(at + j / 2 * 32 + k % 32) >> (4 * (j % 2)) & 15;
  const float scale = b.half(0) * static_cast<float>(pair.scale);
  const float min = b.half(2) * static_cast<float>(pair.min);
  return scale * static_cast<float>(nibble + 16 * fifth) - min;
}

float q6_k(const Block& b, std::int64_t k) {
  const std::int64_t half = k / 128, within = k % 128;
  const int low = b.byte(half * 64 + within % 64) >> (4 * (within / 64)) & 15;
  const int high = b.byte(128 + half * 32 + within % 32) >> (2 * (within / 32)) & 3;
  return b.half(208) * static_cast<float>(b.signed_byte(192 + k / 16)) *
         static_cast<float>(low + 16 * high - 32);
}

/// E2M1 without its sign.
float e2m1(int code) {
  const int exponent = code / 2 % 4;
  const float mantissa = static_cast<float>(code % 2) / 2;
  const float value = exponent == 0 ? mantissa : std::ldexp(1 + mantissa, exponent - 1);
  return code >= 8 ? -value : value;
}

float e4m3(int code) {
  const int exponent = code / 8 % 16;
  const int mantissa = code % 8;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  const float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                    : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return code >= 128 ? -value : value;
}

float of_block(QuantizedFormat format, const Block& b, std::int64_t k) {
  switch (format) {
    case QuantizedFormat::q4_0:
      return b.half(0) * static_cast<float>(b.nibble(2, k) - 8);
    case QuantizedFormat::q4_1:
      return b.half(0) * static_cast<float>(b.nibble(4, k)) + b.half(2);
    case QuantizedFormat::q5_0:
      return b.half(0) * static_cast<float>(b.nibble(6, k) + 16 * b.bits(2, k, 1) - 16);
    case QuantizedFormat::q5_1:
      return b.half(0) * static_cast<float>(b.nibble(8, k) + 16 * b.bits(4, k, 1)) + b.half(2);
    case QuantizedFormat::q8_0:
      return b.half(0) * static_cast<float>(b.signed_byte(2 + k));
    case QuantizedFormat::q2_k:
      return q2_k(b, k);
    case QuantizedFormat::q3_k:
      return q3_k(b, k);
    case QuantizedFormat::q4_k:
      return with_pairs(b, 16, k, 0);
    case QuantizedFormat::q5_k:
      return with_pairs(b, 48, k, b.byte(16 + k % 32) >> (k / 32) & 1);
    case QuantizedFormat::q6_k:
      return q6_k(b, k);
    case QuantizedFormat::iq4_nl:
      return b.half(0) * static_cast<float>(kIq4Table[static_cast<std::size_t>(b.nibble(2, k))]);
    case QuantizedFormat::mxfp4:
      return std::ldexp(e2m1(b.nibble(1, k)), b.byte(0) - 127);
    default:
      return std::numeric_limits<float>::quiet_NaN();
  }
}

/// The matrices of a step.
class Weights {
 public:
  Weights(const StepMemory& memory, const QuantizedStep& step)
      : memory_(memory), what_(step.what), first_(step.first_part()) {
    if (what_.layout.interleaved) separate();
  }

  float at(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    const QuantizedLayout& layout = what_.layout;
    const QuantizedFacts& f = facts(layout.format);
    if (is_block_format(layout.format)) {
      const std::int64_t within = column / f.block * f.block_bytes;
      const Block block = layout.interleaved
                              ? Block(separated_, (matrix * what_.rows + row) * row_bytes() + within)
                              : Block(memory_.bytes(first_), element(0, matrix, row, within));
      return of_block(layout.format, block, column % f.block);
    }
    if (is_plain(layout.format)) return number(0, matrix, row, column);
    const std::int64_t group = column / layout.group;
    const float scale = number(1, matrix, row / layout.group_rows, group);
    if (is_affine(layout.format)) {
      const std::int64_t bit = column * f.bits;
      const Number word = read_number(memory_.bytes(first_), DType::u32, element(0, matrix, row, bit / 32));
      const auto q = static_cast<float>(word.i >> (bit % 32) & ((1 << f.bits) - 1));
      return scale * q + number(2, matrix, row, group);
    }
    if (layout.format == QuantizedFormat::codebook4) {
      const Block pair(memory_.bytes(first_), element(0, matrix, row, column / 2));
      const int q = pair.byte(0) >> (column % 2 == 0 ? 4 : 0) & 15;
      return scale * number(2, matrix, 0, q);
    }
    return e4m3(Block(memory_.bytes(first_), element(0, matrix, row, column)).byte(0)) * scale;
  }

 private:
  std::int64_t row_bytes() const {
    const QuantizedFacts& f = facts(what_.layout.format);
    return what_.columns / f.block * f.block_bytes;
  }
  /// Interleaved rows one after the other.
  void separate() {
    const std::int64_t rows = what_.matrices * what_.rows;
    separated_.resize(static_cast<std::size_t>(rows * row_bytes()));
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t of_sixteen = row % kInterleavedRows;
      const std::byte* group =
          memory_.bytes(first_).data() + element(0, 0, 0, 0) + (row - of_sixteen) * row_bytes();
      separate_row(what_.layout.format, group, what_.columns, of_sixteen,
                   separated_.data() + row * row_bytes());
    }
  }
  std::int64_t element(std::size_t part, std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    return memory_.element(first_ + part, {matrix, row, column});
  }
  float number(std::size_t part, std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    const DType type = memory_.type(first_ + part);
    return static_cast<float>(
        read_number(memory_.bytes(first_ + part), type, element(part, matrix, row, column)).f);
  }

  const StepMemory& memory_;
  const QuantizedNode& what_;
  std::size_t first_;
  std::vector<std::byte> separated_;
};

/// Row `m` of x, rounded as Activations says.
std::vector<double> rounded_row(const StepMemory& memory, std::int64_t m, std::int64_t columns) {
  std::vector<double> row;
  for (std::int64_t first = 0; first < columns; first += kRoundedBlock) {
    std::vector<float> block;
    for (std::int64_t k = first; k < std::min(first + kRoundedBlock, columns); ++k)
      block.push_back(static_cast<float>(memory.read(0, DType::f32, {m, 0, k}).f));
    const bool is_finite = std::ranges::all_of(block, [](float v) { return std::isfinite(v); });
    float largest = 0;
    for (const float v : block) largest = std::max(largest, std::fabs(v));
    for (const float v : block) {
      if (!is_finite)
        row.push_back(std::numeric_limits<double>::quiet_NaN());
      else if (largest < kLeastRounded)
        row.push_back(0);
      else
        row.push_back(static_cast<double>(largest / 127) * std::nearbyint(v * (127 / largest)));
    }
  }
  return row;
}

}  // namespace

void run_step(const StepMemory& memory, const QuantizedStep& quantized) {
  const QuantizedNode& what = quantized.what;
  const Weights weights(memory, quantized);
  const std::size_t out = memory.step().operands.size() - 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::size_t which = quantized.has_x() ? 1 : 0;
  const auto picked = [&](std::int64_t m, std::int64_t count) -> std::optional<std::int64_t> {
    if (!quantized.has_which()) return 0;
    const std::int64_t e = memory.read(which, DType::i32, {m}).i;
    return e >= 0 && e < count ? std::optional(e) : std::nullopt;
  };
  const Point dims = memory.leading_dims(0);
  switch (what.work) {
    case QuantizedWork::dequantize:
      return for_each_point(dims, [&](const Point& at) {
        memory.write(out, DType::f32, at, floating(static_cast<double>(weights.at(at[0], at[1], at[2]))));
      });
    case QuantizedWork::take_rows:
      return for_each_point(dims, [&](const Point& at) {
        const auto row = picked(at[0], what.matrices * what.rows);
        const double value =
            row ? static_cast<double>(weights.at(*row / what.rows, *row % what.rows, at[2])) : nan;
        memory.write(out, DType::f32, at, floating(value));
      });
    case QuantizedWork::product:
    case QuantizedWork::transposed_product:
      break;
  }
  const bool across = what.work == QuantizedWork::transposed_product;
  std::vector<std::vector<double>> rounded;
  for (std::int64_t m = 0; what.rounds() && m < dims[0]; ++m)
    rounded.push_back(rounded_row(memory, m, what.columns));
  for_each_point({dims[0], across ? dims[2] : dims[1]}, [&](const Point& at) {
    const auto matrix = picked(at[0], what.matrices);
    double sum = matrix ? 0 : nan;
    for (std::int64_t i = 0; matrix && i < (across ? dims[1] : dims[2]); ++i) {
      const Point x = across ? Point{at[0], i, 0} : Point{at[0], 0, i};
      const float weight = across ? weights.at(*matrix, i, at[1]) : weights.at(*matrix, at[1], i);
      const double factor = what.rounds()
                                ? rounded[static_cast<std::size_t>(at[0])][static_cast<std::size_t>(i)]
                                : memory.read(0, DType::f32, x).f;
      sum += factor * static_cast<double>(weight);
    }
    memory.write(out, DType::f32, across ? Point{at[0], 0, at[1]} : Point{at[0], at[1], 0}, floating(sum));
  });
}

}  // namespace caldera::reference
