// Decoders of ggml's block formats. Each walks the blocks of a row and hands every vector of weights to
// `sink(k, weights)`, k the column of the first, or the codes of 32 weights to `sink.block(k, codes, scale)`,
// whose weights are codes times scale. Included once for every instruction set, between
// HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE, after <hwy/highway.h>.
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

HWY_INLINE float half_at(const std::uint8_t* p) {
  const std::uint32_t h = p[0] | static_cast<std::uint32_t>(p[1]) << 8;
  std::uint32_t bits = (h & 0x7fffU) << 13;
  // Reads the exponents as if they had one bias: a power of two then corrects it, subnormal numbers included.
  bits = (h & 0x7c00U) == 0x7c00U ? bits | 0x7f800000U
                                  : std::bit_cast<std::uint32_t>(std::bit_cast<float>(bits) * 0x1p112F);
  return std::bit_cast<float>(bits | (h & 0x8000U) << 16);
}

/// The number that an f16 is, in every lane: converted where there is an instruction for it, else read from a
/// table, of which few lines are read, as the scales of a matrix are alike. (The weights that stream through
/// the caches push out those lines: with the table a token took 6 to 40 % longer.)
class Halves {
 public:
  HWY_INLINE V at(const std::uint8_t* p) const {
    std::uint16_t bits = 0;
    std::memcpy(&bits, p, sizeof(bits));
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    const hn::Rebind<std::uint16_t, F> d;
    return hn::PromoteTo(F(), hn::BitCast(hn::Rebind<hwy::float16_t, F>(), hn::Set(d, bits)));
#else
    return hn::Set(F(), table_[bits]);
#endif
  }

