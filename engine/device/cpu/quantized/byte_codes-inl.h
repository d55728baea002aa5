// Codes, 32 of them, a byte each: how those of few bits become bytes. Included once for every instruction
// set, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE, after <hwy/highway.h>. Vectors of 32 bytes need
// AVX2; other instruction sets have loops over bytes, of which compilers make vectors.
#if defined(CALDERA_BYTE_CODES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_BYTE_CODES_INL
#undef CALDERA_BYTE_CODES_INL
#else
#define CALDERA_BYTE_CODES_INL
#endif

#include <cstdint>
#include <cstring>

#undef CALDERA_HAS_BYTE_VECTORS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define CALDERA_HAS_BYTE_VECTORS 1
#else
#define CALDERA_HAS_BYTE_VECTORS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {

#if CALDERA_HAS_BYTE_VECTORS

using Codes = __m256i;

HWY_INLINE Codes load_codes(const std::uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
/// Sixteen bytes: their low nibbles, then their high ones.
HWY_INLINE Codes nibbles_apart(const std::uint8_t* p) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(low), _mm_srli_epi16(low, 4), 1);
  return _mm256_and_si256(both, _mm256_set1_epi8(15));
}
/// Sixteen bytes: the low and the high nibble of each, in turns.
HWY_INLINE Codes nibbles_in_turns(const std::uint8_t* p) {
  const __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i both = _mm256_or_si256(wide, _mm256_slli_epi16(wide, 4));
  return _mm256_and_si256(both, _mm256_set1_epi8(15));
}
/// Eight bytes: their pairs of bits, from the low ones on.
HWY_INLINE Codes pairs_in_turns(const std::uint8_t* p) {
  const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  const __m256i low = _mm256_or_si256(wide, _mm256_slli_epi32(wide, 6));
  const __m256i high = _mm256_or_si256(_mm256_slli_epi32(wide, 12), _mm256_slli_epi32(wide, 18));
  return _mm256_and_si256(_mm256_or_si256(low, high), _mm256_set1_epi8(3));
}
/// `kBits` bits of every byte, from bit `shift` on.
template <int kBits>
HWY_INLINE Codes bits_at(Codes bytes, int shift) {
  return _mm256_and_si256(_mm256_srl_epi16(bytes, _mm_cvtsi32_si128(shift)),
                          _mm256_set1_epi8((1 << kBits) - 1));
}
template <int kBy>
HWY_INLINE Codes shifted_up(Codes codes) {
  return _mm256_slli_epi16(codes, kBy);  // of codes whose upper bits are 0
}
HWY_INLINE Codes joined(Codes a, Codes b) { return _mm256_or_si256(a, b); }
/// 16 in every byte whose bit is set among the 32 from p on.
HWY_INLINE Codes sixteens(const std::uint8_t* p) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, p, sizeof(bits));
#if HWY_TARGET <= HWY_AVX3
  return _mm256_maskz_set1_epi8(bits, 16);
#else
  const __m256i spread =
      _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)),
                          _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ULL));
  return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit), _mm256_set1_epi8(16));
#endif
}
HWY_INLINE Codes looked_up(const std::int8_t* table, Codes nibbles) {
  const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), nibbles);
}
HWY_INLINE Codes less_128(Codes codes) { return _mm256_xor_si256(codes, _mm256_set1_epi8(-128)); }

/// f16 scales `stride` bytes apart.
HWY_INLINE void halves_apart(const std::uint8_t* p, std::int64_t stride, int count, float* out) {
  const auto at = [&](int i) {
    std::int16_t bits = 0;
    if (i < count) std::memcpy(&bits, p + i * stride, sizeof(bits));
    return bits;
  };
  const __m128i bits = _mm_setr_epi16(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
  _mm256_storeu_ps(out, _mm256_cvtph_ps(bits));
}

#else  // CALDERA_HAS_BYTE_VECTORS

struct Codes {
  std::uint8_t at[32];
};

template <class Byte>
HWY_INLINE Codes codes_of(const Byte& byte) {
  Codes codes;
  for (int i = 0; i < 32; ++i) codes.at[i] = static_cast<std::uint8_t>(byte(i));
  return codes;
}
HWY_INLINE Codes load_codes(const std::uint8_t* p) {
  return codes_of([&](int i) { return p[i]; });
}
HWY_INLINE Codes nibbles_apart(const std::uint8_t* p) {
  return codes_of([&](int i) { return i < 16 ? p[i] & 15 : p[i - 16] >> 4; });
}
HWY_INLINE Codes nibbles_in_turns(const std::uint8_t* p) {
  return codes_of([&](int i) { return p[i / 2] >> (i % 2 * 4) & 15; });
}
HWY_INLINE Codes pairs_in_turns(const std::uint8_t* p) {
  return codes_of([&](int i) { return p[i / 4] >> (i % 4 * 2) & 3; });
}
template <int kBits>
HWY_INLINE Codes bits_at(const Codes& bytes, int shift) {
  return codes_of([&](int i) { return bytes.at[i] >> shift & ((1 << kBits) - 1); });
}
template <int kBy>
HWY_INLINE Codes shifted_up(const Codes& codes) {
  return codes_of([&](int i) { return codes.at[i] << kBy; });
}
HWY_INLINE Codes joined(const Codes& a, const Codes& b) {
  return codes_of([&](int i) { return a.at[i] | b.at[i]; });
}
HWY_INLINE Codes sixteens(const std::uint8_t* p) {
  return codes_of([&](int i) { return (p[i / 8] >> (i % 8) & 1) << 4; });
}
HWY_INLINE Codes looked_up(const std::int8_t* table, const Codes& nibbles) {
  return codes_of([&](int i) { return table[nibbles.at[i]]; });
}
HWY_INLINE Codes less_128(const Codes& codes) {
  return codes_of([&](int i) { return codes.at[i] ^ 128; });
}
HWY_INLINE void halves_apart(const std::uint8_t* p, std::int64_t stride, int count, float* out) {
  for (int i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, p + i * stride, sizeof(bits));
    out[i] = half_table()[bits];
  }
}

#endif  // CALDERA_HAS_BYTE_VECTORS

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();
#endif  // CALDERA_BYTE_CODES_INL
