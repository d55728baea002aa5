// Decoders of ggml's block formats. Each walks the blocks of a row and hands every vector of weights to
// `sink(k, weights)`, k the column of the first, or the codes of 32 weights to `sink.block(k, codes, scale)`,
// whose weights are codes times scale. Included once for every instruction set, between
// HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE, after byte_codes-inl.h.
//
// Products of scales and codes are exact in f32 (an f16 by at most 7 and 6 bits), so that a sum with one is
// rounded once, whether or not it is one instruction.
#if defined(CALDERA_DECODE_BLOCKS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_DECODE_BLOCKS_INL
#undef CALDERA_DECODE_BLOCKS_INL
#else
#define CALDERA_DECODE_BLOCKS_INL
#endif

#include <bit>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::CappedTag<float, 16>;
using I = hn::RebindToSigned<F>;
using U = hn::RebindToUnsigned<F>;
using V = hn::Vec<F>;
using VI = hn::Vec<I>;
using Bytes = hn::Rebind<std::uint8_t, F>;
using SignedBytes = hn::Rebind<std::int8_t, F>;

/// Weights of a vector.
inline constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(F()));

/// The number that an f16 is, in every lane: converted where there is an instruction for it, else read from a
/// table, of which few lines are read, as the scales of a matrix are alike. (The weights that stream through
/// the caches push out those lines: with the table a token took 6 to 40 % longer.)
class Halves {
 public:
  HWY_INLINE V at(const std::uint8_t* p) const { return at(F(), p); }
  template <class D>
  HWY_INLINE hn::Vec<D> at(D d, const std::uint8_t* p) const {
    std::uint16_t bits = 0;
    std::memcpy(&bits, p, sizeof(bits));
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    const auto halves = hn::Set(hn::Rebind<std::uint16_t, D>(), bits);
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), halves));
#else
    return hn::Set(d, table_[bits]);
#endif
  }

#if !(HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2)
 private:
  const float* table_ = half_table();
#endif
};

/// Bytes that are asked for ahead of those decoded: of a matrix larger than the caches, memory's latency.
inline constexpr std::int64_t kAhead = 1024;
/// Asks for a line into the L2 cache only. What is asked for into L1 holds its few places of lines in flight
/// for as long as memory takes: a core read 13 GB/s that way, and 21 this way (docs/records/performance.md).
HWY_INLINE void ask_ahead(const std::uint8_t* p) { __builtin_prefetch(p + kAhead, 0, 2); }

/// Twice the values of E2M1.
inline constexpr std::int8_t kE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
/// The values of IQ4_NL.
inline constexpr std::int8_t kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};

/// Vectors of 32 weights.
inline constexpr std::int64_t kVectors = 32 / kLanes;

HWY_INLINE VI bytes_at(const std::uint8_t* p) { return hn::PromoteTo(I(), hn::LoadU(Bytes(), p)); }
HWY_INLINE VI signed_bytes_at(const std::int8_t* p) {
  return hn::PromoteTo(I(), hn::LoadU(SignedBytes(), p));
}
/// Codes first and on, a vector of them.
HWY_INLINE VI lanes_of(const Codes& codes, std::int64_t first) {
#if HWY_TARGET <= HWY_AVX3 && HWY_TARGET != HWY_SCALAR && HWY_ARCH_X86
  return VI{
      _mm512_cvtepu8_epi32(first == 0 ? _mm256_castsi256_si128(codes) : _mm256_extracti128_si256(codes, 1))};
#endif
  HWY_ALIGN std::uint8_t bytes[32];
  std::memcpy(bytes, &codes, sizeof(bytes));
  return bytes_at(bytes + first);
}
HWY_INLINE V to_float(VI codes) { return hn::ConvertTo(F(), codes); }
HWY_INLINE VI low_nibbles(VI bytes) { return hn::And(bytes, hn::Set(I(), 15)); }
HWY_INLINE VI high_nibbles(VI bytes) { return hn::ShiftRight<4>(bytes); }

