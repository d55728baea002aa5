#include "engine/device/cpu/products/panel_tiles.h"

#include <algorithm>
#include <array>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/products/panel_tiles.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/products/matrix_tiles.h"
#include "engine/device/cpu/simd/turned_squares-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3

constexpr std::int64_t kWords = 16;  // of a vector
constexpr std::int64_t kTileRows = 14, kTileColumns = 2 * kWords;

HWY_INLINE __mmask16 first_words(std::int64_t n) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(n, 0, kWords)) - 1);
}

template <class T>
HWY_INLINE const T* element_of(const PanelSource& x, std::int64_t width, std::int64_t depth) {
  return reinterpret_cast<const T*>(x.data) + width * x.width_stride + depth * x.depth_stride;
}

/// How words are made of elements of a type: `terms` of them a word. `line` has n words of a row whose terms
/// are neighbours, of which those at n and beyond are zeros, `across` the words of n rows that are
/// neighbours.
template <DType kType>
struct Numbers {
  static constexpr std::int64_t kTerms = 1;
  using Element = std::conditional_t<kType == DType::f32, std::uint32_t, std::uint16_t>;

  static HWY_INLINE __m512i load(const Element* from, std::int64_t n) {
    if constexpr (kType == DType::f32) {
      return _mm512_maskz_loadu_epi32(first_words(n), from);
    } else {
      const __m256i halves = _mm256_maskz_loadu_epi16(first_words(n), from);
      if constexpr (kType == DType::f16) return _mm512_castps_si512(_mm512_cvtph_ps(halves));
      return _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16);
    }
  }
  static HWY_INLINE __m512i line(const PanelSource& x, std::int64_t width, std::int64_t word,
                                 std::int64_t n) {
    return load(element_of<Element>(x, width, word), n);
  }
  static HWY_INLINE __m512i across(const PanelSource& x, std::int64_t width, std::int64_t word,
                                   std::int64_t n) {
    return load(element_of<Element>(x, width, word), n);
  }
  static HWY_INLINE std::uint32_t word(const PanelSource& x, std::int64_t width, std::int64_t word) {
    return static_cast<std::uint32_t>(
        _mm_cvtsi128_si32(_mm512_castsi512_si128(load(element_of<Element>(x, width, word), 1))));
  }
  static HWY_INLINE void add(__m512& sum, __m512i a, __m512i b) {
    sum = _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  }
};

struct PairsOfBf16 {
  static constexpr std::int64_t kTerms = 2;
  using Element = std::uint16_t;

  static HWY_INLINE __m512i line(const PanelSource& x, std::int64_t width, std::int64_t word,
                                 std::int64_t n) {
    const std::int64_t terms = std::min(2 * n, x.depth - 2 * word);
    const __mmask32 loaded = terms >= 32 ? ~__mmask32{0} : static_cast<__mmask32>((1U << terms) - 1);
    return _mm512_maskz_loadu_epi16(loaded, element_of<Element>(x, width, 2 * word));
  }
  static HWY_INLINE __m512i across(const PanelSource& x, std::int64_t width, std::int64_t word,
                                   std::int64_t n) {
    const auto half = [&](std::int64_t depth) {
      return _mm512_cvtepu16_epi32(
          _mm256_maskz_loadu_epi16(first_words(n), element_of<Element>(x, width, depth)));
    };
    const __m512i low = half(2 * word);
    if (2 * word + 1 == x.depth) return low;
    return _mm512_or_si512(low, _mm512_slli_epi32(half(2 * word + 1), 16));
  }
  static HWY_INLINE std::uint32_t word(const PanelSource& x, std::int64_t width, std::int64_t word) {
    std::uint32_t value = *element_of<Element>(x, width, 2 * word);
    if (2 * word + 1 < x.depth)
      value |= static_cast<std::uint32_t>(*element_of<Element>(x, width, 2 * word + 1)) << 16;
    return value;
  }
  /// sum += the products of the pairs in each lane.
  static HWY_INLINE void add(__m512& sum, __m512i a, __m512i b) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  }
};

template <class Words>
std::int64_t words_of(const PanelSource& x) {
  return (x.depth + Words::kTerms - 1) / Words::kTerms;
}

