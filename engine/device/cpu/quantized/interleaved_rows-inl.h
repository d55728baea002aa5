// Sixteen interleaved rows (engine/tensor/interleaved_rows.h): each vector has four columns of all of them,
// so that dots of rows need no sum across lanes. Included once for every instruction set, after
// interleaved_codes-inl.h; empty without CALDERA_HAS_BYTE_DOTS.
#if defined(CALDERA_INTERLEAVED_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_INTERLEAVED_ROWS_INL
#undef CALDERA_INTERLEAVED_ROWS_INL
#else
#define CALDERA_INTERLEAVED_ROWS_INL
#endif

#include "engine/device/cpu/quantized/interleaved_codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {

#if CALDERA_HAS_BYTE_DOTS

static_assert(kInterleavedRows == kPanelRows);

template <class Format>
concept IsInterleaved = requires(Format format, const std::uint8_t* p, SixteenRows& out) {
  read_sixteen(format, p, 0, 0, out);
};

/// Bytes further ahead that are asked for than kAhead says, where kRows rows of x share what is read: with
/// four the processor's own look-ahead falls behind (rows of 768: 10 to 12 GB/s, 14 to 19 with this).
template <int kRows>
inline constexpr std::int64_t kFarther = kRows < 4 ? 0 : 5120;

/// Asks for kBytes bytes ahead, in memory's order: whichever order they are read in later, none may be
/// missing.
template <std::int64_t kBytes>
HWY_INLINE void ask_ahead_in_order(const std::uint8_t* p) {
  each<(kBytes + 63) / 64>([&](auto line) __attribute__((always_inline)) { ask_ahead(p + 64 * line); });
}

/// Starts sums of products with codes that are 2^kLog more than they stand for: `minus` is the sum of the
/// codes of x with the other sign.
template <int kLog>
HWY_INLINE __m512i start_at(std::int32_t minus) {
  return _mm512_slli_epi32(_mm512_set1_epi32(minus), kLog);
}

/// Adds 32 columns of sixteen rows, whose codes are in registers, times a block of x.
template <class Format>
HWY_INLINE __m512 dots_of(const __m512i* codes, const RoundedRows& x, std::int64_t block) {
  constexpr unsigned kOffset = kPanelOffset<Format>;
  __m512i dots = _mm512_setzero_si512();
  if constexpr (kOffset != 0) {
    static_assert(std::has_single_bit(kOffset));
    dots = start_at<std::countr_zero(kOffset)>(x.minus[block]);
  }
  each<8>([&](auto j) __attribute__((always_inline)) {
    add_fours(dots, codes[j], x.codes + block * kRoundedBlock + 4 * j);
  });
  return _mm512_cvtepi32_ps(dots);
}

/// A chunk of sixteen rows times kRows rows of x. A whole one has kChunkBlocks blocks.
template <class Format, int kRows, bool kIsWhole>
HWY_INLINE void add_small(const std::uint8_t* p, const RoundedRows& x, std::int64_t first,
                          __m512 (&sums)[kRows]) {
  const std::int64_t blocks = kIsWhole ? kChunkBlocks : x.blocks() - first;
  constexpr std::int64_t kBytes = kPanelRows * Format::kBytes;
  __m512 scales[kChunkBlocks], biases[kChunkBlocks];
  const auto read = [&](auto b) __attribute__((always_inline)) {
    const PlaceInChunk place{p, b, blocks};
    scales[b] = read_scale(Format(), place);
    if constexpr (Format::kHasBias) biases[b] = read_bias(Format(), place);
  };
  const auto add = [&](auto b) __attribute__((always_inline)) {
    ask_ahead_in_order<kBytes>(p + b * kBytes + kFarther<kRows>);
    __m512i codes[8];
    read_codes(Format(), PlaceInChunk{p, b, blocks}, codes);
    each<kRows>([&](auto r) __attribute__((always_inline)) {
      const std::int64_t at = r * x.blocks() + first + b;
      const __m512 scaled = _mm512_mul_ps(dots_of<Format>(codes, x, at), scales[b]);
      sums[r] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(x.scales[at]), sums[r]);
      if constexpr (Format::kHasBias)
        sums[r] = _mm512_fmadd_ps(biases[b], _mm512_set1_ps(x.sums[at]), sums[r]);
    });
  };
  if constexpr (kIsWhole) {
    each<kChunkBlocks>(read);
    each<kChunkBlocks>(add);
  } else {
    for (int b = 0; b < blocks; ++b) read(b);
    for (int b = 0; b < blocks; ++b) add(b);
  }
}