/// Whether what all codes of few bits stand for fits into registers, from which it is looked up.
inline constexpr bool kHasTables = HWY_TARGET <= HWY_AVX3 && HWY_TARGET != HWY_SCALAR && HWY_ARCH_X86;

/// table[code] for the low four bits of each lane, whatever its others are.
HWY_INLINE V look_up_nibbles(V table, VI codes) {
#if HWY_TARGET <= HWY_AVX3 && HWY_TARGET != HWY_SCALAR && HWY_ARCH_X86
  return V{_mm512_permutexvar_ps(codes.raw, table.raw)};
#else
  return hn::TableLookupLanes(table, hn::IndicesFromVec(F(), low_nibbles(codes)));
#endif
}

/// Codes of 4 bits less eight.
HWY_INLINE V less_eight(VI nibbles) {
  if constexpr (kHasTables) return look_up_nibbles(hn::Iota(F(), -8.0F), nibbles);
  return to_float(hn::Sub(low_nibbles(nibbles), hn::Set(I(), 8)));
}

template <class Sink>
HWY_INLINE void walk_q4_0(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  const Halves halves;
  for (std::int64_t b = 0; b < blocks; ++b, p += 18) {
    ask_ahead(p);
    V codes[kVectors];
    for (std::int64_t j = 0; j < kVectors / 2; ++j) {
      const VI bytes = bytes_at(p + 2 + j * kLanes);
      codes[j] = less_eight(bytes);
      codes[j + kVectors / 2] = less_eight(high_nibbles(bytes));
    }
    sink.block(b * 32, codes, halves.at(p));
  }
}

template <class Sink>
HWY_INLINE void walk_q4_1(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  const Halves halves;
  for (std::int64_t b = 0; b < blocks; ++b, p += 20) {
    ask_ahead(p);
    const V d = halves.at(p);
    const V m = halves.at(p + 2);
    for (std::int64_t j = 0; j < 16; j += kLanes) {
      const VI bytes = bytes_at(p + 4 + j);
      sink(b * 32 + j, hn::MulAdd(to_float(low_nibbles(bytes)), d, m));
      sink(b * 32 + j + 16, hn::MulAdd(to_float(high_nibbles(bytes)), d, m));
    }
  }
}

/// 16 where the bit of the lane is set, of those from number `first` on behind p; else 0.
HWY_INLINE VI fifth_bits(const std::uint8_t* p, std::int64_t first) {
  if constexpr (kLanes >= 8) {
    return hn::IfThenElseZero(hn::LoadMaskBits(I(), p + first / 8), hn::Set(I(), 16));
  } else {
    std::uint32_t bits = 0;
    std::memcpy(&bits, p, 4);
    const auto shifted = hn::Shr(hn::Set(U(), bits), hn::Iota(U(), static_cast<std::uint32_t>(first)));
    return hn::BitCast(I(), hn::ShiftLeft<4>(hn::And(shifted, hn::Set(U(), 1U))));
  }
}

template <bool kHasMin, class Sink>
HWY_INLINE void walk_q5(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  constexpr std::int64_t kHigh = kHasMin ? 4 : 2;
  const Halves halves;
  for (std::int64_t b = 0; b < blocks; ++b, p += kHigh + 20) {
    ask_ahead(p);
    const V d = halves.at(p);
    const V m = kHasMin ? halves.at(p + 2) : hn::Zero(F());
    for (std::int64_t j = 0; j < 16; j += kLanes) {
      const VI bytes = bytes_at(p + kHigh + 4 + j);
      const VI low = hn::Or(low_nibbles(bytes), fifth_bits(p + kHigh, j));
      const VI top = hn::Or(high_nibbles(bytes), fifth_bits(p + kHigh, j + 16));
      if constexpr (kHasMin) {
        sink(b * 32 + j, hn::MulAdd(to_float(low), d, m));
        sink(b * 32 + j + 16, hn::MulAdd(to_float(top), d, m));
      } else {
        const VI middle = hn::Set(I(), 16);
        sink(b * 32 + j, hn::Mul(to_float(hn::Sub(low, middle)), d));
        sink(b * 32 + j + 16, hn::Mul(to_float(hn::Sub(top, middle)), d));
      }
    }
  }
}