/// Where the terms of a row of A, or of a column of B, are neighbours.
template <class Words>
void pack_along(const PanelSource& x, std::int64_t panel_width, std::uint32_t* words) {
  const std::int64_t depth = words_of<Words>(x);
  for (std::int64_t w = 0; w < panel_width; w += kWords) {
    const std::int64_t rows = std::min(kWords, x.width - w);
    if (rows <= 0) {
      for (std::int64_t p = 0; p < depth; ++p)
        _mm512_storeu_si512(words + p * panel_width + w, _mm512_setzero_si512());
      continue;
    }
    for (std::int64_t p = 0; p < depth; p += kWords) {
      const std::int64_t count = std::min(kWords, depth - p);
      __m512i lines[kWords];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kWords; ++i)
        lines[i] = i < rows ? Words::line(x, w + i, p, count) : _mm512_setzero_si512();
      turn_lines(lines);
      std::uint32_t* to = words + p * panel_width + w;
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kWords; ++i)
        if (i < count) _mm512_storeu_si512(to + i * panel_width, lines[i]);
    }
  }
}

/// Words of each row that follow each other in a panel before the next rows have their turn: half a kilobyte
/// is written on end.
constexpr std::int64_t kDepthTogether = 8;
// What is written behind a word of the last vector is written over by the next word of a panel of one vector.
static_assert(kTileRows <= kWords && kTileColumns % kWords == 0);
static_assert(kMatrixTileRows % kWords == 0 && kMatrixTileColumns % kWords == 0);

/// Where rows of A, or columns of B, are neighbours.
template <class Words>
void pack_across(const PanelSource& x, std::int64_t panel_width, std::uint32_t* words,
                 std::int64_t panel_words) {
  const std::int64_t depth = words_of<Words>(x);
  for (std::int64_t p = 0; p < depth; p += kDepthTogether) {
    const std::int64_t end = std::min(depth, p + kDepthTogether);
    std::uint32_t* panel = words + p * panel_width;
    for (std::int64_t first = 0; first < x.width; first += panel_width, panel += panel_words) {
      for (std::int64_t w = 0; w < panel_width; w += kWords) {
        const std::int64_t n = std::min(panel_width - w, x.width - first - w);
        std::uint32_t* to = panel + w;
        for (std::int64_t q = p; q < end; ++q, to += panel_width)
          _mm512_storeu_si512(to, n > 0 ? Words::across(x, first + w, q, n) : _mm512_setzero_si512());
      }
    }
  }
}

template <class Words>
void pack_any(const PanelSource& x, std::int64_t panel_width, std::uint32_t* words) {
  const std::int64_t depth = words_of<Words>(x);
  for (std::int64_t p = 0; p < depth; ++p)
    for (std::int64_t w = 0; w < panel_width; ++w)
      words[p * panel_width + w] = w < x.width ? Words::word(x, w, p) : 0;
}

template <class Words>
void pack(const PanelSource& source, std::int64_t panel_width, std::uint32_t* words,
          std::int64_t panel_words) {
  if (source.width_stride == 1 && source.depth > 1)
    return pack_across<Words>(source, panel_width, words, panel_words);
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(typename Words::Element));
  for (std::int64_t first = 0; first < source.width; first += panel_width, words += panel_words) {
    PanelSource panel = source;
    panel.data += first * source.width_stride * kSize;
    panel.width = std::min(panel_width, source.width - first);
    if (source.depth_stride == 1)
      pack_along<Words>(panel, panel_width, words);
    else
      pack_any<Words>(panel, panel_width, words);
  }
}

void pack_numbers(const PanelSource& source, std::int64_t panel_width, std::uint32_t* words,
                  std::int64_t panel_words) {
  if (source.type == DType::f32) return pack<Numbers<DType::f32>>(source, panel_width, words, panel_words);
  if (source.type == DType::f16) return pack<Numbers<DType::f16>>(source, panel_width, words, panel_words);
  pack<Numbers<DType::bf16>>(source, panel_width, words, panel_words);
}

