#include "engine/device/cpu/quantized/integer_ops.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/quantized/integer_ops.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/quantized/decode_blocks-inl.h"
#include "engine/device/cpu/quantized/integer_codes-inl.h"

// Instructions that add products of four bytes (AVX512-VNNI). No target of Highway says that there are such,
// as its AVX3_DL asks for much more, and in version 1.0 names the extension of another encoding: so they are
// written as such, and CPUs are asked.
#undef CALDERA_HAS_BYTE_DOTS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define CALDERA_HAS_BYTE_DOTS 1
#else
#define CALDERA_HAS_BYTE_DOTS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

// ---- Rounding
// ----------------------------------------------------------------------------------------------------

/// A block of x, but for its codes.
struct RoundedFacts {
  float scale;
  std::int32_t sums[2];  // of the codes of each half
};

/// The largest magnitude of a block, or NaN: the bits of magnitudes are in their order, NaN above infinity.
HWY_INLINE float largest_of(const float* x) {
  VI most = hn::Zero(I());
  for (std::int64_t j = 0; j < kRoundedBlock; j += kLanes)
    most = hn::Max(most, hn::BitCast(I(), hn::Abs(hn::LoadU(F(), x + j))));
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(I(), most)));
}

#if CALDERA_HAS_BYTE_VECTORS

/// Rounds x times a factor, and sums each half.
HWY_INLINE void round_times(const float* x, float factor, std::int8_t* codes, std::int32_t* sums) {
  const auto at = [&](int j) HWY_ATTR {
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * j), _mm256_set1_ps(factor)));
  };
  const __m256i mixed =
      _mm256_packs_epi16(_mm256_packs_epi32(at(0), at(1)), _mm256_packs_epi32(at(2), at(3)));
  const __m256i all = _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), all);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), all);
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  const __m256i eights = _mm256_hadd_epi32(fours, fours);
  const __m256i halves = _mm256_hadd_epi32(eights, eights);
  sums[0] = _mm_cvtsi128_si32(_mm256_castsi256_si128(halves));
  sums[1] = _mm_cvtsi128_si32(_mm256_extracti128_si256(halves, 1));
}

#else  // CALDERA_HAS_BYTE_VECTORS

HWY_INLINE void round_times(const float* x, float factor, std::int8_t* codes, std::int32_t* sums) {
  for (int half = 0; half < 2; ++half) {
    VI sum = hn::Zero(I());
    for (std::int64_t j = half * 16; j < half * 16 + 16; j += kLanes) {
      const VI rounded = hn::NearestInt(hn::Mul(hn::LoadU(F(), x + j), hn::Set(F(), factor)));
      sum = hn::Add(sum, rounded);
      hn::StoreU(hn::DemoteTo(SignedBytes(), rounded), SignedBytes(), codes + j);
    }
    sums[half] = hn::GetLane(hn::SumOfLanes(I(), sum));
  }
}

#endif  // CALDERA_HAS_BYTE_VECTORS

HWY_INLINE RoundedFacts round_block(const float* x, std::int8_t* codes) {
  const float largest = largest_of(x);
  if (!(largest >= kLeastRounded && largest <= std::numeric_limits<float>::max())) {
    std::memset(codes, 0, kRoundedBlock);
    return {largest < kLeastRounded ? 0 : std::numeric_limits<float>::quiet_NaN(), {0, 0}};
  }
  RoundedFacts facts{largest / 127, {0, 0}};
  round_times(x, 127 / largest, codes, facts.sums);
  return facts;
}

