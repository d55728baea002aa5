// The codes of 32 columns at a time, as integers, and their scales, of every format that has such. Included
// once for every instruction set, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE, after
// decode_blocks-inl.h, whose layouts these are. Vectors of 32 bytes need AVX2; other instruction sets have
// loops over bytes, of which compilers make vectors.
#if defined(CALDERA_INTEGER_CODES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_INTEGER_CODES_INL
#undef CALDERA_INTEGER_CODES_INL
#else
#define CALDERA_INTEGER_CODES_INL
#endif

#undef CALDERA_HAS_BYTE_VECTORS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define CALDERA_HAS_BYTE_VECTORS 1
#else
#define CALDERA_HAS_BYTE_VECTORS 0
#endif

// Instructions that add products of four bytes (AVX512-VNNI). No target of Highway says that there are such,
// as its AVX3_DL asks for much more, and in version 1.0 names the extension of another encoding: so they are
// written as such, and CPUs are asked.
#undef CALDERA_HAS_BYTE_DOTS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define CALDERA_HAS_BYTE_DOTS 1
#else
#define CALDERA_HAS_BYTE_DOTS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {

/// Columns of which scales are read at once: eight blocks of 32, or one of 256.
inline constexpr std::int64_t kChunk = 256;
inline constexpr int kChunkBlocks = 8;

/// Codes that begin with some column of a row, a multiple of kChunk.
struct ChunkOfRow {
  const QuantizedRow* row;
  std::int64_t column;
  std::int64_t group;
  int blocks;  // of 32 columns that the row still has, at most kChunkBlocks
};

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

/// Says how the codes of a format stand for weights: scale times (code less kOffset), and the bias where
/// there is one. kScales of them, and as many biases, belong to 32 columns.
///
/// Each has, for a chunk: scales(chunk, scale, bias), and codes(chunk, b), those of block b.
template <bool kIsSigned, int kLess, int kScalesOfBlock, bool kBias>
struct CodesOf {
  static constexpr bool kSigned = kIsSigned;
  static constexpr int kOffset = kLess;
  static constexpr int kScales = kScalesOfBlock;
  static constexpr bool kHasBias = kBias;
};

template <std::int64_t kBytes>
HWY_INLINE const std::uint8_t* block_of(const ChunkOfRow& c, int b = 0) {
  return c.row->codes + (c.column / 32 + b) * kBytes;
}
template <std::int64_t kBytes>
HWY_INLINE const std::uint8_t* large_block_of(const ChunkOfRow& c) {
  return c.row->codes + c.column / kChunk * kBytes;
}
/// Asks for bytes ahead of those of a chunk.
template <std::int64_t kBytes>
HWY_INLINE void ask_ahead_of(const std::uint8_t* p) {
  for (std::int64_t i = 0; i < kBytes; i += 64) ask_ahead(p + i);
}

struct CodesQ40 : CodesOf<false, 8, 1, false> {
  static constexpr std::int64_t kBytes = 18;
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* /*bias*/) {
    ask_ahead_of<8 * 18>(block_of<18>(c));
    halves_apart(block_of<18>(c), 18, c.blocks, scale);
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) { return nibbles_apart(block_of<18>(c, b) + 2); }
};

struct CodesQ41 : CodesOf<false, 0, 1, true> {
  static constexpr std::int64_t kBytes = 20;
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* bias) {
    ask_ahead_of<8 * 20>(block_of<20>(c));
    halves_apart(block_of<20>(c), 20, c.blocks, scale);
    halves_apart(block_of<20>(c) + 2, 20, c.blocks, bias);
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) { return nibbles_apart(block_of<20>(c, b) + 4); }
};

struct CodesQ50 : CodesOf<false, 16, 1, false> {
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* /*bias*/) {
    ask_ahead_of<8 * 22>(block_of<22>(c));
    halves_apart(block_of<22>(c), 22, c.blocks, scale);
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) {
    const std::uint8_t* p = block_of<22>(c, b);
    return joined(nibbles_apart(p + 6), sixteens(p + 2));
  }
};

