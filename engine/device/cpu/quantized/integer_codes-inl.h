// The codes of 32 columns at a time, as integers, and their scales, of every format that has such. Included
// once for every instruction set, between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE, after
// byte_codes-inl.h and decode_blocks-inl.h, whose layouts these are.
#if defined(CALDERA_INTEGER_CODES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_INTEGER_CODES_INL
#undef CALDERA_INTEGER_CODES_INL
#else
#define CALDERA_INTEGER_CODES_INL
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
    const SixBitPairs pairs(Halves(), p);
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
    scale_codes<16>(Halves(), p + 208, reinterpret_cast<const std::int8_t*>(p + 192), scale);
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
    scale_codes<16>(Halves(), p + 80, codes, scale);
    scale_codes<16>(Halves(), p + 82, codes + 16, mins);
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
    scale_codes<16>(Halves(), p + 108, codes.at, scale);
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