void round_rows(const float* x, std::int64_t stride, std::int64_t rows, const RoundedRows& out) {
  for (std::int64_t m = 0; m < rows; ++m) {
    const RoundedRows row = out.from(m);
    for (std::int64_t b = 0; b < out.blocks(); ++b) {
      const RoundedFacts facts =
          round_block(x + m * stride + b * kRoundedBlock, row.codes + b * kRoundedBlock);
      row.scales[b] = facts.scale;
      row.minus[b] = -(facts.sums[0] + facts.sums[1]);
      row.sums[b] = -facts.scale * static_cast<float>(row.minus[b]);
      for (int half = 0; half < 2; ++half) {
        row.half_minus[2 * b + half] = -facts.sums[half];
        row.half_sums[2 * b + half] = facts.scale * static_cast<float>(facts.sums[half]);
      }
    }
  }
}

// ---- Few rows: dot products with codes as they are decoded
// ---------------------------------------------------------

#if CALDERA_HAS_BYTE_VECTORS

/// Eight sums of floats.
using Sums = __m256;

HWY_INLINE Sums no_sums() { return _mm256_setzero_ps(); }
HWY_INLINE Sums added(Sums a, Sums b) { return _mm256_add_ps(a, b); }
HWY_INLINE float total(Sums sums) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
HWY_INLINE void add_eight(const float* a, const float* b, Sums& sums) {
  sums = _mm256_fmadd_ps(_mm256_loadu_ps(a), _mm256_loadu_ps(b), sums);
}
/// Adds products of four bytes, codes without a sign and x, to each sum.
template <bool kByteDots>
HWY_INLINE __m256i add_dots(__m256i sums, __m256i codes, __m256i x) {
#if CALDERA_HAS_BYTE_DOTS
  if constexpr (kByteDots) {
    asm("%{evex%} vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(codes), "v"(x));
    return sums;
  }
#endif
  const __m256i pairs = _mm256_maddubs_epi16(codes, x);
  return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/// Adds what block `b` of a row of x times codes is, with the scales of both: kScales a block.
template <class Format, bool kByteDots>
HWY_INLINE void add_block(Codes codes, const RoundedRows& x, std::int64_t b, const float* scales,
                          Sums& sums) {
  __m256i start = _mm256_setzero_si256();
  const __m256i of_halves = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  if constexpr (Format::kOffset > 0 && Format::kScales == 1) {
    static_assert(Format::kOffset % 8 == 0, "the same whole number in each of eight sums");
    start = _mm256_set1_epi32(x.minus[b]);
    start = _mm256_slli_epi32(start, std::countr_zero(unsigned{Format::kOffset / 8}));
  } else if constexpr (Format::kOffset > 0) {
    static_assert(Format::kOffset % 4 == 0, "the same whole number in each of four sums");
    const __m128i both = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x.half_minus + 2 * b));
    start = _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(both), of_halves);
    start = _mm256_slli_epi32(start, std::countr_zero(unsigned{Format::kOffset / 4}));
  }
  __m256i rounded = load_codes(reinterpret_cast<const std::uint8_t*>(x.codes) + b * kRoundedBlock);
  if constexpr (Format::kSigned) {
    rounded = _mm256_sign_epi8(rounded, codes);
    codes = _mm256_abs_epi8(codes);
  }
  const __m256 dots = _mm256_cvtepi32_ps(add_dots<kByteDots>(start, codes, rounded));
  __m256 scale;
  if constexpr (Format::kScales == 1)
    scale = _mm256_broadcast_ss(scales);
  else
    scale = _mm256_permutevar8x32_ps(
        _mm256_castps128_ps256(_mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales)))),
        of_halves);
  sums = _mm256_fmadd_ps(dots, scale, sums);
}

#else  // CALDERA_HAS_BYTE_VECTORS

struct Sums {
  float at;
};