template <class Sink>
HWY_INLINE void walk_q8_0(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  const Halves halves;
  for (std::int64_t b = 0; b < blocks; ++b, p += 34) {
    ask_ahead(p);
    V codes[kVectors];
    for (std::int64_t j = 0; j < kVectors; ++j)
      codes[j] = to_float(signed_bytes_at(reinterpret_cast<const std::int8_t*>(p) + 2 + j * kLanes));
    sink.block(b * 32, codes, halves.at(p));
  }
}

/// Looks up what the low nibbles of 16 bytes stand for, then the high ones.
HWY_INLINE void look_up(const std::int8_t* values, const std::uint8_t* p, std::int8_t* out) {
#if HWY_TARGET == HWY_SCALAR
  for (int j = 0; j < 16; ++j) {
    out[j] = values[p[j] & 15];
    out[j + 16] = values[p[j] >> 4];
  }
#else
  const hn::FixedTag<std::int8_t, 16> d;
  const hn::FixedTag<std::uint8_t, 16> du;
  const hn::FixedTag<std::uint16_t, 8> pairs;
  const auto table = hn::LoadU(d, values);
  const auto bytes = hn::LoadU(du, p);
  const auto mask = hn::Set(du, std::uint8_t{15});
  const auto high = hn::BitCast(du, hn::ShiftRight<4>(hn::BitCast(pairs, bytes)));
  hn::StoreU(hn::TableLookupBytes(table, hn::BitCast(d, hn::And(bytes, mask))), d, out);
  hn::StoreU(hn::TableLookupBytes(table, hn::BitCast(d, hn::And(high, mask))), d, out + 16);
#endif
}

/// Codes that stand for signed bytes of a table, in twice sixteen elements behind a scale of `kScaleBytes`.
template <std::int64_t kScaleBytes, class Scale, class Sink>
HWY_INLINE void walk_table(const std::uint8_t* p, std::int64_t blocks, const std::int8_t* values,
                           const Scale& scale, Sink& sink) {
  if constexpr (kLanes == 16) {
    const V table = to_float(signed_bytes_at(values));
    for (std::int64_t b = 0; b < blocks; ++b, p += kScaleBytes + 16) {
      ask_ahead(p);
      const VI bytes = bytes_at(p + kScaleBytes);
      const auto low = hn::IndicesFromVec(F(), low_nibbles(bytes));
      const auto high = hn::IndicesFromVec(F(), high_nibbles(bytes));
      const V codes[2] = {hn::TableLookupLanes(table, low), hn::TableLookupLanes(table, high)};
      sink.block(b * 32, codes, scale(p));
    }
    return;
  }
  HWY_ALIGN std::int8_t decoded[32];
  for (std::int64_t b = 0; b < blocks; ++b, p += kScaleBytes + 16) {
    look_up(values, p + kScaleBytes, decoded);
    V codes[kVectors];
    for (std::int64_t j = 0; j < kVectors; ++j) codes[j] = to_float(signed_bytes_at(decoded + j * kLanes));
    sink.block(b * 32, codes, scale(p));
  }
}

/// The scale of MXFP4, for values twice as large.
struct HalfPowerOfTwo {
  HWY_INLINE V operator()(const std::uint8_t* p) const {
    return hn::Set(F(), std::bit_cast<float>(*p < 2 ? 0x00200000U << *p : (*p - 1U) << 23));
  }
};
struct HalfScale {
  Halves halves;
  HWY_INLINE V operator()(const std::uint8_t* p) const { return halves.at(p); }
};

/// out[i] = scale * codes[i] for kCount codes, signed or not, and the f16 at `half`.
template <int kCount, class Code>
HWY_INLINE void scale_codes(const Halves& halves, const std::uint8_t* half, const Code* codes, float* out) {
  const hn::CappedTag<float, kCount> d;
  const auto scale = halves.at(d, half);
  const hn::Rebind<std::int32_t, decltype(d)> di;
  const hn::Rebind<Code, decltype(d)> dc;
  for (std::size_t i = 0; i < kCount; i += hn::Lanes(d)) {
    const auto wide = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(dc, codes + i)));
    hn::StoreU(hn::Mul(wide, scale), d, out + i);
  }
}

