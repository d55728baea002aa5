// Few rows of x: dot products with codes as they are decoded. Included once for every instruction set, after
// integer_codes-inl.h.
#if defined(CALDERA_INTEGER_DOTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_INTEGER_DOTS_INL
#undef CALDERA_INTEGER_DOTS_INL
#else
#define CALDERA_INTEGER_DOTS_INL
#endif

#include <utility>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {

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
void dot(const QuantizedLayout& layout, const QuantizedRow* rows, std::int64_t count, const RoundedRows& x,
         std::int64_t m, float* out, std::int64_t out_stride) {
  with_codes_of(layout.format, [&](auto format) {
    using Format = decltype(format);
    std::int64_t i = 0;
    const auto take = [&](auto together) {
      for (; i + together <= m; i += together)
        for (std::int64_t n = 0; n < count; ++n)
          dot_rows<Format, kByteDots, together>({rows + n, 0, layout.group, kChunkBlocks}, x.columns,
                                                x.from(i), out + i * out_stride + n, out_stride);
    };
    // Old instruction sets go without variants, which cost time to compile.
    if constexpr (CALDERA_HAS_BYTE_VECTORS) take(std::integral_constant<int, 4>());
    if constexpr (kByteDots) take(std::integral_constant<int, 2>());
    take(std::integral_constant<int, 1>());
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();
#endif  // CALDERA_INTEGER_DOTS_INL
