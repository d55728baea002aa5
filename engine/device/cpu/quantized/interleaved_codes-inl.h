// Codes and scales of sixteen interleaved rows (engine/tensor/interleaved_rows.h): each vector has four
// columns of all of them. Included once for every instruction set, after integer_panels-inl.h; empty without
// CALDERA_HAS_BYTE_DOTS.
#if defined(CALDERA_INTERLEAVED_CODES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_INTERLEAVED_CODES_INL
#undef CALDERA_INTERLEAVED_CODES_INL
#else
#define CALDERA_INTERLEAVED_CODES_INL
#endif

#include "engine/device/cpu/quantized/integer_panels-inl.h"
#include "engine/tensor/interleaved_rows.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {

#if CALDERA_HAS_BYTE_DOTS

/// Holds 32 columns of sixteen rows: codes as those of a PanelBlock, four columns a vector.
struct SixteenRows {
  __m512i codes[8];
  __m512 scales[2], biases[2];
};

HWY_INLINE __m512i load_sixteen(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
/// A byte of each row.
HWY_INLINE __m128i load_bytes(const std::uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
/// An f16 of each row.
HWY_INLINE __m512 load_halves(const std::uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
HWY_INLINE __m512i low_bits(__m512i v, unsigned shift, int mask) {
  return _mm512_and_si512(_mm512_srl_epi16(v, _mm_cvtsi32_si128(static_cast<int>(shift))),
                          _mm512_set1_epi8(static_cast<char>(mask)));
}
/// The bits of `mask` in every byte.
HWY_INLINE __m512i masked(__m512i v, int mask) {
  return _mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(mask)));
}
/// a, and those bits of b that `mask` has.
HWY_INLINE __m512i with_bits(__m512i a, __m512i b, int mask) {
  return _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi8(static_cast<char>(mask)), 0xF8);
}
/// Takes the low nibbles of four vectors, then the high ones.
HWY_INLINE void nibbles_apart(const std::uint8_t* p, __m512i* out) {
  each<4>([&](auto u) __attribute__((always_inline)) {
    const __m512i v = load_sixteen(p + 64 * u);
    out[u] = masked(v, 15);
    out[u + 4] = masked(_mm512_srli_epi16(v, 4), 15);
  });
}
/// Bytes whose bits are moved up, or down; those of a byte's neighbour come in.
template <int kUp>
HWY_INLINE __m512i shifted(__m512i v) {
  if constexpr (kUp >= 0)
    return _mm512_slli_epi16(v, kUp);
  else
    return _mm512_srli_epi16(v, -kUp);
}
HWY_INLINE void look_up(__m128i table, __m512i* codes) {
  const __m512i values = _mm512_broadcast_i32x4(table);
  each<8>([&](auto j) __attribute__((always_inline)) { codes[j] = _mm512_shuffle_epi8(values, codes[j]); });
}

/// Says where a block of 32 columns is: in which chunk, and how many blocks that has.
struct PlaceInChunk {
  const std::uint8_t* chunk;
  std::int64_t block, blocks;

  /// Returns where what sixteen rows have `kOwn` bytes of, after `kBefore` bytes of each block, is.
  template <std::int64_t kBefore, std::int64_t kOwn>
  HWY_INLINE const std::uint8_t* at() const {
    return chunk + kPanelRows * (kBefore * blocks + kOwn * block);
  }
};

// Formats of 32 columns a block. Each has read_codes, with the offset of panels, read_scale, and read_bias
// where it has biases.

HWY_INLINE void read_codes(CodesQ40 /*format*/, const PlaceInChunk& place, __m512i* codes) {
  nibbles_apart(place.at<2, 16>(), codes);
}
HWY_INLINE __m512 read_scale(CodesQ40 /*format*/, const PlaceInChunk& place) {
  return load_halves(place.at<0, 2>());
}

HWY_INLINE void read_codes(CodesQ41 /*format*/, const PlaceInChunk& place, __m512i* codes) {
  nibbles_apart(place.at<4, 16>(), codes);
}
HWY_INLINE __m512 read_scale(CodesQ41 /*format*/, const PlaceInChunk& place) {
  return load_halves(place.at<0, 2>());
}
HWY_INLINE __m512 read_bias(CodesQ41 /*format*/, const PlaceInChunk& place) {
  return load_halves(place.at<2, 2>());
}