/// The eight scales and mins of 6 bits in 12 bytes: those of the first four in the low bits of eight, of the
/// others in nibbles, and in what is left above the first.
struct SixBitPairs {
  float scale[8], min[8];

  /// Reads those of the block at p, which begins with the scale of the scales and that of the mins.
  HWY_INLINE SixBitPairs(const Halves& halves, const std::uint8_t* p) {
    std::uint32_t word[3];
    std::memcpy(word, p + 4, 12);
    const std::uint32_t scales[2] = {word[0] & 0x3f3f3f3fU,
                                     (word[2] & 0x0f0f0f0fU) | (word[0] >> 2 & 0x30303030U)};
    const std::uint32_t mins[2] = {word[1] & 0x3f3f3f3fU,
                                   (word[2] >> 4 & 0x0f0f0f0fU) | (word[1] >> 2 & 0x30303030U)};
    std::uint8_t codes[16];
    std::memcpy(codes, scales, 8);
    std::memcpy(codes + 8, mins, 8);
    scale_codes<8>(halves, p, codes, scale);
    scale_codes<8>(halves, p + 2, codes + 8, min);
  }
};

template <bool kHasFifth, class Sink>
HWY_INLINE void walk_q45_k(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  constexpr std::int64_t kCodes = kHasFifth ? 48 : 16;
  const Halves halves;
  for (std::int64_t b = 0; b < blocks; ++b, p += kCodes + 128) {
    ask_ahead(p);
    ask_ahead(p + 64);
    ask_ahead(p + 128);
    const SixBitPairs pairs(halves, p);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const V d0 = hn::Set(F(), pairs.scale[2 * j]);
      const V m0 = hn::Set(F(), pairs.min[2 * j]);
      const V d1 = hn::Set(F(), pairs.scale[2 * j + 1]);
      const V m1 = hn::Set(F(), pairs.min[2 * j + 1]);
      const std::int64_t first = b * 256 + j * 64;
      if constexpr (kHasFifth) {
        const Codes bytes = load_codes(p + kCodes + j * 32), fifths = load_codes(p + 16);
        const Codes low = joined(bits_at<4>(bytes, 0), shifted_up<4>(bits_at<1>(fifths, 2 * j)));
        const Codes high = joined(bits_at<4>(bytes, 4), shifted_up<4>(bits_at<1>(fifths, 2 * j + 1)));
        for (std::int64_t l = 0; l < 32; l += kLanes) {
          sink(first + l, hn::MulSub(to_float(lanes_of(low, l)), d0, m0));
          sink(first + l + 32, hn::MulSub(to_float(lanes_of(high, l)), d1, m1));
        }
      } else if constexpr (kHasTables) {
        const V codes = hn::Iota(F(), 0.0F);
        const V low = hn::MulSub(codes, d0, m0);
        const V high = hn::MulSub(codes, d1, m1);
        for (std::int64_t l = 0; l < 32; l += kLanes) {
          const VI bytes = bytes_at(p + kCodes + j * 32 + l);
          sink(first + l, look_up_nibbles(low, bytes));
          sink(first + l + 32, look_up_nibbles(high, high_nibbles(bytes)));
        }
      } else {
        for (std::int64_t l = 0; l < 32; l += kLanes) {
          const VI bytes = bytes_at(p + kCodes + j * 32 + l);
          sink(first + l, hn::MulSub(to_float(low_nibbles(bytes)), d0, m0));
          sink(first + l + 32, hn::MulSub(to_float(high_nibbles(bytes)), d1, m1));
        }
      }
    }
  }
}

