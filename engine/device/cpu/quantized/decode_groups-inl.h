// Decoders of formats whose scales are apart from the codes: as decode_blocks-inl.h, after which this is
// included, from the first column to the last of a run.
#if defined(CALDERA_DECODE_GROUPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_DECODE_GROUPS_INL
#undef CALDERA_DECODE_GROUPS_INL
#else
#define CALDERA_DECODE_GROUPS_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {

/// The number that the bytes from p on are.
template <std::int64_t kBytes>
HWY_INLINE std::uint32_t word_at(const std::uint8_t* p) {
  std::uint32_t word = 0;
  std::memcpy(&word, p, static_cast<std::size_t>(kBytes));
  return word;
}

/// Codes k and on, of 4 bits: a byte's first is its low nibble, or its high one.
template <bool kHighFirst>
HWY_INLINE VI nibbles_at(const std::uint8_t* codes, std::int64_t k) {
  const U d;
  const std::uint8_t* p = codes + k / 2;
  auto shift = hn::ShiftLeft<2>(hn::And(hn::Iota(d, static_cast<std::uint32_t>(k)), hn::Set(d, 7U)));
  if constexpr (kHighFirst) shift = hn::Xor(shift, hn::Set(d, 4U));
  if constexpr (kLanes < 8) {  // the word that they are in begins at a multiple of eight codes
    const auto words = hn::Set(d, word_at<4>(codes + k / 8 * 4));
    return hn::BitCast(I(), hn::And(hn::Shr(words, shift), hn::Set(d, 15U)));
  } else {
    auto words = hn::Set(d, word_at<4>(p));
    if constexpr (kLanes == 16)
      words = hn::IfThenElse(hn::FirstN(d, 8), words, hn::Set(d, word_at<4>(p + 4)));
    return hn::BitCast(I(), hn::And(hn::Shr(words, shift), hn::Set(d, 15U)));
  }
}

/// Codes k and on, of 2 bits, the first in a byte's low ones.
HWY_INLINE VI pairs_of_bits_at(const std::uint8_t* codes, std::int64_t k) {
  const U d;
  const auto words = hn::Set(d, word_at<4>(codes + k / 16 * 4));
  const auto lane = hn::And(hn::Iota(d, static_cast<std::uint32_t>(k)), hn::Set(d, 15U));
  return hn::BitCast(I(), hn::And(hn::Shr(words, hn::ShiftLeft<1>(lane)), hn::Set(d, 3U)));
}

/// In two roundings, as the references of these formats have it: an f32 scale may have digits that one would
/// keep.
template <int kBits, class Sink>
HWY_INLINE void walk_affine(const QuantizedRow& row, std::int64_t group, std::int64_t first,
                            std::int64_t count, Sink& sink) {
  for (std::int64_t g = first; g < first + count; g += group) {
    const V scale = hn::Set(F(), row.scales[g / group]);
    const V bias = hn::Set(F(), row.biases[g / group]);
    for (std::int64_t block = g; block < g + group; block += 32) {
      for (std::int64_t k = block; k < block + 32; k += kLanes) {
        VI codes;
        if constexpr (kBits == 8)
          codes = bytes_at(row.codes + k);
        else if constexpr (kBits == 4)
          codes = nibbles_at<false>(row.codes, k);
        else
          codes = pairs_of_bits_at(row.codes, k);
        sink(k - first, hn::Add(hn::Mul(to_float(codes), scale), bias));
      }
    }
  }
}

template <class Sink>
HWY_INLINE void walk_codebook4(const QuantizedRow& row, std::int64_t group, std::int64_t first,
                               std::int64_t count, Sink& sink) {
  for (std::int64_t g = first; g < first + count; g += group) {
    const V scale = hn::Set(F(), row.scales[g / group]);
    for (std::int64_t block = g; block < g + group; block += 32) {
      for (std::int64_t k = block; k < block + 32; k += kLanes) {
        const VI codes = nibbles_at<true>(row.codes, k);
        V values;
        if constexpr (kLanes == 16)
          values = hn::TableLookupLanes(hn::LoadU(F(), row.table), hn::IndicesFromVec(F(), codes));
        else
          values = hn::GatherIndex(F(), row.table, codes);
        sink(k - first, hn::Mul(values, scale));
      }
    }
  }
}