HWY_INLINE void read_codes(CodesQ80 /*format*/, const PlaceInChunk& place, __m512i* codes) {
  const std::uint8_t* p = place.at<2, 32>();
  each<8>([&](auto j) __attribute__((always_inline)) {
    codes[j] = _mm512_xor_si512(load_sixteen(p + 64 * j), _mm512_set1_epi8(-128));
  });
}
HWY_INLINE __m512 read_scale(CodesQ80 /*format*/, const PlaceInChunk& place) {
  return load_halves(place.at<0, 2>());
}

HWY_INLINE void read_codes(CodesIq4 /*format*/, const PlaceInChunk& place, __m512i* codes) {
  read_codes(CodesQ40(), place, codes);
  const __m128i table = load_bytes(reinterpret_cast<const std::uint8_t*>(kIq4));
  look_up(_mm_xor_si128(table, _mm_set1_epi8(-128)), codes);
}
HWY_INLINE __m512 read_scale(CodesIq4 /*format*/, const PlaceInChunk& place) {
  return read_scale(CodesQ40(), place);
}

HWY_INLINE void read_codes(CodesMxfp4 /*format*/, const PlaceInChunk& place, __m512i* codes) {
  nibbles_apart(place.at<1, 16>(), codes);
  look_up(load_bytes(reinterpret_cast<const std::uint8_t*>(kE2m1AndSixteen)), codes);
}
/// Half of 2^(e - 127), as CodesMxfp4 has it.
HWY_INLINE __m512 read_scale(CodesMxfp4 /*format*/, const PlaceInChunk& place) {
  const __m512i exponent = _mm512_cvtepu8_epi32(load_bytes(place.at<0, 1>()));
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(exponent, _mm512_set1_epi32(1)), 23);
  const __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), exponent);
  const __mmask16 is_tiny = _mm512_cmplt_epi32_mask(exponent, _mm512_set1_epi32(2));
  return _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, is_tiny, tiny));
}

template <class Format>
concept HasSmallBlocks = requires(const PlaceInChunk& place) {
  read_scale(Format(), place);
};

/// Reads block `b` of rows that have `columns`.
template <HasSmallBlocks Format>
HWY_INLINE void read_sixteen(Format format, const std::uint8_t* p, std::int64_t columns, std::int64_t b,
                             SixteenRows& out) {
  const std::int64_t first = b / kChunkBlocks * kChunkBlocks;
  const PlaceInChunk place{p + first * kPanelRows * Format::kBytes, b - first,
                           std::min<std::int64_t>(columns / kRoundedBlock - first, kChunkBlocks)};
  read_codes(format, place, out.codes);
  out.scales[0] = read_scale(format, place);
  if constexpr (Format::kHasBias) out.biases[0] = read_bias(format, place);
}

// Formats of 256 columns a block, which are read for eight blocks of 32.

/// Scales of eight blocks of sixteen rows, and the other six bits, as floats: those of SixBitCodes.
HWY_INLINE void six_bits_apart(const std::uint8_t* p, __m512* low, __m512* high) {
  const auto at = [p](int i) { return _mm512_cvtepu8_epi32(load_bytes(p + 16 * i)); };
  const __m512i six = _mm512_set1_epi32(63), four = _mm512_set1_epi32(15), top = _mm512_set1_epi32(48);
  each<4>([&](auto i) __attribute__((always_inline)) {
    const __m512i a = at(i), b = at(i + 4), c = at(i + 8);
    low[i] = _mm512_cvtepi32_ps(_mm512_and_si512(a, six));
    high[i] = _mm512_cvtepi32_ps(_mm512_and_si512(b, six));
    low[i + 4] = _mm512_cvtepi32_ps(
        _mm512_ternarylogic_epi32(_mm512_and_si512(c, four), _mm512_srli_epi32(a, 2), top, 0xF8));
    high[i + 4] = _mm512_cvtepi32_ps(
        _mm512_ternarylogic_epi32(_mm512_srli_epi32(c, 4), _mm512_srli_epi32(b, 2), top, 0xF8));
  });
}

/// Says where the parts of a large block of sixteen rows are.
template <bool kHasFifth>
struct PartsOfQ45K {
  static constexpr std::int64_t kBytes = kPanelRows * CodesQ45K<kHasFifth>::kBytes, kCodes = kBytes - 256;
  const std::uint8_t* p;

  /// Finds those of large block `b` of rows that have `blocks` of them.
  HWY_INLINE PartsOfQ45K(const std::uint8_t* rows, std::int64_t /*blocks*/, std::int64_t b)
      : p(rows + b * kBytes) {}