template <class Sink>
HWY_INLINE void walk_q6_k(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  const Halves halves;
  const VI middle = hn::Set(I(), 32);
  for (std::int64_t b = 0; b < blocks; ++b, p += 210) {
    ask_ahead(p);
    ask_ahead(p + 64);
    ask_ahead(p + 128);
    ask_ahead(p + 192);
    float scales[16];
    scale_codes<16>(halves, p + 208, reinterpret_cast<const std::int8_t*>(p + 192), scales);
    for (int n = 0; n < 2; ++n) {
      const Codes high = load_codes(p + 128 + 32 * n);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const Codes low = bits_at<4>(load_codes(p + 64 * n + i % 2 * 32), i / 2 * 4);
        const Codes codes = joined(low, shifted_up<4>(bits_at<2>(high, 2 * i)));
#pragma GCC unroll 2
        for (std::int64_t l = 0; l < 32; l += kLanes) {
          const V scale = hn::Set(F(), scales[8 * n + l / 16 + 2 * i]);
          sink(b * 256 + n * 128 + 32 * i + l, hn::Mul(to_float(hn::Sub(lanes_of(codes, l), middle)), scale));
        }
      }
    }
  }
}

template <class Sink>
HWY_INLINE void walk_q2_k(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  const Halves halves;
  for (std::int64_t b = 0; b < blocks; ++b, p += 84) {
    ask_ahead(p);
    ask_ahead(p + 64);
    std::uint8_t codes[32];
    for (int j = 0; j < 16; ++j) {
      codes[j] = p[j] & 15;
      codes[j + 16] = p[j] >> 4;
    }
    float scales[16], mins[16];
    scale_codes<16>(halves, p + 80, codes, scales);
    scale_codes<16>(halves, p + 82, codes + 16, mins);
    for (std::int64_t n = 0; n < 2; ++n) {
      for (std::int64_t l = 0; l < 32; l += kLanes) {
        const VI bytes = bytes_at(p + 16 + 32 * n + l);
        for (std::int64_t i = 0; i < 4; ++i) {
          const VI pairs = hn::And(hn::ShiftRightSame(bytes, static_cast<int>(2 * i)), hn::Set(I(), 3));
          const std::int64_t j = 8 * n + 2 * i + l / 16;
          sink(b * 256 + 128 * n + 32 * i + l,
               hn::MulSub(to_float(pairs), hn::Set(F(), scales[j]), hn::Set(F(), mins[j])));
        }
      }
    }
  }
}

/// The sixteen scales of 6 bits in 12 bytes, less 32: low bits in nibbles, high ones behind them.
struct SixBitCodes {
  std::int8_t at[16];

  HWY_INLINE explicit SixBitCodes(const std::uint8_t* p) {
    for (int j = 0; j < 16; ++j)
      at[j] = static_cast<std::int8_t>(
          ((p[j % 8] >> (j < 8 ? 0 : 4) & 15) | (p[8 + j % 4] >> (2 * (j / 4)) & 3) << 4) - 32);
  }
};

template <class Sink>
HWY_INLINE void walk_q3_k(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  const VI four = hn::Set(I(), 4);
  const Halves halves;
  for (std::int64_t b = 0; b < blocks; ++b, p += 110) {
    ask_ahead(p);
    ask_ahead(p + 64);
    const SixBitCodes codes(p + 96);
    float scales[16];
    scale_codes<16>(halves, p + 108, codes.at, scales);
    for (std::int64_t l = 0; l < 32; l += kLanes) {
      const VI thirds = bytes_at(p + l);
      for (std::int64_t n = 0; n < 2; ++n) {
        const VI bytes = bytes_at(p + 32 + 32 * n + l);
        for (std::int64_t i = 0; i < 4; ++i) {
          const VI low = hn::And(hn::ShiftRightSame(bytes, static_cast<int>(2 * i)), hn::Set(I(), 3));
          const VI third = hn::And(hn::ShiftRightSame(thirds, static_cast<int>(4 * n + i)), hn::Set(I(), 1));
          const VI pairs = hn::Sub(hn::Or(low, hn::ShiftLeft<2>(third)), four);
          sink(b * 256 + 128 * n + 32 * i + l,
               hn::Mul(to_float(pairs), hn::Set(F(), scales[8 * n + 2 * i + l / 16])));
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();
#endif  // CALDERA_DECODE_BLOCKS_INL
