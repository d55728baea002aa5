// Squares of a matrix, of which rows become columns. Included once for every instruction set, after
// <hwy/highway.h>.
#if defined(CALDERA_TURNED_SQUARES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_TURNED_SQUARES_INL
#undef CALDERA_TURNED_SQUARES_INL
#else
#define CALDERA_TURNED_SQUARES_INL
#endif

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows and columns of a square of what is written. With registers of 64 bytes a row is a line of the cache.
template <class T>
constexpr std::int64_t kSquareRows = sizeof(T) == 8 ? 8 : 16;
template <class T>
constexpr std::int64_t kSquareColumns = HWY_ARCH_X86&& HWY_TARGET <= HWY_AVX3
                                            ? 64 / static_cast<std::int64_t>(sizeof(T))
                                            : kSquareRows<T>;

/// Whether there is turn_narrow(): where registers of 16 bytes may stand in arrays.
template <class T>
constexpr bool kHasNarrow = HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE;

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

/// Exchanges rows and columns of as many rows of 16 bytes as these have elements: to interleave the upper
/// with the lower half of all rows moves each bit of an element's place one up, so that after as many times
/// as a place has bits, row and column have changed places.
template <class T>
HWY_INLINE void turn_narrow(const T* from, std::int64_t from_row, T* to, std::int64_t to_row) {
  constexpr int kLanes = 16 / sizeof(T);
  const hn::FixedTag<T, kLanes> d;
  hn::Vec<decltype(d)> a[kLanes], b[kLanes];
  for (int i = 0; i < kLanes; ++i) a[i] = hn::LoadU(d, from + i * from_row);
  for (int times = 1; times < kLanes; times *= 2) {
    for (int i = 0; i < kLanes / 2; ++i) {
      b[2 * i] = hn::InterleaveLower(d, a[i], a[i + kLanes / 2]);
      b[2 * i + 1] = hn::InterleaveUpper(d, a[i], a[i + kLanes / 2]);
    }
    for (int i = 0; i < kLanes; ++i) a[i] = b[i];
  }
  for (int i = 0; i < kLanes; ++i) hn::StoreU(a[i], d, to + i * to_row);
}

#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3

template <bool kPastCaches>
HWY_INLINE void store_line(void* to, __m512i line) {
  if constexpr (kPastCaches)
    _mm512_stream_si512(static_cast<__m512i*>(to), line);
  else
    _mm512_storeu_si512(to, line);
}

/// Exchanges the rows and columns of sixteen lines of sixteen elements.
HWY_INLINE void turn_lines(__m512i (&a)[16]) {
  __m512i b[16];
  // Pairs, then fours, of rows in each part of 128 bits; the parts change places after that.
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
    a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
    a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
    a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    b[i] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0x88);
    b[i + 4] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0xdd);
    b[i + 8] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0x88);
    b[i + 12] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    a[i] = _mm512_shuffle_i32x4(b[i], b[i + 8], 0x88);
    a[i + 4] = _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0x88);
    a[i + 8] = _mm512_shuffle_i32x4(b[i], b[i + 8], 0xdd);
    a[i + 12] = _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0xdd);
  }
}

/// Sixteen elements of each of the rows that make up a line of what is written, row after row in each group
/// of 32 bits.
HWY_INLINE __m512i interleaved(const std::uint32_t* from, std::int64_t) { return _mm512_loadu_si512(from); }
HWY_INLINE __m512i interleaved(const std::uint16_t* from, std::int64_t from_row) {
  const auto row = [&](int k) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + k * from_row)));
  };
  return _mm512_or_si512(row(0), _mm512_slli_epi32(row(1), 16));
}
HWY_INLINE __m512i interleaved(const std::uint8_t* from, std::int64_t from_row) {
  const auto row = [&](int k) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k * from_row));
  };
  const __m128i a = row(0), b = row(1), c = row(2), d = row(3);
  const auto pairs = [](__m128i x, __m128i y) {  // of 16 bits
    return _mm256_or_si256(_mm256_cvtepu8_epi16(x), _mm256_slli_epi16(_mm256_cvtepu8_epi16(y), 8));
  };
  const __m512i lower = _mm512_cvtepu16_epi32(pairs(a, b));
  return _mm512_or_si512(lower, _mm512_slli_epi32(_mm512_cvtepu16_epi32(pairs(c, d)), 16));
}