HWY_INLINE Sums no_sums() { return {0}; }
HWY_INLINE Sums added(const Sums& a, const Sums& b) { return {a.at + b.at}; }
HWY_INLINE float total(const Sums& sums) { return sums.at; }
HWY_INLINE void add_eight(const float* a, const float* b, Sums& sums) {
  for (int i = 0; i < 8; ++i) sums.at += a[i] * b[i];
}
template <class Format, bool kByteDots>
HWY_INLINE void add_block(const Codes& codes, const RoundedRows& x, std::int64_t b, const float* scales,
                          Sums& sums) {
  const std::int8_t* rounded = x.codes + b * kRoundedBlock;
  constexpr int kColumns = 32 / Format::kScales;
  for (int s = 0; s < Format::kScales; ++s) {
    std::int32_t dot = 0;
    for (int i = s * kColumns; i < (s + 1) * kColumns; ++i) {
      const int code =
          Format::kSigned ? static_cast<std::int8_t>(codes.at[i]) : codes.at[i] - Format::kOffset;
      dot += code * rounded[i];
    }
    sums.at += static_cast<float>(dot) * scales[s];
  }
}

#endif  // CALDERA_HAS_BYTE_VECTORS

/// Scales of a chunk, kScales a block, times those of a row of x.
template <class Format>
HWY_INLINE void scale_by(const float* scale, const float* x, int blocks, float* out) {
  constexpr int kScales = Format::kScales;
#if CALDERA_HAS_BYTE_VECTORS
  if (blocks == kChunkBlocks) {
    const __m256 all = _mm256_loadu_ps(x);
    if constexpr (kScales == 1) {
      _mm256_store_ps(out, _mm256_mul_ps(all, _mm256_load_ps(scale)));
    } else {
      const __m256 low = _mm256_permutevar8x32_ps(all, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
      const __m256 high = _mm256_permutevar8x32_ps(all, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7));
      _mm256_store_ps(out, _mm256_mul_ps(low, _mm256_load_ps(scale)));
      _mm256_store_ps(out + 8, _mm256_mul_ps(high, _mm256_load_ps(scale + 8)));
    }
    return;
  }
#endif
  for (int j = 0; j < blocks * kScales; ++j) out[j] = scale[j] * x[j / kScales];
}

/// Calls body(0), body(1) ... with constants. Loops that compilers unroll later leave what they index in
/// memory.
template <int... kIndices, class Body>
HWY_INLINE void each_of(std::integer_sequence<int, kIndices...> /*indices*/, const Body& body) {
  (body(std::integral_constant<int, kIndices>()), ...);
}
template <int kCount, class Body>
HWY_INLINE void each(const Body& body) {
  each_of(std::make_integer_sequence<int, kCount>(), body);
}

/// Sums of a row of x: two, taken in turns, and what the biases add.
struct RowSums {
  Sums even, odd, biased;
  RoundedRows x;
};

/// Adds a chunk of a row of the matrix times kRows rows of x. A whole one has kChunkBlocks blocks.
template <class Format, bool kByteDots, bool kIsWhole, int kRows>
HWY_INLINE void add_chunk(ChunkOfRow chunk, RowSums (&rows)[kRows]) {
  constexpr int kMost = kChunkBlocks * Format::kScales;
  HWY_ALIGN float scale[kMost], bias[kMost], both[kRows][kMost];
  if constexpr (kIsWhole) {
    chunk.blocks = kChunkBlocks;
  } else {
    std::fill_n(scale, kMost, 0.0F);
    std::fill_n(bias, kMost, 0.0F);
  }
  Format::scales(chunk, scale, bias);
  const std::int64_t first = chunk.column / kRoundedBlock;
  each<kRows>([&](auto i) __attribute__((always_inline)) {
    RowSums& row = rows[i];
    scale_by<Format>(scale, row.x.scales + first, chunk.blocks, both[i]);
    if constexpr (Format::kHasBias && Format::kScales == 2) {
      each<kMost / 8>([&](auto b) __attribute__((always_inline)) {
        add_eight(bias + 8 * b, row.x.half_sums + 2 * first + 8 * b, row.biased);
      });
    } else if constexpr (Format::kHasBias && kIsWhole) {
      add_eight(bias, row.x.sums + first, row.biased);
    } else if constexpr (Format::kHasBias) {
      HWY_ALIGN float of_blocks[kChunkBlocks] = {};
      std::copy_n(row.x.sums + first, chunk.blocks, of_blocks);
      add_eight(bias, of_blocks, row.biased);
    }
  });
  const auto add = [&](int b, bool is_odd) __attribute__((always_inline)) {
    const Codes codes = Format::codes(chunk, b);
    each<kRows>([&](auto i) __attribute__((always_inline)) {
      add_block<Format, kByteDots>(codes, rows[i].x, first + b, both[i] + b * Format::kScales,
                                   is_odd ? rows[i].odd : rows[i].even);
    });
  };
  if constexpr (kIsWhole) {
    each<kChunkBlocks>([&](auto b) __attribute__((always_inline)) { add(b, b % 2 == 1); });
  } else {
    for (int b = 0; b < chunk.blocks; ++b) add(b, false);
  }
}