/// A large block of sixteen rows times kRows rows of x: each vector of codes is read once, and taken apart
/// for the blocks that it has codes of. Blocks are added up before they are scaled by what they have in
/// common.
template <bool kHasFifth>
struct LargeQ45K {
  using Parts = PartsOfQ45K<kHasFifth>;
  static constexpr int kMostRows = 4;

  /// Codes of the blocks 2 kPair and 2 kPair + 1.
  template <int kPair>
  static HWY_INLINE void read(const Parts& parts, int j, __m512i& low, __m512i& high) {
    const __m512i both = parts.nibbles(kPair, j);
    low = masked(both, 15);
    high = masked(_mm512_srli_epi16(both, 4), 15);
    if constexpr (kHasFifth) {
      const __m512i bits = parts.fifth(j);
      low = with_bits(low, shifted<4 - 2 * kPair>(bits), 16);
      high = with_bits(high, shifted<3 - 2 * kPair>(bits), 16);
    }
  }

  template <int kRows>
  static HWY_INLINE void add(const Parts& parts, const RoundedRows& x, std::int64_t first,
                             __m512 (&sums)[kRows]) {
    __m512 scales[8], mins[8], scaled[kRows], biased[kRows];
    six_bits_apart(parts.six_bits(), scales, mins);
    for (int r = 0; r < kRows; ++r) scaled[r] = biased[r] = _mm512_setzero_ps();
    each<4>([&](auto pair) __attribute__((always_inline)) {
      ask_ahead(parts.p + 64 * pair + kFarther<kRows>);
      __m512i dots[2][kRows];
      for (int r = 0; r < kRows; ++r) dots[0][r] = dots[1][r] = _mm512_setzero_si512();
      each<8>([&](auto j) __attribute__((always_inline)) {
        __m512i low, high;
        ask_ahead_in_order<Parts::kCodes / 32>(parts.p + 256 + Parts::kCodes / 32 * (8 * pair + j) +
                                               kFarther<kRows>);
        read<pair>(parts, j, low, high);
        each<kRows>([&](auto r) __attribute__((always_inline)) {
          const std::int8_t* codes = x.codes + r * x.columns + (first + 2 * pair) * kRoundedBlock + 4 * j;
          add_fours(dots[0][r], low, codes);
          add_fours(dots[1][r], high, codes + kRoundedBlock);
        });
      });
      each<kRows>([&](auto r) __attribute__((always_inline)) {
        each<2>([&](auto b) __attribute__((always_inline)) {
          const std::int64_t at = r * x.blocks() + first + 2 * pair + b;
          const __m512 times = _mm512_mul_ps(_mm512_cvtepi32_ps(dots[b][r]), _mm512_set1_ps(x.scales[at]));
          scaled[r] = _mm512_fmadd_ps(times, scales[2 * pair + b], scaled[r]);
          biased[r] = _mm512_fmadd_ps(mins[2 * pair + b], _mm512_set1_ps(x.sums[at]), biased[r]);
        });
      });
    });
    for (int r = 0; r < kRows; ++r)
      sums[r] = _mm512_fnmadd_ps(biased[r], parts.d_min(), _mm512_fmadd_ps(scaled[r], parts.d(), sums[r]));
  }
};

struct LargeQ6K {
  using Parts = PartsOfQ6K;
  static constexpr int kMostRows = 4;