/// OCP E4M3 without infinities.
HWY_INLINE V e4m3(VI codes) {
  const VI magnitude = hn::And(codes, hn::Set(I(), 0x7f));
  const VI sign = hn::ShiftLeft<24>(hn::And(codes, hn::Set(I(), 0x80)));
  // Eighths of the least power of two, or an exponent with another bias. (To take the former as subnormal
  // numbers of f32 would cost hundreds of cycles.)
  const VI is_normal = hn::VecFromMask(I(), hn::Gt(magnitude, hn::Set(I(), 7)));
  const VI large = hn::Add(hn::ShiftLeft<20>(magnitude), hn::Set(I(), 0x3c000000));
  const V small = hn::Mul(to_float(magnitude), hn::Set(F(), 0x1p-9F));
  const VI value = hn::IfVecThenElse(is_normal, large, hn::BitCast(I(), small));
  const VI nan = hn::VecFromMask(I(), hn::Eq(magnitude, hn::Set(I(), 0x7f)));
  return hn::BitCast(F(), hn::Or(hn::Or(value, sign), nan));
}

/// Elements of a floating type in memory, as f32.
template <class T>
HWY_INLINE V floats_at(const std::uint8_t* p) {
  if constexpr (sizeof(T) == 4) {
    V v;
    std::memcpy(&v, p, sizeof(v));
    return v;
  } else {
    const hn::Rebind<std::uint16_t, F> d;
    const auto bits = hn::LoadU(d, reinterpret_cast<const std::uint16_t*>(p));
    return hn::PromoteTo(F(), hn::BitCast(hn::Rebind<T, F>(), bits));
  }
}

/// Walks like walk_fp8, without scales.
template <class T, class Sink>
HWY_INLINE void walk_plain(const std::uint8_t* p, std::int64_t first, std::int64_t count, Sink& sink) {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  p += first * kSize;
  std::int64_t k = 0;
  constexpr std::int64_t kLine = 64 / kSize;  // weights of a cache line
  for (; k + kLine <= count; k += kLine) {
    ask_ahead(p + k * kSize);
    for (std::int64_t j = 0; j < kLine; j += kLanes) sink(k + j, floats_at<T>(p + (k + j) * kSize));
  }
  for (; k + kLanes <= count; k += kLanes) sink(k, floats_at<T>(p + k * kSize));
  if (k == count) return;
  std::uint8_t rest[static_cast<std::size_t>(kLanes * kSize)] = {};
  std::memcpy(rest, p + k * kSize, static_cast<std::size_t>((count - k) * kSize));
  sink.rest(k, floats_at<T>(rest), count - k);
}

/// Whole vectors alone: a group's last columns come as the first lanes of one, whose others are 0, to
/// `rest(k, weights, count)`.
template <class Sink>
HWY_INLINE void walk_fp8(const QuantizedRow& row, std::int64_t group, std::int64_t first, std::int64_t count,
                         Sink& sink) {
  for (std::int64_t k = first; k < first + count;) {
    const std::int64_t end = std::min(first + count, (k / group + 1) * group);
    const V scale = hn::Set(F(), row.scales[k / group]);
    for (; k + kLanes <= end; k += kLanes) sink(k - first, hn::Mul(e4m3(bytes_at(row.codes + k)), scale));
    if (k == end) continue;
    std::uint8_t rest[static_cast<std::size_t>(kLanes)] = {};
    std::memcpy(rest, row.codes + k, static_cast<std::size_t>(end - k));
    // A scale that is no number makes none of the lanes that stand for no column either.
    const auto there = hn::FirstN(F(), static_cast<std::size_t>(end - k));
    sink.rest(k - first, hn::IfThenElseZero(there, hn::Mul(e4m3(bytes_at(rest)), scale)), end - k);
    k = end;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();
#endif  // CALDERA_DECODE_GROUPS_INL
