// Sixteen interleaved rows (engine/tensor/interleaved_rows.h): each vector has four columns of all of them,
// so that dots of rows need no sum across lanes. Included once for every instruction set, after
// integer_panels-inl.h; empty without CALDERA_HAS_BYTE_DOTS.
#if defined(CALDERA_INTERLEAVED_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_INTERLEAVED_ROWS_INL
#undef CALDERA_INTERLEAVED_ROWS_INL
#else
#define CALDERA_INTERLEAVED_ROWS_INL
#endif

#include "engine/device/cpu/quantized/integer_panels-inl.h"
#include "engine/tensor/interleaved_rows.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {

#if CALDERA_HAS_BYTE_DOTS

static_assert(kInterleavedRows == kPanelRows);

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
HWY_INLINE __m128i low_bits(__m128i v, int shift, int mask) {
  return _mm_and_si128(_mm_srli_epi16(v, shift), _mm_set1_epi8(static_cast<char>(mask)));
}
HWY_INLINE __m512 floats_of_bytes(__m128i bytes) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)); }
/// Takes the low nibbles of four vectors, then the high ones.
HWY_INLINE void nibbles_apart(const std::uint8_t* p, __m512i* out) {
  each<4>([&](auto u) __attribute__((always_inline)) {
    ask_ahead(p + 64 * u);
    const __m512i v = load_sixteen(p + 64 * u);
    out[u] = low_bits(v, 0, 15);
    out[u + 4] = low_bits(v, 4, 15);
  });
}
HWY_INLINE void look_up(__m128i table, __m512i* codes) {
  const __m512i values = _mm512_broadcast_i32x4(table);
  each<8>([&](auto j) __attribute__((always_inline)) { codes[j] = _mm512_shuffle_epi8(values, codes[j]); });
}

/// Says where a block of 32 columns is, whose blocks have kBytes a row: its chunk, and how many blocks that
/// has.
template <std::int64_t kBytes>
struct PlaceInChunk {
  const std::uint8_t* chunk;
  std::int64_t block, blocks;

  HWY_INLINE PlaceInChunk(const std::uint8_t* p, std::int64_t columns, std::int64_t b)
      : chunk(p + b / kChunkBlocks * (kChunkBlocks * kPanelRows * kBytes)),
        block(b % kChunkBlocks),
        blocks(std::min<std::int64_t>(columns / kRoundedBlock - b / kChunkBlocks * kChunkBlocks,
                                      kChunkBlocks)) {}
  /// Returns where what sixteen rows have `kOwn` bytes of, after `kBefore` bytes of each block, is.
  template <std::int64_t kBefore, std::int64_t kOwn>
  HWY_INLINE const std::uint8_t* at() const {
    return chunk + kPanelRows * (kBefore * blocks + kOwn * block);
  }
};

/// Reads block `b`, of 32 columns, of rows that have `columns`: one function a format that is interleaved.
/// Codes have the offset of panels.
HWY_INLINE void read_sixteen(CodesQ40 /*format*/, const std::uint8_t* p, std::int64_t columns, std::int64_t b,
                             SixteenRows& out) {
  const PlaceInChunk<18> place(p, columns, b);
  nibbles_apart(place.at<0, 16>(), out.codes);
  out.scales[0] = load_halves(place.at<16, 2>());
}

HWY_INLINE void read_sixteen(CodesQ41 /*format*/, const std::uint8_t* p, std::int64_t columns, std::int64_t b,
                             SixteenRows& out) {
  const PlaceInChunk<20> place(p, columns, b);
  nibbles_apart(place.at<0, 16>(), out.codes);
  out.scales[0] = load_halves(place.at<16, 2>());
  out.biases[0] = load_halves(place.at<18, 2>());
}

HWY_INLINE void read_sixteen(CodesQ80 /*format*/, const std::uint8_t* p, std::int64_t columns, std::int64_t b,
                             SixteenRows& out) {
  const PlaceInChunk<34> place(p, columns, b);
  const std::uint8_t* codes = place.at<0, 32>();
  each<8>([&](auto j) __attribute__((always_inline)) {
    ask_ahead(codes + 64 * j);
    out.codes[j] = _mm512_xor_si512(load_sixteen(codes + 64 * j), _mm512_set1_epi8(-128));
  });
  out.scales[0] = load_halves(place.at<32, 2>());
}