template <class Format, bool kByteDots, int kRows>
void dot_rows(ChunkOfRow chunk, std::int64_t columns, const RoundedRows& x, float* out,
              std::int64_t out_stride) {
  RowSums rows[kRows];
  each<kRows>([&](auto i) __attribute__((always_inline)) {
    rows[i].even = rows[i].odd = rows[i].biased = no_sums();
    rows[i].x = x.from(i);
  });
  for (; chunk.column + kChunk <= columns; chunk.column += kChunk)
    add_chunk<Format, kByteDots, true>(chunk, rows);
  if (chunk.column < columns) {
    chunk.blocks = static_cast<int>((columns - chunk.column) / kRoundedBlock);
    add_chunk<Format, kByteDots, false>(chunk, rows);
  }
  each<kRows>([&](auto i) __attribute__((always_inline)) {
    out[i * out_stride] = total(added(added(rows[i].even, rows[i].odd), rows[i].biased));
  });
}

template <bool kByteDots>
void dot(const QuantizedLayout& layout, const QuantizedRow& row, const RoundedRows& x, std::int64_t m,
         float* out, std::int64_t out_stride) {
  const ChunkOfRow chunk{&row, 0, layout.group, kChunkBlocks};
  with_codes_of(layout.format, [&](auto format) {
    using Format = decltype(format);
    std::int64_t i = 0;
    const auto take = [&](auto rows) {
      for (; i + rows <= m; i += rows)
        dot_rows<Format, kByteDots, rows>(chunk, x.columns, x.from(i), out + i * out_stride, out_stride);
    };
    // Old instruction sets go without variants, which cost time to compile.
    if constexpr (CALDERA_HAS_BYTE_VECTORS) take(std::integral_constant<int, 4>());
    if constexpr (kByteDots) take(std::integral_constant<int, 2>());
    take(std::integral_constant<int, 1>());
  });
}

// ---- Many rows: panels of kPanelRows rows, each block of which is in registers for several rows of x
// -----------------

#if CALDERA_HAS_BYTE_DOTS

/// What a block of 32 columns of a panel is: four columns of every row in 64 bytes, eight times; then two
/// scales and two biases a row, those of sixteen rows in 64 bytes.
struct PanelBlock {
  std::uint8_t codes[8][kPanelRows][4];
  float scales[2][kPanelRows];
  float biases[2][kPanelRows];
};

/// Codes of panels are those of CodesOf, or 128 more than signed ones.
template <class Format>
inline constexpr int kPanelOffset = Format::kSigned ? 128 : Format::kOffset;

