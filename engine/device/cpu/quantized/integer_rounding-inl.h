// Rounding x to 8 bits by blocks. Included once for every instruction set, after integer_codes-inl.h.
#if defined(CALDERA_INTEGER_ROUNDING_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CALDERA_INTEGER_ROUNDING_INL
#undef CALDERA_INTEGER_ROUNDING_INL
#else
#define CALDERA_INTEGER_ROUNDING_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {

/// A block of x, but for its codes.
struct RoundedFacts {
  float scale;
  std::int32_t sums[2];  // of the codes of each half
};

/// The largest magnitude of a block, or NaN: the bits of magnitudes are in their order, NaN above infinity.
HWY_INLINE float largest_of(const float* x) {
  VI most = hn::Zero(I());
  for (std::int64_t j = 0; j < kRoundedBlock; j += kLanes)
    most = hn::Max(most, hn::BitCast(I(), hn::Abs(hn::LoadU(F(), x + j))));
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(I(), most)));
}

#if CALDERA_HAS_BYTE_VECTORS

/// Rounds x times a factor, and sums each half.
HWY_INLINE void round_times(const float* x, float factor, std::int8_t* codes, std::int32_t* sums) {
  const auto at = [&](int j) HWY_ATTR {
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * j), _mm256_set1_ps(factor)));
  };
  const __m256i mixed =
      _mm256_packs_epi16(_mm256_packs_epi32(at(0), at(1)), _mm256_packs_epi32(at(2), at(3)));
  const __m256i all = _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), all);
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), all);
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  const __m256i eights = _mm256_hadd_epi32(fours, fours);
  const __m256i halves = _mm256_hadd_epi32(eights, eights);
  sums[0] = _mm_cvtsi128_si32(_mm256_castsi256_si128(halves));
  sums[1] = _mm_cvtsi128_si32(_mm256_extracti128_si256(halves, 1));
}

#else  // CALDERA_HAS_BYTE_VECTORS

HWY_INLINE void round_times(const float* x, float factor, std::int8_t* codes, std::int32_t* sums) {
  for (int half = 0; half < 2; ++half) {
    VI sum = hn::Zero(I());
    for (std::int64_t j = half * 16; j < half * 16 + 16; j += kLanes) {
      const VI rounded = hn::NearestInt(hn::Mul(hn::LoadU(F(), x + j), hn::Set(F(), factor)));
      sum = hn::Add(sum, rounded);
      hn::StoreU(hn::DemoteTo(SignedBytes(), rounded), SignedBytes(), codes + j);
    }
    sums[half] = hn::GetLane(hn::SumOfLanes(I(), sum));
  }
}

#endif  // CALDERA_HAS_BYTE_VECTORS

HWY_INLINE RoundedFacts round_block(const float* x, std::int8_t* codes) {
  const float largest = largest_of(x);
  if (!(largest >= kLeastRounded && largest <= std::numeric_limits<float>::max())) {
    std::memset(codes, 0, kRoundedBlock);
    return {largest < kLeastRounded ? 0 : std::numeric_limits<float>::quiet_NaN(), {0, 0}};
  }
  RoundedFacts facts{largest / 127, {0, 0}};
  round_times(x, 127 / largest, codes, facts.sums);
  return facts;
}

inline void round_rows(const float* x, std::int64_t stride, std::int64_t rows, const RoundedRows& out) {
  for (std::int64_t m = 0; m < rows; ++m) {
    const RoundedRows row = out.from(m);
    for (std::int64_t b = 0; b < out.blocks(); ++b) {
      const RoundedFacts facts =
          round_block(x + m * stride + b * kRoundedBlock, row.codes + b * kRoundedBlock);
      row.scales[b] = facts.scale;
      row.minus[b] = -(facts.sums[0] + facts.sums[1]);
      row.sums[b] = -facts.scale * static_cast<float>(row.minus[b]);
      for (int half = 0; half < 2; ++half) {
        row.half_minus[2 * b + half] = -facts.sums[half];
        row.half_sums[2 * b + half] = facts.scale * static_cast<float>(facts.sums[half]);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();
#endif  // CALDERA_INTEGER_ROUNDING_INL