/// to[i * to_row + j] = from[j * from_row + i] of a square.
template <bool kPastCaches, class T>
HWY_INLINE void turn_square(const T* from, std::int64_t from_row, T* to, std::int64_t to_row) {
  constexpr int kTogether = 4 / sizeof(T);
  __m512i lines[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) lines[i] = interleaved(from + i * kTogether * from_row, from_row);
  turn_lines(lines);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) store_line<kPastCaches>(to + i * to_row, lines[i]);
}

template <bool kPastCaches>
HWY_INLINE void turn_square(const std::uint64_t* from, std::int64_t from_row, std::uint64_t* to,
                            std::int64_t to_row) {
  __m512i a[8], b[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) a[i] = _mm512_loadu_si512(from + i * from_row);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    a[i] = _mm512_shuffle_i64x2(b[i], b[i + 2], 0x88);
    a[i + 2] = _mm512_shuffle_i64x2(b[i], b[i + 2], 0xdd);
    a[i + 4] = _mm512_shuffle_i64x2(b[i + 4], b[i + 6], 0x88);
    a[i + 6] = _mm512_shuffle_i64x2(b[i + 4], b[i + 6], 0xdd);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    b[i] = _mm512_shuffle_i64x2(a[i], a[i + 4], 0x88);
    b[i + 2] = _mm512_shuffle_i64x2(a[i + 2], a[i + 6], 0x88);
    b[i + 4] = _mm512_shuffle_i64x2(a[i], a[i + 4], 0xdd);
    b[i + 6] = _mm512_shuffle_i64x2(a[i + 2], a[i + 6], 0xdd);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) store_line<kPastCaches>(to + i * to_row, b[i]);
}

#else

/// to[i * to_row + j] = from[j * from_row + i] of a square.
template <bool kPastCaches, class T>
HWY_INLINE void turn_square(const T* from, std::int64_t from_row, T* to, std::int64_t to_row) {
  for (std::int64_t i = 0; i < kSquareRows<T>; ++i)
    for (std::int64_t j = 0; j < kSquareColumns<T>; ++j) to[i * to_row + j] = from[j * from_row + i];
}

#if HWY_TARGET != HWY_SCALAR

template <bool kPastCaches>
HWY_INLINE void turn_square(const std::uint32_t* from, std::int64_t from_row, std::uint32_t* to,
                            std::int64_t to_row) {
  const hn::FixedTag<std::uint32_t, 4> d;
  const hn::FixedTag<std::uint64_t, 2> wide;
  const auto pairs = [&](auto a, auto b) { return hn::BitCast(wide, hn::InterleaveLower(d, a, b)); };
  const auto upper_pairs = [&](auto a, auto b) { return hn::BitCast(wide, hn::InterleaveUpper(d, a, b)); };
  for (std::int64_t j = 0; j < kSquareColumns<std::uint32_t>; j += 4) {
    for (std::int64_t i = 0; i < kSquareRows<std::uint32_t>; i += 4) {
      const std::uint32_t* p = from + j * from_row + i;
      const auto r0 = hn::LoadU(d, p), r1 = hn::LoadU(d, p + from_row);
      const auto r2 = hn::LoadU(d, p + 2 * from_row), r3 = hn::LoadU(d, p + 3 * from_row);
      const auto a = pairs(r0, r1), b = pairs(r2, r3), c = upper_pairs(r0, r1), e = upper_pairs(r2, r3);
      std::uint32_t* out = to + i * to_row + j;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, a, b)), d, out);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, a, b)), d, out + to_row);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, c, e)), d, out + 2 * to_row);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, c, e)), d, out + 3 * to_row);
    }
  }
}

#if !HWY_HAVE_SCALABLE

template <bool kPastCaches>
HWY_INLINE void turn_square(const std::uint16_t* from, std::int64_t from_row, std::uint16_t* to,
                            std::int64_t to_row) {
  for (std::int64_t j = 0; j < 16; j += 8)
    for (std::int64_t i = 0; i < 16; i += 8)
      turn_narrow(from + j * from_row + i, from_row, to + i * to_row + j, to_row);
}

template <bool kPastCaches>
HWY_INLINE void turn_square(const std::uint8_t* from, std::int64_t from_row, std::uint8_t* to,
                            std::int64_t to_row) {
  turn_narrow(from, from_row, to, to_row);
}

#endif  // !HWY_HAVE_SCALABLE
#endif  // HWY_TARGET != HWY_SCALAR
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#endif
