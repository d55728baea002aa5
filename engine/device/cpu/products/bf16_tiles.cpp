#include "engine/device/cpu/products/bf16_tiles.h"

#include <algorithm>
#include <array>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/products/bf16_tiles.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/turned_squares-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3

constexpr std::int64_t kWords = 16;  // of a vector

/// sum += the products of the pairs in each lane.
HWY_INLINE void add_pairs(__m512& sum, __m512i a, __m512i b) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}

HWY_INLINE __mmask32 first_halves(std::int64_t n) {
  return n >= 32 ? ~__mmask32{0} : static_cast<__mmask32>((1U << n) - 1);
}

/// Sixteen numbers, of which those at n and beyond are zero, in the lower halves of words.
HWY_INLINE __m512i load_words(const std::uint16_t* p, std::int64_t n) {
  const __m256i halves = _mm512_castsi512_si256(
      _mm512_maskz_loadu_epi16(first_halves(std::clamp<std::int64_t>(n, 0, kWords)), p));
  return _mm512_cvtepu16_epi32(halves);
}

/// Where the terms of a row of A, or of a column of B, are neighbours.
void pack_along(const PairSource& x, std::int64_t panel_width, std::uint32_t* words) {
  const std::int64_t pairs = (x.depth + 1) / 2;
  for (std::int64_t w = 0; w < panel_width; w += kWords) {
    const std::int64_t rows = std::min(kWords, x.width - w);
    if (rows <= 0) {
      for (std::int64_t p = 0; p < pairs; ++p)
        _mm512_storeu_si512(words + p * panel_width + w, _mm512_setzero_si512());
      continue;
    }
    for (std::int64_t p = 0; p < pairs; p += kWords) {
      const __mmask32 terms = first_halves(std::min<std::int64_t>(2 * kWords, x.depth - 2 * p));
      const std::uint16_t* from = x.data + w * x.width_stride + 2 * p;
      __m512i lines[kWords];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kWords; ++i)
        lines[i] =
            i < rows ? _mm512_maskz_loadu_epi16(terms, from + i * x.width_stride) : _mm512_setzero_si512();
      turn_lines(lines);
      const std::int64_t count = std::min(kWords, pairs - p);
      std::uint32_t* to = words + p * panel_width + w;
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kWords; ++i)
        if (i < count) _mm512_storeu_si512(to + i * panel_width, lines[i]);
    }
  }
}

/// Where rows of A, or columns of B, are neighbours.
void pack_across(const PairSource& x, std::int64_t panel_width, std::uint32_t* words,
                 std::int64_t panel_words) {
  const std::int64_t pairs = (x.depth + 1) / 2;
  for (std::int64_t p = 0; p < pairs; ++p) {
    const std::uint16_t* low = x.data + 2 * p * x.depth_stride;
    const bool has_high = 2 * p + 1 < x.depth;
    const std::uint16_t* high = low + x.depth_stride;
    std::uint32_t* panel = words + p * panel_width;
    for (std::int64_t first = 0; first < x.width; first += panel_width, panel += panel_words) {
      for (std::int64_t w = 0; w < panel_width; w += kWords) {
        const std::int64_t at = first + w;
        const std::int64_t n = std::min(panel_width - w, x.width - at);
        __m512i word = _mm512_setzero_si512();
        if (n > 0) {
          word = load_words(low + at, n);
          if (has_high) word = _mm512_or_si512(word, _mm512_slli_epi32(load_words(high + at, n), 16));
        }
        _mm512_storeu_si512(panel + w, word);
      }
    }
  }
}

void pack_any(const PairSource& x, std::int64_t panel_width, std::uint32_t* words) {
  for (std::int64_t p = 0; 2 * p < x.depth; ++p) {
    const std::uint16_t* low = x.data + 2 * p * x.depth_stride;
    for (std::int64_t w = 0; w < panel_width; ++w) {
      std::uint32_t word = 0;
      if (w < x.width) word = low[w * x.width_stride];
      if (w < x.width && 2 * p + 1 < x.depth)
        word |= static_cast<std::uint32_t>(low[w * x.width_stride + x.depth_stride]) << 16;
      words[p * panel_width + w] = word;
    }
  }
}

void pack(const PairSource& source, std::int64_t panel_width, std::uint32_t* words,
          std::int64_t panel_words) {
  if (source.width_stride == 1 && source.depth > 1)
    return pack_across(source, panel_width, words, panel_words);
  for (std::int64_t first = 0; first < source.width; first += panel_width, words += panel_words) {
    PairSource panel = source;
    panel.data += first * source.width_stride;
    panel.width = std::min(panel_width, source.width - first);
    if (source.depth_stride == 1)
      pack_along(panel, panel_width, words);
    else
      pack_any(panel, panel_width, words);
  }
}

template <int kRows, int kVectors>
void multiply_tile(std::int64_t pairs, const std::uint32_t* a, const std::uint32_t* b, const PairTile& tile) {
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  for (std::int64_t p = 0; p < pairs; ++p, a += kPairRows, b += kPairColumns) {
    __m512i columns[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) columns[v] = _mm512_loadu_si512(b + v * kWords);
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) {
      const __m512i row = _mm512_set1_epi32(static_cast<int>(a[r]));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) add_pairs(sums[r][v], row, columns[v]);
    }
  }
  __mmask16 stored[kVectors];
  for (int v = 0; v < kVectors; ++v)
    stored[v] =
        static_cast<__mmask16>(first_halves(std::clamp<std::int64_t>(tile.columns - v * kWords, 0, kWords)));
  const __m512 alpha = _mm512_set1_ps(tile.alpha);
  const bool add = tile.add;
  float* c = tile.c;
  const std::int64_t c_row = tile.c_row;
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r, c += c_row) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* to = c + v * kWords;
      const __m512 sum = add ? _mm512_fmadd_ps(alpha, sums[r][v], _mm512_maskz_loadu_ps(stored[v], to))
                             : _mm512_mul_ps(alpha, sums[r][v]);
      _mm512_mask_storeu_ps(to, stored[v], sum);
    }
  }
}

using TileFn = void (*)(std::int64_t, const std::uint32_t*, const std::uint32_t*, const PairTile&);

template <int kVectors, int... kRows>
constexpr std::array<TileFn, sizeof...(kRows)> tiles_of(std::integer_sequence<int, kRows...>) {
  return {multiply_tile<kRows + 1, kVectors>...};
}

void multiply(std::int64_t pairs, const std::uint32_t* a, const std::uint32_t* b, const PairTile& tile) {
  using Rows = std::make_integer_sequence<int, static_cast<int>(kPairRows)>;
  static constexpr auto kNarrow = tiles_of<1>(Rows());
  static constexpr auto kWide = tiles_of<2>(Rows());
  const auto row = static_cast<std::size_t>(tile.rows - 1);
  (tile.columns <= kWords ? kNarrow : kWide)[row](pairs, a, b, tile);
}

#endif

const Bf16Tiles* bf16_tiles() {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  static constexpr Bf16Tiles kTiles{pack, multiply};
  if (__builtin_cpu_supports("avx512bf16")) return &kTiles;
#endif
  return nullptr;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(bf16_tiles);

const Bf16Tiles* find_bf16_tiles() { return HWY_DYNAMIC_DISPATCH(bf16_tiles)(); }

}  // namespace caldera::cpu
#endif