 private:
  const float* table_ = half_table();
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
HWY_INLINE V to_float(VI codes) { return hn::ConvertTo(F(), codes); }
HWY_INLINE VI low_nibbles(VI bytes) { return hn::And(bytes, hn::Set(I(), 15)); }
HWY_INLINE VI high_nibbles(VI bytes) { return hn::ShiftRight<4>(bytes); }

/// Codes of 4 bits less eight.
HWY_INLINE V less_eight(VI nibbles) {
#if HWY_TARGET <= HWY_AVX3 && HWY_TARGET != HWY_SCALAR
  HWY_ALIGN static constexpr float kValues[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
  return hn::TableLookupLanes(hn::Load(F(), kValues), hn::IndicesFromVec(F(), nibbles));
#else
  return to_float(hn::Sub(nibbles, hn::Set(I(), 8)));
#endif
}

template <class Sink>
HWY_INLINE void walk_q4_0(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  const Halves halves;
  for (std::int64_t b = 0; b < blocks; ++b, p += 18) {
    ask_ahead(p);
    V codes[kVectors];
    for (std::int64_t j = 0; j < kVectors / 2; ++j) {
      const VI bytes = bytes_at(p + 2 + j * kLanes);
      codes[j] = less_eight(low_nibbles(bytes));
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

/// out[i] = scale * codes[i] for kCount codes, signed or not.
template <int kCount, class Code>
HWY_INLINE void scale_codes(float scale, const Code* codes, float* out) {
  const hn::CappedTag<float, kCount> d;
  const hn::Rebind<std::int32_t, decltype(d)> di;
  const hn::Rebind<Code, decltype(d)> dc;
  for (std::size_t i = 0; i < kCount; i += hn::Lanes(d)) {
    const auto wide = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(dc, codes + i)));
    hn::StoreU(hn::Mul(wide, hn::Set(d, scale)), d, out + i);
  }
}

/// The eight scales and mins of 6 bits in 12 bytes: those of the first four in the low bits of eight, of the
/// others in nibbles, and in what is left above the first.
struct SixBitPairs {
  float scale[8], min[8];

  HWY_INLINE SixBitPairs(float d, float m, const std::uint8_t* p) {
    std::uint32_t word[3];
    std::memcpy(word, p, 12);
    const std::uint32_t scales[2] = {word[0] & 0x3f3f3f3fU,
                                     (word[2] & 0x0f0f0f0fU) | (word[0] >> 2 & 0x30303030U)};
    const std::uint32_t mins[2] = {word[1] & 0x3f3f3f3fU,
                                   (word[2] >> 4 & 0x0f0f0f0fU) | (word[1] >> 2 & 0x30303030U)};
    std::uint8_t codes[16];
    std::memcpy(codes, scales, 8);
    std::memcpy(codes + 8, mins, 8);
    scale_codes<8>(d, codes, scale);
    scale_codes<8>(m, codes + 8, min);
  }
};

template <bool kHasFifth, class Sink>
HWY_INLINE void walk_q45_k(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  constexpr std::int64_t kCodes = kHasFifth ? 48 : 16;
  for (std::int64_t b = 0; b < blocks; ++b, p += kCodes + 128) {
    ask_ahead(p);
    ask_ahead(p + 64);
    ask_ahead(p + 128);
    const SixBitPairs pairs(half_at(p), half_at(p + 2), p + 4);
    for (int j = 0; j < 4; ++j) {
      const V d0 = hn::Set(F(), pairs.scale[2 * j]);
      const V m0 = hn::Set(F(), pairs.min[2 * j]);
      const V d1 = hn::Set(F(), pairs.scale[2 * j + 1]);
      const V m1 = hn::Set(F(), pairs.min[2 * j + 1]);
      for (std::int64_t l = 0; l < 32; l += kLanes) {
        const VI bytes = bytes_at(p + kCodes + j * 32 + l);
        VI low = low_nibbles(bytes);
        VI high = high_nibbles(bytes);
        if constexpr (kHasFifth) {
          const VI fifths = hn::ShiftRightSame(bytes_at(p + 16 + l), 2 * j);
          low = hn::Or(low, hn::ShiftLeft<4>(hn::And(fifths, hn::Set(I(), 1))));
          high = hn::Or(high, hn::ShiftLeft<3>(hn::And(fifths, hn::Set(I(), 2))));
        }
        const std::int64_t k = b * 256 + j * 64 + l;
        sink(k, hn::MulSub(to_float(low), d0, m0));
        sink(k + 32, hn::MulSub(to_float(high), d1, m1));
      }
    }
  }
}

template <class Sink>
HWY_INLINE void walk_q6_k(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  const VI three = hn::Set(I(), 0x30);
  const VI middle = hn::Set(I(), 32);
  for (std::int64_t b = 0; b < blocks; ++b, p += 210) {
    ask_ahead(p);
    ask_ahead(p + 64);
    ask_ahead(p + 128);
    ask_ahead(p + 192);
    float scales[16];
    scale_codes<16>(half_at(p + 208), reinterpret_cast<const std::int8_t*>(p + 192), scales);
    for (std::int64_t n = 0; n < 2; ++n) {
      for (std::int64_t l = 0; l < 32; l += kLanes) {
        const VI low = bytes_at(p + 64 * n + l);
        const VI next = bytes_at(p + 64 * n + 32 + l);
        const VI high = bytes_at(p + 128 + 32 * n + l);
        const VI codes[4] = {hn::Or(low_nibbles(low), hn::And(hn::ShiftLeft<4>(high), three)),
                             hn::Or(low_nibbles(next), hn::And(hn::ShiftLeft<2>(high), three)),
                             hn::Or(high_nibbles(low), hn::And(high, three)),
                             hn::Or(high_nibbles(next), hn::And(hn::ShiftRight<2>(high), three))};
        for (std::int64_t i = 0; i < 4; ++i) {
          const V scale = hn::Set(F(), scales[8 * n + l / 16 + 2 * i]);
          sink(b * 256 + n * 128 + 32 * i + l, hn::Mul(to_float(hn::Sub(codes[i], middle)), scale));
        }
      }
    }
  }
}

template <class Sink>
HWY_INLINE void walk_q2_k(const std::uint8_t* p, std::int64_t blocks, Sink& sink) {
  for (std::int64_t b = 0; b < blocks; ++b, p += 84) {
    ask_ahead(p);
    ask_ahead(p + 64);
    std::uint8_t codes[32];
    for (int j = 0; j < 16; ++j) {
      codes[j] = p[j] & 15;
      codes[j + 16] = p[j] >> 4;
    }
    float scales[16], mins[16];
    scale_codes<16>(half_at(p + 80), codes, scales);
    scale_codes<16>(half_at(p + 82), codes + 16, mins);
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
  for (std::int64_t b = 0; b < blocks; ++b, p += 110) {
    ask_ahead(p);
    ask_ahead(p + 64);
    const SixBitCodes codes(p + 96);
    float scales[16];
    scale_codes<16>(half_at(p + 108), codes.at, scales);
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
