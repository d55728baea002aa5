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

/// The side of a square: a cache line of elements of four or eight bytes. Of narrower ones it is less, as the
/// lines of more rows would be too many for a set of the nearest cache.
template <class T>
constexpr std::int64_t kSquare = sizeof(T) == 8 ? 8 : 16;

/// to[i * to_row + j] = from[j * from_row + i] of a square.
template <bool kPastCaches, class T>
HWY_INLINE void turn_square(const T* from, std::int64_t from_row, T* to, std::int64_t to_row) {
  for (std::int64_t i = 0; i < kSquare<T>; ++i)
    for (std::int64_t j = 0; j < kSquare<T>; ++j) to[i * to_row + j] = from[j * from_row + i];
}

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

template <bool kPastCaches>
HWY_INLINE void turn_square(const std::uint32_t* from, std::int64_t from_row, std::uint32_t* to,
                            std::int64_t to_row) {
  __m512i lines[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) lines[i] = _mm512_loadu_si512(from + i * from_row);
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

#elif HWY_TARGET != HWY_SCALAR

template <bool kPastCaches>
HWY_INLINE void turn_square(const std::uint32_t* from, std::int64_t from_row, std::uint32_t* to,
                            std::int64_t to_row) {
  const hn::FixedTag<std::uint32_t, 4> d;
  const hn::FixedTag<std::uint64_t, 2> wide;
  const auto pairs = [&](auto a, auto b) { return hn::BitCast(wide, hn::InterleaveLower(d, a, b)); };
  const auto upper_pairs = [&](auto a, auto b) { return hn::BitCast(wide, hn::InterleaveUpper(d, a, b)); };
  for (std::int64_t j = 0; j < kSquare<std::uint32_t>; j += 4) {
    for (std::int64_t i = 0; i < kSquare<std::uint32_t>; i += 4) {
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

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#endif