/// Writes eight rows of 32 bytes as columns of four.
HWY_INLINE void interleave(const Codes* rows, std::uint8_t* out) {
  __m256i pairs[8], fours[8];
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm256_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
    pairs[2 * i + 1] = _mm256_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      fours[4 * i + 2 * j] = _mm256_unpacklo_epi64(pairs[4 * i + j], pairs[4 * i + 2 + j]);
      fours[4 * i + 2 * j + 1] = _mm256_unpackhi_epi64(pairs[4 * i + j], pairs[4 * i + 2 + j]);
    }
  // fours[j] has columns 4 j to 4 j + 3 of rows 0 to 3 in its low half, and columns 16 on of them in its high
  // one.
  for (int j = 0; j < 4; ++j) {
    const auto at = [&](int k) { return reinterpret_cast<__m256i*>(out + k * kPanelRows * 4); };
    _mm256_storeu_si256(at(j), _mm256_permute2x128_si256(fours[j], fours[4 + j], 0x20));
    _mm256_storeu_si256(at(j + 4), _mm256_permute2x128_si256(fours[j], fours[4 + j], 0x31));
  }
}

/// Sixteen floats, kApart from one another.
template <int kApart>
HWY_INLINE __m512 column_of(const float* p) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_i32gather_ps(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(kApart)), p, sizeof(float));
}

template <class Format>
void pack_rows(std::int64_t group, const QuantizedRow* rows, std::int64_t columns, PanelBlock* panel) {
  constexpr int kMost = kChunkBlocks * Format::kScales;
  for (std::int64_t column = 0; column < columns; column += kChunk, panel += kChunkBlocks) {
    const int blocks = static_cast<int>(std::min<std::int64_t>(kChunk, columns - column) / kRoundedBlock);
    HWY_ALIGN float scale[kPanelRows][kMost], bias[kPanelRows][kMost];
    ChunkOfRow chunks[kPanelRows];
    for (int n = 0; n < kPanelRows; ++n) {
      chunks[n] = {rows + n, column, group, blocks};
      Format::scales(chunks[n], scale[n], bias[n]);
    }
    for (int b = 0; b < blocks; ++b) {
      for (int n = 0; n < kPanelRows; n += 8) {
        Codes codes[8];
        for (int i = 0; i < 8; ++i) {
          codes[i] = Format::codes(chunks[n + i], b);
          if constexpr (Format::kSigned) codes[i] = less_128(codes[i]);
        }
        interleave(codes, panel[b].codes[0][n]);
      }
      for (int s = 0; s < Format::kScales; ++s) {
        _mm512_store_ps(panel[b].scales[s], column_of<kMost>(scale[0] + b * Format::kScales + s));
        if constexpr (Format::kHasBias)
          _mm512_store_ps(panel[b].biases[s], column_of<kMost>(bias[0] + b * Format::kScales + s));
      }
    }
  }
}

void round_tile(QuantizedFormat format, const float* x, std::int64_t stride, std::int64_t rows,
                std::int64_t t, const RoundedTiles& out) {
  std::int32_t offset = 0;
  with_codes_of(format, [&](auto codes) { offset = kPanelOffset<decltype(codes)>; });
  for (std::int64_t i = 0; i < kTileRows; ++i) {
    const std::int64_t m = t * kTileRows + i;
    for (std::int64_t b = 0; b < out.blocks(); ++b) {
      RoundedBlock& block = out.tile(t)[b * kTileRows + i];
      if (m >= rows) {
        block = {};
        continue;
      }
      const RoundedFacts facts = round_block(x + m * stride + b * kRoundedBlock, block.codes);
      block.scale = facts.scale;
      for (int half = 0; half < 2; ++half) {
        block.minus[half] = -offset * facts.sums[half];
        block.sums[half] = facts.scale * static_cast<float>(facts.sums[half]);
      }
      block.minus_both = block.minus[0] + block.minus[1];
      block.sum = facts.scale * static_cast<float>(facts.sums[0] + facts.sums[1]);
    }
  }
}

/// Adds products of four bytes in memory with codes.
HWY_INLINE void add_fours(__m512i& dots, __m512i codes, const std::int8_t* x) {
  const auto& four = *reinterpret_cast<const std::int8_t(*)[4]>(x);
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(dots) : "v"(codes), "m"(four));
}