struct CodesQ51 : CodesOf<false, 0, 1, true> {
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* bias) {
    ask_ahead_of<8 * 24>(block_of<24>(c));
    halves_apart(block_of<24>(c), 24, c.blocks, scale);
    halves_apart(block_of<24>(c) + 2, 24, c.blocks, bias);
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) {
    const std::uint8_t* p = block_of<24>(c, b);
    return joined(nibbles_apart(p + 8), sixteens(p + 4));
  }
};

struct CodesQ80 : CodesOf<true, 0, 1, false> {
  static constexpr std::int64_t kBytes = 34;
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* /*bias*/) {
    ask_ahead_of<8 * 34>(block_of<34>(c));
    halves_apart(block_of<34>(c), 34, c.blocks, scale);
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) { return load_codes(block_of<34>(c, b) + 2); }
};

struct CodesIq4 : CodesOf<true, 0, 1, false> {
  static constexpr std::int64_t kBytes = 18;
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* /*bias*/) {
    ask_ahead_of<8 * 18>(block_of<18>(c));
    halves_apart(block_of<18>(c), 18, c.blocks, scale);
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) {
    return looked_up(kIq4, nibbles_apart(block_of<18>(c, b) + 2));
  }
};

/// Twice the values of E2M1, and 16.
inline constexpr std::int8_t kE2m1AndSixteen[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                                    16, 15, 14, 13, 12, 10, 8,  4};

struct CodesMxfp4 : CodesOf<false, 16, 1, false> {
  static constexpr std::int64_t kBytes = 17;
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* /*bias*/) {
    const std::uint8_t* p = block_of<17>(c);
    ask_ahead_of<8 * 17>(p);
    for (int b = 0; b < c.blocks; ++b, p += 17)
      scale[b] = std::bit_cast<float>(*p < 2 ? 0x00200000U << *p : (*p - 1U) << 23);
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) {
    return looked_up(kE2m1AndSixteen, nibbles_apart(block_of<17>(c, b) + 1));
  }
};

/// out[i] = -from[i] for kCount floats, a multiple of eight.
template <int kCount>
HWY_INLINE void negated(const float* from, float* out) {
  const hn::CappedTag<float, 8> d;
  for (std::size_t i = 0; i < kCount; i += hn::Lanes(d))
    hn::StoreU(hn::Neg(hn::LoadU(d, from + i)), d, out + i);
}

template <bool kHasFifth>
struct CodesQ45K : CodesOf<false, 0, 1, true> {
  static constexpr std::int64_t kBytes = kHasFifth ? 176 : 144, kFirst = kHasFifth ? 48 : 16;
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* bias) {
    const std::uint8_t* p = large_block_of<kBytes>(c);
    ask_ahead_of<kBytes>(p);
    const SixBitPairs pairs(half_at(p), half_at(p + 2), p + 4);
    std::memcpy(scale, pairs.scale, sizeof(pairs.scale));
    negated<8>(pairs.min, bias);
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) {
    const std::uint8_t* p = large_block_of<kBytes>(c);
    const Codes low = bits_at<4>(load_codes(p + kFirst + b / 2 * 32), b % 2 * 4);
    if constexpr (!kHasFifth)
      return low;
    else
      return joined(low, shifted_up<4>(bits_at<1>(load_codes(p + 16), b)));
  }
};

struct CodesQ6K : CodesOf<false, 32, 2, false> {
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* /*bias*/) {
    const std::uint8_t* p = large_block_of<210>(c);
    ask_ahead_of<210>(p);
    scale_codes<16>(half_at(p + 208), reinterpret_cast<const std::int8_t*>(p + 192), scale);
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) {
    const std::uint8_t* p = large_block_of<210>(c);
    const int n = b / 4, i = b % 4;
    const Codes low = bits_at<4>(load_codes(p + 64 * n + i % 2 * 32), i / 2 * 4);
    return joined(low, shifted_up<4>(bits_at<2>(load_codes(p + 128 + 32 * n), 2 * i)));
  }
};