/// Zeros behind the words of panels whose depth must be a multiple of that of a matrix.
void fill_depth(const PanelSource& x, std::int64_t panel_width, std::uint32_t* words,
                std::int64_t panel_words) {
  const std::int64_t depth = words_of<PairsOfBf16>(x);
  const std::int64_t missing = (kMatrixTileDepth - depth % kMatrixTileDepth) % kMatrixTileDepth;
  for (std::int64_t first = 0; first < x.width; first += panel_width, words += panel_words)
    std::fill_n(words + depth * panel_width, missing * panel_width, 0U);
}

void pack_matrix_columns(const PanelSource& source, std::int64_t panel_width, std::uint32_t* words,
                         std::int64_t panel_words) {
  pack<PairsOfBf16>(source, panel_width, words, panel_words);
  fill_depth(source, panel_width, words, panel_words);
}

/// Sixteen words of sixteen rows, of which those at `rows` and beyond are zeros.
HWY_INLINE void matrix_lines(const PanelSource& x, std::int64_t row, std::int64_t rows, std::int64_t word,
                             std::int64_t count, __m512i (&lines)[kWords]) {
  if (x.depth_stride == 1) {
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kWords; ++i)
      lines[i] = i < rows ? PairsOfBf16::line(x, row + i, word, count) : _mm512_setzero_si512();
  } else if (x.width_stride == 1) {
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kWords; ++i)
      lines[i] = i < count ? PairsOfBf16::across(x, row, word + i, rows) : _mm512_setzero_si512();
    turn_lines(lines);
  } else {
    alignas(64) std::uint32_t some[kWords][kWords] = {};
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t p = 0; p < count; ++p) some[i][p] = PairsOfBf16::word(x, row + i, word + p);
    for (std::int64_t i = 0; i < kWords; ++i) lines[i] = _mm512_load_si512(some[i]);
  }
}

/// words[p / 16][row][p % 16].
void pack_matrix_rows(const PanelSource& source, std::int64_t panel_width, std::uint32_t* words,
                      std::int64_t panel_words) {
  static_assert(kMatrixTileDepth == kWords && kMatrixTileRows % kWords == 0);
  const std::int64_t depth = words_of<PairsOfBf16>(source);
  for (std::int64_t first = 0; first < source.width; first += panel_width, words += panel_words) {
    for (std::int64_t w = 0; w < panel_width; w += kWords) {
      const std::int64_t rows = std::clamp<std::int64_t>(source.width - first - w, 0, kWords);
      for (std::int64_t p = 0; p < depth; p += kWords) {
        __m512i lines[kWords];
        if (rows > 0) matrix_lines(source, first + w, rows, p, std::min(kWords, depth - p), lines);
        std::uint32_t* to = words + p * panel_width + w * kWords;
#pragma GCC unroll 16
        for (std::int64_t i = 0; i < kWords; ++i)
          _mm512_storeu_si512(to + i * kWords, rows > 0 ? lines[i] : _mm512_setzero_si512());
      }
    }
  }
}

/// Words along the depth by which panels are asked for ahead. Intel's processors do not keep up with two
/// streams out of the L2 cache by themselves; AMD's do, and lose a tenth by it (docs/records/rejected.md).
HWY_INLINE std::int64_t words_ahead() {
  static const std::int64_t kAhead = __builtin_cpu_is("intel") != 0 ? 16 : 0;
  return kAhead;
}

/// Words from which a tile takes longer than its lines of C need to come.
constexpr std::int64_t kWorthAsking = 64;

/// Asks for the lines of C of a tile, which otherwise are waited for at its end.
template <int kRows, int kVectors>
HWY_INLINE void ask_for_tile(const PanelTile& tile) {
  const float* c = tile.c;
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r, c += tile.c_row)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(c + v * kWords, 1);
}