/// A panel times a tile of x, of which the first `m` rows, and the columns in `columns`, are written.
template <class Format>
HWY_INLINE void multiply_tile(const PanelBlock* panel, const RoundedBlock* x, std::int64_t blocks,
                              std::int64_t m, float* out, std::int64_t out_stride, __mmask16 columns) {
  __m512 sums[kTileRows];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  for (std::int64_t b = 0; b < blocks; ++b, ++panel, x += kTileRows) {
    __m512i codes[8];
    for (int j = 0; j < 8; ++j) codes[j] = _mm512_load_si512(panel->codes[j]);
    constexpr int kEach = 8 / Format::kScales;
#pragma GCC unroll 2
    for (int s = 0; s < Format::kScales; ++s) {
      const __m512 scale = _mm512_load_ps(panel->scales[s]);
#pragma GCC unroll 8
      for (int i = 0; i < kTileRows; ++i) {
        __m512i dots = _mm512_setzero_si512();
        if constexpr (kPanelOffset < Format >> 0)
          dots = _mm512_set1_epi32(Format::kScales == 1 ? x[i].minus_both : x[i].minus[s]);
#pragma GCC unroll 8
        for (int j = s * kEach; j < (s + 1) * kEach; ++j) add_fours(dots, codes[j], x[i].codes + 4 * j);
        const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(dots), scale);
        sums[i] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(x[i].scale), sums[i]);
        if constexpr (Format::kHasBias) {
          const float sum = Format::kScales == 1 ? x[i].sum : x[i].sums[s];
          sums[i] = _mm512_fmadd_ps(_mm512_load_ps(panel->biases[s]), _mm512_set1_ps(sum), sums[i]);
        }
      }
    }
  }
  for (std::int64_t i = 0; i < kTileRows; ++i)
    if (i < m) _mm512_mask_storeu_ps(out + i * out_stride, columns, sums[i]);
}

void pack(const QuantizedLayout& layout, const QuantizedRow* rows, std::int64_t columns, std::byte* panel) {
  with_codes_of(layout.format, [&](auto format) {
    pack_rows<decltype(format)>(layout.group, rows, columns, reinterpret_cast<PanelBlock*>(panel));
  });
}

void multiply(const QuantizedLayout& layout, const std::byte* panel, const RoundedTiles& x, std::int64_t m,
              float* out, std::int64_t out_stride, std::int64_t count) {
  const auto columns = static_cast<__mmask16>((1U << count) - 1);
  with_codes_of(layout.format, [&](auto format) {
    for (std::int64_t t = 0; t * kTileRows < m; ++t)
      multiply_tile<decltype(format)>(reinterpret_cast<const PanelBlock*>(panel), x.tile(t), x.blocks(),
                                      m - t * kTileRows, out + t * kTileRows * out_stride, out_stride,
                                      columns);
  });
}

#endif  // CALDERA_HAS_BYTE_DOTS

const IntegerOps* integer_ops_of_target(bool byte_dots) {
  static constexpr IntegerOps plain{round_rows, dot<false>, nullptr, nullptr, nullptr};
#if CALDERA_HAS_BYTE_DOTS
  static constexpr IntegerOps with_byte_dots{round_rows, dot<true>, round_tile, pack, multiply};
  if (byte_dots && __builtin_cpu_supports("avx512vnni")) return &with_byte_dots;
#endif
  (void)byte_dots;
  return &plain;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(integer_ops_of_target);

const IntegerOps& choose_integer_ops(bool byte_dots) {
  return *HWY_DYNAMIC_DISPATCH(integer_ops_of_target)(byte_dots);
}

const IntegerOps& integer_ops() {
  static const IntegerOps& ops = choose_integer_ops(true);
  return ops;
}

std::size_t panel_bytes(std::int64_t columns) {
  constexpr std::size_t kBlock = kPanelRows * (32 + 4 * sizeof(float));
  return static_cast<std::size_t>(columns / kRoundedBlock) * kBlock;
}

}  // namespace caldera::cpu
#endif