HWY_INLINE void read_sixteen(CodesIq4 /*format*/, const std::uint8_t* p, std::int64_t columns, std::int64_t b,
                             SixteenRows& out) {
  read_sixteen(CodesQ40(), p, columns, b, out);
  const __m128i table = load_bytes(reinterpret_cast<const std::uint8_t*>(kIq4));
  look_up(_mm_xor_si128(table, _mm_set1_epi8(-128)), out.codes);
}

HWY_INLINE void read_sixteen(CodesMxfp4 /*format*/, const std::uint8_t* p, std::int64_t columns,
                             std::int64_t b, SixteenRows& out) {
  const PlaceInChunk<17> place(p, columns, b);
  nibbles_apart(place.at<0, 16>(), out.codes);
  look_up(load_bytes(reinterpret_cast<const std::uint8_t*>(kE2m1AndSixteen)), out.codes);
  // Half of 2^(e - 127), as CodesMxfp4 has it.
  const __m512i exponent = _mm512_cvtepu8_epi32(load_bytes(place.at<16, 1>()));
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(exponent, _mm512_set1_epi32(1)), 23);
  const __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), exponent);
  const __mmask16 is_tiny = _mm512_cmplt_epi32_mask(exponent, _mm512_set1_epi32(2));
  out.scales[0] = _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, is_tiny, tiny));
}

template <bool kHasFifth>
HWY_INLINE void read_sixteen(CodesQ45K<kHasFifth> /*format*/, const std::uint8_t* p, std::int64_t /*columns*/,
                             std::int64_t b, SixteenRows& out) {
  const int i = static_cast<int>(b % 8);
  p += b / 8 * kPanelRows * CodesQ45K<kHasFifth>::kBytes;
  const std::uint8_t* nibbles = p + 512 * (i / 2);
  each<8>([&](auto j) __attribute__((always_inline)) {
    if (i % 2 == 0) ask_ahead(nibbles + 64 * j);
    out.codes[j] = low_bits(load_sixteen(nibbles + 64 * j), static_cast<unsigned>(i % 2 * 4), 15);
  });
  const std::uint8_t* rest = p + 2048;
  if constexpr (kHasFifth) {
    each<8>([&](auto j) __attribute__((always_inline)) {
      const __m512i bit = low_bits(load_sixteen(rest + 64 * j), static_cast<unsigned>(i), 1);
      out.codes[j] = _mm512_or_si512(out.codes[j], _mm512_slli_epi16(bit, 4));
    });
    rest += 512;
  }
  const auto six = [q = rest + 64](int at) { return load_bytes(q + 16 * at); };
  const __m128i scale = i < 4 ? low_bits(six(i), 0, 63)
                              : _mm_or_si128(low_bits(six(i + 4), 0, 15), low_bits(six(i - 4), 2, 48));
  const __m128i min = i < 4 ? low_bits(six(i + 4), 0, 63)
                            : _mm_or_si128(low_bits(six(i + 4), 4, 15), low_bits(six(i), 2, 48));
  out.scales[0] = _mm512_mul_ps(load_halves(rest), floats_of_bytes(scale));
  out.biases[0] = _mm512_fnmadd_ps(load_halves(rest + 32), floats_of_bytes(min), _mm512_setzero_ps());
}

HWY_INLINE void read_sixteen(CodesQ6K /*format*/, const std::uint8_t* p, std::int64_t /*columns*/,
                             std::int64_t b, SixteenRows& out) {
  const int i = static_cast<int>(b % 8), n = i / 4, k = i % 4;
  p += b / 8 * kPanelRows * 210;
  const std::uint8_t* low = p + 1024 * n + 512 * (k % 2);
  const std::uint8_t* high = p + 2048 + 512 * n;
  each<8>([&](auto j) __attribute__((always_inline)) {
    ask_ahead((k < 2 ? low : high) + 64 * j);
    const __m512i four = low_bits(load_sixteen(low + 64 * j), static_cast<unsigned>(k / 2 * 4), 15);
    const __m512i two = low_bits(load_sixteen(high + 64 * j), static_cast<unsigned>(k * 2), 3);
    out.codes[j] = _mm512_or_si512(four, _mm512_slli_epi16(two, 4));
  });
  const __m512 d = load_halves(p + 3072);
  const std::uint8_t* scales = p + 3104 + 32 * i;
  each<2>([&](auto s) __attribute__((always_inline)) {
    const __m512i scale = _mm512_cvtepi8_epi32(load_bytes(scales + 16 * s));
    out.scales[s] = _mm512_mul_ps(d, _mm512_cvtepi32_ps(scale));
  });
}