template <class Words, int kRows, int kVectors>
void multiply_tile(std::int64_t depth, const std::uint32_t* a, const std::uint32_t* b,
                   const PanelTile& tile) {
  if (depth >= kWorthAsking) ask_for_tile<kRows, kVectors>(tile);
  const std::int64_t ahead = words_ahead();
  const std::uint32_t *next_a = a + ahead * kTileRows, *next_b = b + ahead * kTileColumns;
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 14
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  for (std::int64_t p = 0; p < depth;
       ++p, a += kTileRows, next_a += kTileRows, b += kTileColumns, next_b += kTileColumns) {
    __builtin_prefetch(next_a);
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(next_b + v * kWords);
    __m512i columns[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) columns[v] = _mm512_loadu_si512(b + v * kWords);
#pragma GCC unroll 14
    for (int r = 0; r < kRows; ++r) {
      const __m512i row = _mm512_set1_epi32(static_cast<int>(a[r]));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) Words::add(sums[r][v], row, columns[v]);
    }
  }
  __mmask16 stored[kVectors];
  for (int v = 0; v < kVectors; ++v) stored[v] = first_words(tile.columns - v * kWords);
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

using TileFn = void (*)(std::int64_t, const std::uint32_t*, const std::uint32_t*, const PanelTile&);

template <class Words, int kVectors, int... kRows>
constexpr std::array<TileFn, sizeof...(kRows)> tiles_of(std::integer_sequence<int, kRows...>) {
  return {multiply_tile<Words, kRows + 1, kVectors>...};
}

template <class Words>
void multiply(std::int64_t depth, const std::uint32_t* a, const std::uint32_t* b, const PanelTile& tile) {
  using Rows = std::make_integer_sequence<int, static_cast<int>(kTileRows)>;
  static constexpr auto kNarrow = tiles_of<Words, 1>(Rows());
  static constexpr auto kWide = tiles_of<Words, 2>(Rows());
  const auto row = static_cast<std::size_t>(tile.rows - 1);
  (tile.columns <= kWords ? kNarrow : kWide)[row](depth, a, b, tile);
}

#endif

constexpr double kNanosecondsOfWords = 0.017, kNanosecondsOfMatrixWords = 0.002;

const PanelTiles* f32_tiles() {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  static constexpr PanelTiles kTiles{.rows = kTileRows,
                                     .columns = kTileColumns,
                                     .nanoseconds_of_word = kNanosecondsOfWords,
                                     .pack_rows = pack_numbers,
                                     .pack_columns = pack_numbers,
                                     .multiply = multiply<Numbers<DType::f32>>};
  return &kTiles;
#else
  return nullptr;
#endif
}

const PanelTiles* bf16_pair_tiles() {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  static constexpr PanelTiles kTiles{.rows = kTileRows,
                                     .columns = kTileColumns,
                                     .terms_of_word = PairsOfBf16::kTerms,
                                     .nanoseconds_of_word = kNanosecondsOfWords,
                                     .pack_rows = pack<PairsOfBf16>,
                                     .pack_columns = pack<PairsOfBf16>,
                                     .multiply = multiply<PairsOfBf16>};
  if (__builtin_cpu_supports("avx512bf16")) return &kTiles;
#endif
  return nullptr;
}

const PanelTiles* bf16_tiles() {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  static constexpr PanelTiles kTiles{.rows = kMatrixTileRows,
                                     .columns = kMatrixTileColumns,
                                     .terms_of_word = PairsOfBf16::kTerms,
                                     .depth_step = kMatrixTileDepth,
                                     .nanoseconds_of_word = kNanosecondsOfMatrixWords,
                                     .pack_rows = pack_matrix_rows,
                                     .pack_columns = pack_matrix_columns,
                                     .multiply = multiply_matrix_tile,
                                     .take = take_matrix_tiles,
                                     .release = release_matrix_tiles};
  if (has_matrix_tiles()) return &kTiles;
#endif
  return bf16_pair_tiles();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(f32_tiles);
HWY_EXPORT(bf16_tiles);
HWY_EXPORT(bf16_pair_tiles);

const PanelTiles* find_f32_tiles() { return HWY_DYNAMIC_DISPATCH(f32_tiles)(); }
const PanelTiles* find_bf16_tiles() { return HWY_DYNAMIC_DISPATCH(bf16_tiles)(); }
const PanelTiles* find_bf16_pair_tiles() { return HWY_DYNAMIC_DISPATCH(bf16_pair_tiles)(); }

}  // namespace caldera::cpu
#endif
