// QuantizedFormat: how matrices of few bits a weight are in memory. The one table of the formats, and what
// memory a matrix takes in each; what the bits mean stands with each format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/tensor/dtype.h"

namespace caldera {

/// Block formats are those of ggml (ggml-common.h, ggml-quants.c): a row is a sequence of blocks of
/// consecutive columns, and a matrix one tensor of u8 (rows, bytes of a row). Scales d and m are f16, low
/// bytes first; q is a code; "j, j + 16" says that byte j of a block holds element j in its low nibble and
/// element j + 16 in its high one. All arithmetic is in f32, in the order written here.
///
/// Grouped formats have their scales in tensors of their own: see parts_of().
enum class QuantizedFormat : std::uint8_t {
  q4_0,     // d, 16 bytes (j, j + 16): d (q - 8)
  q4_1,     // d, m, 16 bytes (j, j + 16): d q + m
  q5_0,     // d, 4 bytes of fifth bits, 16 bytes (j, j + 16): d (q - 16)
  q5_1,     // d, m, 4 bytes of fifth bits, 16 bytes (j, j + 16): d q + m
  q8_0,     // d, 32 signed bytes: d q
  q2_k,     // 16 scales s and mins t of 4 bits, 64 bytes, d, m: (d s) q - (m t), 16 elements a scale
  q3_k,     // 32 bytes of third bits, 64 bytes, 12 of scales s, d: (d (s - 32)) (q - 4), 16 elements a scale
  q4_k,     // d, m, 12 bytes of scales s and mins t, 128 bytes: (d s) q - (m t), 32 elements a scale
  q5_k,     // the same with 32 bytes of fifth bits before the 128
  q6_k,     // 128 bytes of low nibbles, 64 of high pairs, 16 signed scales s, d: (d s) (q - 32), 16 a scale
  iq4_nl,   // d, 16 bytes (j, j + 16): d t[q] for a table t of signed bytes
  mxfp4,    // an exponent e, 16 bytes (j, j + 16) of E2M1: 2^(e - 127) times the value (OCP MX)
  affine2,  // MLX, and what GPTQ and AWQ are repacked to: s q + b. Codes are in u32, the first in the low
  affine4,  // bits; a scale and a bias a group of columns
  affine8,
  codebook4,  // bitsandbytes NF4 and FP4: a t[q] for a table t of 16 values, an a for each group of columns.
              // Two codes a byte, the first in the high nibble
  fp8_e4m3,   // a byte a weight (OCP E4M3: no infinities, 0x7f and 0xff are NaN), times the scale of its tile
  f32,        // plain floats, so that what is made of quantised matrices is made of others too
  f16,
  bf16,
};
inline constexpr int kQuantizedFormatCount = 20;

/// Holds what there is to know about a format.
struct QuantizedFacts {
  std::string_view name;   // as GGUF, MLX or bitsandbytes spell it, in lower case
  std::int16_t block = 0;  // columns of a block; 0 for grouped formats
  std::int16_t block_bytes = 0;
  std::int8_t bits = 0;        // of a code
  bool has_offset = false;     // codes 0 and up stand for values that start at an offset of their group
  std::int8_t ggml_type = -1;  // of blocks in GGUF; -1: none
  // Bytes of a block at which its scales of f16 are; -1: none. The largest number that one is multiplied
  // with.
  std::int16_t scale = -1, second_scale = -1;
  std::int16_t largest = 1;
};

// In the order of QuantizedFormat.
inline constexpr std::array<QuantizedFacts, kQuantizedFormatCount> kQuantizedFacts{{
    {"q4_0", 32, 18, 4, false, 2, 0, -1, 8},
    {"q4_1", 32, 20, 4, true, 3, 0, 2, 16},
    {"q5_0", 32, 22, 5, false, 6, 0, -1, 16},
    {"q5_1", 32, 24, 5, true, 7, 0, 2, 32},
    {"q8_0", 32, 34, 8, false, 8, 0, -1, 128},
    {"q2_k", 256, 84, 2, true, 10, 80, 82, 64},
    {"q3_k", 256, 110, 3, false, 11, 108, -1, 128},
    {"q4_k", 256, 144, 4, true, 12, 0, 2, 1024},
    {"q5_k", 256, 176, 5, true, 13, 0, 2, 2048},
    {"q6_k", 256, 210, 6, false, 14, 208, -1, 4096},
    {"iq4_nl", 32, 18, 4, false, 20, 0, -1, 128},
    {"mxfp4", 32, 17, 4, false, 39},
    {"affine2", 0, 0, 2, true, -1},
    {"affine4", 0, 0, 4, true, -1},
    {"affine8", 0, 0, 8, true, -1},
    {"codebook4", 0, 0, 4, false, -1},
    {"fp8_e4m3", 0, 0, 8, false, -1},
    {"f32", 0, 0, 32, false, -1},
    {"f16", 0, 0, 16, false, -1},
    {"bf16", 0, 0, 16, false, -1},
}};
constexpr const QuantizedFacts& facts(QuantizedFormat f) {
  return kQuantizedFacts[static_cast<std::size_t>(f)];
}
constexpr std::string_view name(QuantizedFormat f) { return facts(f).name; }
/// A format whose matrix is one tensor of blocks.
constexpr bool is_block_format(QuantizedFormat f) { return facts(f).block > 0; }
constexpr bool is_affine(QuantizedFormat f) {
  return f == QuantizedFormat::affine2 || f == QuantizedFormat::affine4 || f == QuantizedFormat::affine8;
}

/// A format of plain floats.
constexpr bool is_plain(QuantizedFormat f) { return f >= QuantizedFormat::f32; }

/// The format that GGUF files call by this number.
std::optional<QuantizedFormat> quantized_format_of_ggml(std::int64_t type);

/// A format whose weights are a scale times an integer of at most 8 bits, some with an offset of their group.
/// Products with them may round what they are multiplied with: see Activations.
constexpr bool has_integer_codes(QuantizedFormat f) { return f < QuantizedFormat::codebook4; }

/// Says what a product with quantised weights may do to the x that it multiplies them with.
///
/// Rounding goes by blocks of 32 columns of a row of x. With a the largest magnitude of a block, all in f32:
/// q = x (127 / a), rounded to the nearest integer (to even), and what is multiplied is (a / 127) q. A block
/// whose a is below 1e-30 counts as 0, one with a value that is not finite as NaN. (ggml's q8_0 for
/// activations is the same, but for a / 127 in f16.)
enum class Activations : std::uint8_t {
  exact,   ///< x is f32
  rounded  ///< the CPU rounds it to 8 bits and multiplies integers, in formats of has_integer_codes()
};
inline constexpr std::int64_t kRoundedBlock = 32;
inline constexpr float kLeastRounded = 1e-30F;

/// A format, and what it leaves open.
struct QuantizedLayout {
  QuantizedFormat format = QuantizedFormat::q8_0;
  /// Counts the columns that share a scale, in grouped formats (fp8_e4m3: of a tile, whose last ones may be
  /// narrower).
  std::int64_t group = 0;
  /// Counts the rows that share a scale, in fp8_e4m3. A scale a row has a tile of 1 by all columns, a scale a
  /// matrix one of all rows by all columns.
  std::int64_t group_rows = 1;
  /// Says that rows of a block format are interleaved in memory: see engine/tensor/interleaved_rows.h.
  bool interleaved = false;
  friend bool operator==(const QuantizedLayout&, const QuantizedLayout&) = default;
};

/// One of the tensors that a matrix is made of: (rows, columns), dense.
struct QuantizedPart {
  std::string_view name;  // "blocks"; "codes", "scales", "biases", "table"; "weights"
  DType dtype;            // f32 stands for f32, f16 and bf16 where `is_any_float` says so
  bool is_any_float = false;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// Why no matrix of `rows` x `columns` has this layout; empty where one has.
std::string_view why_no_layout(const QuantizedLayout& layout, std::int64_t rows, std::int64_t columns);

/// The tensors of a matrix of `rows` x `columns`, for which why_no_layout() is empty:
/// - block formats: blocks u8 (rows, bytes of a row);
/// - affine: codes u32 (rows, columns * bits / 32), scales and biases of any float (rows, columns / group);
/// - codebook4: codes u8 (rows, columns / 2), scales f32 (rows, columns / group), table f32 (1, 16);
/// - fp8_e4m3: codes u8 (rows, columns), scales of any float (rows / group_rows, columns / group), rounded
///   up;
/// - plain floats: weights of that type (rows, columns).
std::vector<QuantizedPart> parts_of(const QuantizedLayout& layout, std::int64_t rows, std::int64_t columns);

/// Groups of columns along a row: of codes that share a scale, counted from 0.
constexpr std::int64_t groups_of(const QuantizedLayout& layout, std::int64_t columns) {
  return (columns + layout.group - 1) / layout.group;
}

/// Names what a step or node does with quantised matrices.
enum class QuantizedWork : std::uint8_t {
  dequantize,         // the matrices as floats
  take_rows,          // some of their rows as floats
  product,            // x times the transposed matrix: sums over columns
  transposed_product  // x times the matrix: sums over rows
};

}  // namespace caldera
