// Many rows of x: panels of kPanelRows rows of a matrix, each block of which is in registers for a tile of x.
// Included once for every instruction set, after integer_rounding-inl.h; empty without CALDERA_HAS_BYTE_DOTS.
#if defined(CALDERA_INTEGER_PANELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_INTEGER_PANELS_INL
#undef CALDERA_INTEGER_PANELS_INL
#else
#define CALDERA_INTEGER_PANELS_INL
#endif

#include "engine/device/cpu/quantized/integer_rounding-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {

#if CALDERA_HAS_BYTE_DOTS

/// Holds 32 columns of a panel: four columns of every row in 64 bytes, eight times; then two
/// scales and two biases a row, those of sixteen rows in 64 bytes.
struct PanelBlock {
  std::uint8_t codes[8][kPanelRows][4];
  float scales[2][kPanelRows];
  float biases[2][kPanelRows];
};
static_assert(sizeof(PanelBlock) == kPanelBlockBytes);

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

inline void round_tile(QuantizedFormat format, const float* x, std::int64_t stride, std::int64_t rows,
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

inline void pack(const QuantizedLayout& layout, const QuantizedRow* rows, std::int64_t columns,
                 std::byte* panel) {
  with_codes_of(layout.format, [&](auto format) {
    pack_rows<decltype(format)>(layout.group, rows, columns, reinterpret_cast<PanelBlock*>(panel));
  });
}

inline void multiply(const QuantizedLayout& layout, const std::byte* panel, const RoundedTiles& x,
                     std::int64_t m, float* out, std::int64_t out_stride, std::int64_t count) {
  const auto columns = static_cast<__mmask16>((1U << count) - 1);
  with_codes_of(layout.format, [&](auto format) {
    for (std::int64_t t = 0; t * kTileRows < m; ++t)
      multiply_tile<decltype(format)>(reinterpret_cast<const PanelBlock*>(panel), x.tile(t), x.blocks(),
                                      m - t * kTileRows, out + t * kTileRows * out_stride, out_stride,
                                      columns);
  });
}

#endif  // CALDERA_HAS_BYTE_DOTS

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();
#endif  // CALDERA_INTEGER_PANELS_INL