  /// Sixteen columns, which have a scale of their own, of each of the four blocks from 4 kN on.
  template <int kN, int kHalf, int kRows>
  static HWY_INLINE void add_quarter(const Parts& parts, const RoundedRows& x, std::int64_t first,
                                     __m512 (&scaled)[kRows]) {
    __m512i dots[4][kRows];
    each<4>([&](auto k) __attribute__((always_inline)) {
      each<kRows>([&](auto r) __attribute__((always_inline)) {
        dots[k][r] = start_at<5>(x.half_minus[2 * (r * x.blocks() + first + 4 * kN + k) + kHalf]);
      });
    });
    each<4>([&](auto u) __attribute__((always_inline)) {
      const __m512i a = parts.nibbles(kN, kHalf, 0, u), b = parts.nibbles(kN, kHalf, 1, u);
      const __m512i two = parts.pairs(kN, kHalf, u);
      each<3>([&](auto v) __attribute__((always_inline)) {
        ask_ahead(parts.p + 256 + 768 * (2 * kN + kHalf) + 192 * u + 64 * v + kFarther<kRows>);
      });
      const __m512i codes[4] = {with_bits(masked(a, 15), shifted<4>(two), 48),
                                with_bits(masked(b, 15), shifted<2>(two), 48),
                                with_bits(masked(shifted<-4>(a), 15), two, 48),
                                with_bits(masked(shifted<-4>(b), 15), shifted<-2>(two), 48)};
      each<4>([&](auto k) __attribute__((always_inline)) {
        const std::int8_t* of_x = x.codes + (first + 4 * kN + k) * kRoundedBlock + 16 * kHalf + 4 * u;
        each<kRows>([&](auto r) __attribute__((always_inline)) {
          add_fours(dots[k][r], codes[k], of_x + r * x.columns);
        });
      });
    });
    each<4>([&](auto k) __attribute__((always_inline)) {
      const __m512 scale = parts.scale(4 * kN + k, kHalf);
      each<kRows>([&](auto r) __attribute__((always_inline)) {
        const __m512 x_scale = _mm512_set1_ps(x.scales[r * x.blocks() + first + 4 * kN + k]);
        scaled[r] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(dots[k][r]), x_scale), scale, scaled[r]);
      });
    });
  }

  template <int kRows>
  static HWY_INLINE void add(const Parts& parts, const RoundedRows& x, std::int64_t first,
                             __m512 (&sums)[kRows]) {
    __m512 scaled[kRows];
    for (int r = 0; r < kRows; ++r) scaled[r] = _mm512_setzero_ps();
    each<4>([&](auto quarter) __attribute__((always_inline)) {
      ask_ahead(parts.p + 64 * quarter + kFarther<kRows>);
      add_quarter<quarter / 2, quarter % 2>(parts, x, first, scaled);
    });
    for (int r = 0; r < kRows; ++r) sums[r] = _mm512_fmadd_ps(scaled[r], parts.d(), sums[r]);
  }
};

template <bool kHasFifth>
LargeQ45K<kHasFifth> large_of(CodesQ45K<kHasFifth>);
LargeQ6K large_of(CodesQ6K);

/// Rows of x that are multiplied together.
template <class Format>
constexpr int most_rows() {
  if constexpr (HasSmallBlocks<Format>)
    return 4;
  else
    return decltype(large_of(Format()))::kMostRows;
}

/// Sixteen rows times kRows rows of x.
template <class Format, int kRows>
void dot_sixteen(const std::uint8_t* rows, const RoundedRows& x, float* out, std::int64_t out_stride) {
  __m512 sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_ps();
  const std::int64_t blocks = x.blocks();
  if constexpr (HasSmallBlocks<Format>) {
    constexpr std::int64_t kBytes = kChunkBlocks * kPanelRows * Format::kBytes;
    std::int64_t b = 0;
    for (; b + kChunkBlocks <= blocks; b += kChunkBlocks, rows += kBytes)
      add_small<Format, kRows, true>(rows, x, b, sums);
    if (b < blocks) add_small<Format, kRows, false>(rows, x, b, sums);
  } else {
    using Large = decltype(large_of(Format()));
    const std::int64_t chunks = blocks / kChunkBlocks;
    if constexpr (requires { Large::Parts::ask_for_scales(rows, chunks); })
      Large::Parts::ask_for_scales(rows, chunks);
    for (std::int64_t c = 0; c < chunks; ++c)
      Large::add(typename Large::Parts(rows, chunks, c), x, c * kChunkBlocks, sums);
  }
  for (int r = 0; r < kRows; ++r) _mm512_storeu_ps(out + r * out_stride, sums[r]);
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
    // Gives each walk a share of the next rows to ask for: where there are several, memory would have nothing
    // to do from the second one on.
    constexpr std::int64_t kMost = most_rows<Format>();
    const std::int64_t walks = m / kMost + std::popcount(static_cast<std::uint64_t>(m % kMost));
    const std::int64_t bytes = kInterleavedRows * x.columns / facts(format).block * facts(format).block_bytes;
    const std::int64_t share = walks > 1 ? (bytes + walks - 1) / walks : 0;
    const auto* next = p + bytes;
    const auto take = [&](auto together) {
      for (; i + together <= m; i += together, next += share) {
        for (std::int64_t at = 0; at < share; at += 64) __builtin_prefetch(next + at, 0, 2);
        if constexpr (together <= most_rows<Format>())
          dot_sixteen<Format, together>(p, x.from(i), out + i * out_stride, out_stride);
        else
          break;
      }
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