  HWY_INLINE __m512 d() const { return load_halves(p); }
  HWY_INLINE __m512 d_min() const { return load_halves(p + 32); }
  HWY_INLINE const std::uint8_t* six_bits() const { return p + 64; }
  /// Fifth bits are between the nibbles of the first pair of blocks.
  HWY_INLINE __m512i fifth(int j) const { return load_sixteen(p + 256 + 128 * j + 64); }
  /// Reads those of blocks 2 `pair` and 2 `pair` + 1.
  HWY_INLINE __m512i nibbles(int pair, int j) const {
    const int apart = kHasFifth && pair == 0 ? 128 : 64, before = kHasFifth && pair > 0 ? 512 : 0;
    return load_sixteen(p + 256 + before + 512 * pair + apart * j);
  }
};

struct PartsOfQ6K {
  /// Bytes of a chunk; scales of blocks are behind the last one.
  static constexpr std::int64_t kBytes = kPanelRows * 208;
  const std::uint8_t *p, *scales;

  HWY_INLINE PartsOfQ6K(const std::uint8_t* rows, std::int64_t blocks, std::int64_t b)
      : p(rows + b * kBytes), scales(rows + blocks * kBytes + 2 * kPanelRows * b) {}

  /// Asks for the scales of the sixteen rows that follow: they are beside the stream of chunks.
  static HWY_INLINE void ask_for_scales(const std::uint8_t* rows, std::int64_t blocks) {
    const std::uint8_t* next = rows + blocks * (2 * kBytes + 2 * kPanelRows);
    for (std::int64_t at = 0; at < blocks * 2 * kPanelRows; at += 64) __builtin_prefetch(next + at, 0, 2);
  }

  HWY_INLINE __m512 d() const { return load_halves(scales); }
  /// Reads that of half `half` of block `block`.
  HWY_INLINE __m512 scale(int block, int half) const {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_bytes(p + 32 * block + 16 * half)));
  }
  /// Vector u of half `half` of each of the blocks from 4 n on: low nibbles are those of block `block` % 2,
  /// high ones of the block two on.
  HWY_INLINE __m512i nibbles(int n, int half, int block, int u) const {
    return load_sixteen(p + 256 + 768 * (2 * n + half) + 192 * u + 64 * (block % 2));
  }
  HWY_INLINE __m512i pairs(int n, int half, int u) const {
    return load_sixteen(p + 256 + 768 * (2 * n + half) + 192 * u + 128);
  }
};

template <bool kHasFifth>
HWY_INLINE void read_sixteen(CodesQ45K<kHasFifth> /*format*/, const std::uint8_t* p, std::int64_t columns,
                             std::int64_t b, SixteenRows& out) {
  const int i = static_cast<int>(b % 8);
  const PartsOfQ45K<kHasFifth> parts(p, columns / kInterleavedColumns, b / 8);
  each<8>([&](auto j) __attribute__((always_inline)) {
    out.codes[j] = low_bits(parts.nibbles(i / 2, j), static_cast<unsigned>(i % 2 * 4), 15);
    if constexpr (kHasFifth) {
      const __m512i bit = low_bits(parts.fifth(j), static_cast<unsigned>(i), 1);
      out.codes[j] = _mm512_or_si512(out.codes[j], _mm512_slli_epi16(bit, 4));
    }
  });
  __m512 scales[8], mins[8];
  six_bits_apart(parts.six_bits(), scales, mins);
  out.scales[0] = _mm512_mul_ps(parts.d(), scales[i]);
  out.biases[0] = _mm512_fnmadd_ps(parts.d_min(), mins[i], _mm512_setzero_ps());
}

HWY_INLINE void read_sixteen(CodesQ6K /*format*/, const std::uint8_t* p, std::int64_t columns, std::int64_t b,
                             SixteenRows& out) {
  const int i = static_cast<int>(b % 8), n = i / 4, k = i % 4;
  const PartsOfQ6K parts(p, columns / kInterleavedColumns, b / 8);
  each<8>([&](auto j) __attribute__((always_inline)) {
    const __m512i four = low_bits(parts.nibbles(n, j / 4, k, j % 4), static_cast<unsigned>(k / 2 * 4), 15);
    const __m512i two = low_bits(parts.pairs(n, j / 4, j % 4), static_cast<unsigned>(k * 2), 3);
    out.codes[j] = _mm512_or_si512(four, _mm512_slli_epi16(two, 4));
  });
  each<2>([&](auto s) __attribute__((always_inline)) {
    out.scales[s] = _mm512_mul_ps(parts.d(), parts.scale(i, s));
  });
}

#endif  // CALDERA_HAS_BYTE_DOTS

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();
#endif  // CALDERA_INTERLEAVED_CODES_INL