struct CodesQ2K : CodesOf<false, 0, 2, true> {
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* bias) {
    const std::uint8_t* p = large_block_of<84>(c);
    ask_ahead_of<84>(p);
    std::uint8_t codes[32];
    for (int j = 0; j < 16; ++j) {
      codes[j] = p[j] & 15;
      codes[j + 16] = p[j] >> 4;
    }
    float mins[16];
    scale_codes<16>(half_at(p + 80), codes, scale);
    scale_codes<16>(half_at(p + 82), codes + 16, mins);
    negated<16>(mins, bias);
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) {
    return bits_at<2>(load_codes(large_block_of<84>(c) + 16 + b / 4 * 32), b % 4 * 2);
  }
};

struct CodesQ3K : CodesOf<false, 4, 2, false> {
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* /*bias*/) {
    const std::uint8_t* p = large_block_of<110>(c);
    ask_ahead_of<110>(p);
    const SixBitCodes codes(p + 96);
    scale_codes<16>(half_at(p + 108), codes.at, scale);
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) {
    const std::uint8_t* p = large_block_of<110>(c);
    return joined(bits_at<2>(load_codes(p + 32 + b / 4 * 32), b % 4 * 2),
                  shifted_up<2>(bits_at<1>(load_codes(p), b)));
  }
};

/// Codes of 8 bits are taken less 128, as signed ones.
template <int kBits>
struct CodesAffine : CodesOf<kBits == 8, 0, 1, true> {
  static HWY_INLINE void scales(const ChunkOfRow& c, float* scale, float* bias) {
    ask_ahead_of<32 * kBits>(c.row->codes + c.column * kBits / 8);
    for (int b = 0; b < c.blocks; ++b) {
      const std::int64_t g = (c.column + 32 * b) / c.group;
      scale[b] = c.row->scales[g];
      bias[b] = kBits == 8 ? c.row->biases[g] + 128 * scale[b] : c.row->biases[g];
    }
  }
  static HWY_INLINE Codes codes(const ChunkOfRow& c, int b) {
    const std::uint8_t* p = c.row->codes + (c.column + 32 * b) * kBits / 8;
    if constexpr (kBits == 8) return less_128(load_codes(p));
    if constexpr (kBits == 4) return nibbles_in_turns(p);
    return pairs_in_turns(p);
  }
};

/// Calls body(format) with the struct of a format above.
template <class Body>
HWY_INLINE void with_codes_of(QuantizedFormat format, const Body& body) {
  switch (format) {
    case QuantizedFormat::q4_0:
      return body(CodesQ40());
    case QuantizedFormat::q4_1:
      return body(CodesQ41());
    case QuantizedFormat::q5_0:
      return body(CodesQ50());
    case QuantizedFormat::q5_1:
      return body(CodesQ51());
    case QuantizedFormat::q8_0:
      return body(CodesQ80());
    case QuantizedFormat::q2_k:
      return body(CodesQ2K());
    case QuantizedFormat::q3_k:
      return body(CodesQ3K());
    case QuantizedFormat::q4_k:
      return body(CodesQ45K<false>());
    case QuantizedFormat::q5_k:
      return body(CodesQ45K<true>());
    case QuantizedFormat::q6_k:
      return body(CodesQ6K());
    case QuantizedFormat::iq4_nl:
      return body(CodesIq4());
    case QuantizedFormat::mxfp4:
      return body(CodesMxfp4());
    case QuantizedFormat::affine2:
      return body(CodesAffine<2>());
    case QuantizedFormat::affine4:
      return body(CodesAffine<4>());
    case QuantizedFormat::affine8:
      return body(CodesAffine<8>());
    case QuantizedFormat::codebook4:
    case QuantizedFormat::fp8_e4m3:
    case QuantizedFormat::f32:
    case QuantizedFormat::f16:
    case QuantizedFormat::bf16:
      return;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();
#endif  // CALDERA_INTEGER_CODES_INL