template <class Format>
concept IsInterleaved = requires(Format format, const std::uint8_t* p, SixteenRows& out) {
  read_sixteen(format, p, 0, 0, out);
};

/// Sixteen rows times kRows rows of x.
template <class Format, int kRows>
void dot_sixteen(const std::uint8_t* rows, const RoundedRows& x, float* out, std::int64_t out_stride) {
  constexpr int kScales = Format::kScales, kEach = 8 / kScales;
  const std::int64_t blocks = x.blocks();
  __m512 sums[kRows];
  for (auto& sum : sums) sum = _mm512_setzero_ps();
  for (std::int64_t b = 0; b < blocks; ++b) {
    SixteenRows sixteen;
    read_sixteen(Format(), rows, x.columns, b, sixteen);
    each<kRows>([&](auto r) __attribute__((always_inline)) {
      const std::int64_t at = r * blocks + b;
      const std::int8_t* codes = x.codes + at * kRoundedBlock;
      const __m512 x_scale = _mm512_set1_ps(x.scales[at]);
      each<kScales>([&](auto s) __attribute__((always_inline)) {
        __m512i dots = _mm512_setzero_si512();
        if constexpr (kPanelOffset<Format> != 0)
          dots = _mm512_set1_epi32(kPanelOffset<Format> *
                                   (kScales == 1 ? x.minus[at] : x.half_minus[2 * at + s]));
        each<kEach>([&](auto j) __attribute__((always_inline)) {
          add_fours(dots, sixteen.codes[s * kEach + j], codes + 4 * (s * kEach + j));
        });
        const __m512 scaled = _mm512_mul_ps(_mm512_cvtepi32_ps(dots), sixteen.scales[s]);
        sums[r] = _mm512_fmadd_ps(scaled, x_scale, sums[r]);
        if constexpr (Format::kHasBias) {
          const float sum = kScales == 1 ? x.sums[at] : x.half_sums[2 * at + s];
          sums[r] = _mm512_fmadd_ps(sixteen.biases[s], _mm512_set1_ps(sum), sums[r]);
        }
      });
    });
  }
  each<kRows>([&](auto r)
                  __attribute__((always_inline)) { _mm512_storeu_ps(out + r * out_stride, sums[r]); });
}

/// Calls body(format) with the struct of an interleaved format.
template <class Body>
HWY_INLINE void with_interleaved(QuantizedFormat format, const Body& body) {
  with_codes_of(format, [&](auto codes) {
    if constexpr (IsInterleaved<decltype(codes)>) body(codes);
  });
}

inline void dot_interleaved(QuantizedFormat format, const std::byte* rows, const RoundedRows& x,
                            std::int64_t m, float* out, std::int64_t out_stride) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(rows);
  with_interleaved(format, [&](auto codes) {
    using Format = decltype(codes);
    std::int64_t i = 0;
    const auto take = [&](auto together) {
      for (; i + together <= m; i += together)
        dot_sixteen<Format, together>(p, x.from(i), out + i * out_stride, out_stride);
    };
    take(std::integral_constant<int, 4>());
    take(std::integral_constant<int, 2>());
    take(std::integral_constant<int, 1>());
  });
}

inline void pack_interleaved(QuantizedFormat format, const std::byte* rows, std::int64_t columns,
                             std::byte* panel) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(rows);
  auto* out = reinterpret_cast<PanelBlock*>(panel);
  with_interleaved(format, [&](auto codes) {
    using Format = decltype(codes);
    for (std::int64_t b = 0; b < columns / kRoundedBlock; ++b, ++out) {
      SixteenRows sixteen;
      read_sixteen(Format(), p, columns, b, sixteen);
      for (int j = 0; j < 8; ++j) _mm512_store_si512(out->codes[j], sixteen.codes[j]);
      for (int s = 0; s < Format::kScales; ++s) {
        _mm512_store_ps(out->scales[s], sixteen.scales[s]);
        if constexpr (Format::kHasBias) _mm512_store_ps(out->biases[s], sixteen.biases[s]);
      }
    }
  });
}

#endif  // CALDERA_HAS_BYTE_DOTS

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();
#endif  // CALDERA_INTERLEAVED_ROWS_INL
