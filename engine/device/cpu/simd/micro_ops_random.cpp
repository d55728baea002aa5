// Philox uniform and normal micro-operations. a: the i64 seed, broadcast over the tile; b: linear indices.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <numbers>

#include "engine/device/cpu/simd/micro_ops.h"
#include "engine/device/cpu/simd/philox.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/simd/micro_ops_random.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Blocks of the stream that are made together, and the numbers of which they have one in each word.
constexpr std::int64_t kBlocks = 32;
constexpr std::int64_t kNumbers = 4 * kBlocks;

/// Word w of each block, one after the other.
struct Words {
  HWY_ALIGN std::uint32_t of[4][kBlocks];
};

#if HWY_TARGET == HWY_SCALAR

void make_words(const std::uint32_t* blocks, std::uint64_t seed, Words& words) {
  for (std::int64_t b = 0; b < kBlocks; ++b) {
    const auto block = philox4x32(blocks[b], seed);
    for (std::size_t w = 0; w < 4; ++w) words.of[w][b] = block[w];
  }
}

#else

/// The products of x and a constant, of 64 bits, in halves.
template <class D, class V>
HWY_INLINE void multiply(D d, V x, std::uint32_t by, V& low, V& high) {
  const hn::RepartitionToWide<D> wide;
  const auto factor = hn::Set(d, by);
  const auto even = hn::MulEven(x, factor);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), factor);
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
}

/// philox4x32 of philox.h, a lane a block.
void make_words(const std::uint32_t* blocks, std::uint64_t seed, Words& words) {
  const hn::CappedTag<std::uint32_t, kBlocks> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t b = 0; b < kBlocks; b += lanes) {
    auto c0 = hn::LoadU(d, blocks + b);
    auto c1 = hn::Zero(d), c2 = hn::Zero(d), c3 = hn::Zero(d);
    auto k0 = static_cast<std::uint32_t>(seed);
    auto k1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
      auto low0 = c0, high0 = c0, low1 = c2, high1 = c2;
      multiply(d, c0, 0xD2511F53, low0, high0);
      multiply(d, c2, 0xCD9E8D57, low1, high1);
      c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, k0));
      c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, k1));
      c1 = low1;
      c3 = low0;
    }
    hn::Store(c0, d, words.of[0] + b);
    hn::Store(c1, d, words.of[1] + b);
    hn::Store(c2, d, words.of[2] + b);
    hn::Store(c3, d, words.of[3] + b);
  }
}

#endif

using D64 = hn::ScalableTag<double>;
using I64 = hn::RebindToSigned<D64>;
using U64 = hn::RebindToUnsigned<D64>;
using U32 = hn::Rebind<std::uint32_t, D64>;
using I32 = hn::Rebind<std::int32_t, D64>;
using V64 = hn::Vec<D64>;

/// The value of a polynomial, whose coefficients begin with that of the highest power.
template <class... Coefficients>
HWY_INLINE V64 polynomial(V64 x, double highest, Coefficients... others) {
  const D64 d;
  V64 value = hn::Set(d, highest);
  ((value = hn::MulAdd(value, x, hn::Set(d, others))), ...);
  return value;
}

/// The logarithm of n 2^-24, where n is an integer from 1 to 2^24. Coefficients of fdlibm's e_log.c (Sun
/// Microsystems, 1993), whose error is below one unit in the last place.
HWY_INLINE V64 log_of_fraction(V64 n) {
  const D64 d;
  const I64 di;
  const auto root_half = hn::Set(di, std::bit_cast<std::int64_t>(std::numbers::sqrt2 / 2));
  const auto bits = hn::BitCast(di, n);
  const auto power = hn::BitCast(di, hn::ShiftRight<52>(hn::BitCast(U64(), hn::Sub(bits, root_half))));
  const V64 f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<52>(power))), hn::Set(d, 1.0));
  const V64 k = hn::Sub(hn::ConvertTo(d, power), hn::Set(d, 24.0));
  const V64 s = hn::Div(f, hn::Add(hn::Set(d, 2.0), f));
  const V64 z = hn::Mul(s, s);
  const V64 rest =
      hn::Mul(z, polynomial(z, 1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
                            2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
                            6.666666666666735130e-01));
  const V64 half = hn::Mul(hn::Mul(f, f), hn::Set(d, 0.5));
  const V64 low = hn::MulAdd(s, hn::Add(half, rest), hn::Mul(k, hn::Set(d, 1.90821492927058770002e-10)));
  return hn::MulAdd(k, hn::Set(d, 6.93147180369123816490e-01), hn::Sub(f, hn::Sub(half, low)));
}

/// Cosine and sine of n 2^-24 turns, where n is an integer from 0 to 2^24 - 1: of the angle to the nearest
/// quarter of a turn by the coefficients of fdlibm's k_cos.c and k_sin.c.
HWY_INLINE void cosine_and_sine(hn::Vec<I32> n, V64& cosine, V64& sine) {
  const D64 d;
  const I32 d32;
  const I64 di;
  const auto quarter = hn::ShiftRight<22>(hn::Add(n, hn::Set(d32, 1 << 21)));
  const auto left = hn::Sub(n, hn::ShiftLeft<22>(quarter));
  const V64 x = hn::Mul(hn::PromoteTo(d, left), hn::Set(d, 2 * std::numbers::pi * 0x1p-24));
  const V64 z = hn::Mul(x, x);
  const V64 sine_rest =
      polynomial(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
                 -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01);
  const V64 s = hn::MulAdd(hn::Mul(x, z), sine_rest, x);
  const V64 cosine_rest =
      polynomial(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
                 2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02);
  const V64 c = hn::MulAdd(hn::Mul(z, z), cosine_rest, hn::MulAdd(z, hn::Set(d, -0.5), hn::Set(d, 1.0)));
  const auto q = hn::PromoteTo(di, quarter);
  const auto is_odd = hn::MaskFromVec(
      hn::BitCast(d, hn::VecFromMask(di, hn::Eq(hn::And(q, hn::Set(di, 1)), hn::Set(di, 1)))));
  const auto two = hn::Set(di, 2);
  const auto cosine_sign = hn::ShiftLeft<62>(hn::And(hn::Add(q, hn::Set(di, 1)), two));
  const auto sine_sign = hn::ShiftLeft<62>(hn::And(q, two));
  cosine = hn::Xor(hn::IfThenElse(is_odd, s, c), hn::BitCast(d, cosine_sign));
  sine = hn::Xor(hn::IfThenElse(is_odd, c, s), hn::BitCast(d, sine_sign));
}

/// Box-Muller of kBlocks pairs of words: two numbers each.
void make_normals(const std::uint32_t* first, const std::uint32_t* second, double* even, double* odd) {
  const D64 d;
  const U32 du;
  const I32 di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto high_bits = [&](const std::uint32_t* words) {
    return hn::BitCast(di, hn::ShiftRight<8>(hn::LoadU(du, words)));
  };
  // Of a block of as many lanes as the largest vectors have: both are powers of two.
  for (std::int64_t b = 0; b < kBlocks; b += lanes) {
    const V64 n = hn::PromoteTo(d, hn::Add(high_bits(first + b), hn::Set(di, 1)));
    const V64 radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0), log_of_fraction(n)));
    V64 cosine, sine;
    cosine_and_sine(high_bits(second + b), cosine, sine);
    hn::StoreU(hn::Mul(radius, cosine), d, even + b);
    hn::StoreU(hn::Mul(radius, sine), d, odd + b);
  }
}

/// out[4 b + w] = words[w][b] of kBlocks blocks.
template <class T>
void interleave(const T (&words)[4][kBlocks], T* out) {
  const hn::CappedTag<T, kBlocks> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t b = 0; b < kBlocks; b += lanes)
    hn::StoreInterleaved4(hn::Load(d, words[0] + b), hn::Load(d, words[1] + b), hn::Load(d, words[2] + b),
                          hn::Load(d, words[3] + b), d, out + 4 * b);
}

/// to[i] = from[i] of kBlocks numbers.
template <class From, class T>
HWY_INLINE void narrow(const From* from, T* to) {
  if constexpr (sizeof(From) == sizeof(T)) {
    std::memcpy(to, from, kBlocks * sizeof(T));
  } else {
    const D64 d;
    const hn::Rebind<float, D64> narrow;
    for (std::int64_t b = 0; b < kBlocks; b += static_cast<std::int64_t>(hn::Lanes(d)))
      hn::StoreU(hn::DemoteTo(narrow, hn::LoadU(d, from + b)), narrow, to + b);
  }
}

template <class T>
struct Uniform {
  static HWY_INLINE void of(const std::uint32_t* words, T* out) {
    for (std::int64_t b = 0; b < kBlocks; ++b) {
      if constexpr (sizeof(T) == 4)
        out[b] = static_cast<float>(static_cast<std::int32_t>(words[b] >> 8)) * 0x1p-24F;
      else
        out[b] = static_cast<double>(words[b]) * 0x1p-32;
    }
  }
  /// The numbers of whole blocks.
  static void all(const Words& words, T* out) {
    HWY_ALIGN T numbers[4][kBlocks];
    for (std::size_t w = 0; w < 4; ++w) of(words.of[w], numbers[w]);
    interleave(numbers, out);
  }
  /// One number of each block: that which its word `which` is of.
  static void some(const Words& words, const std::uint32_t* which, T* out) {
    HWY_ALIGN std::uint32_t chosen[kBlocks];
    for (std::int64_t b = 0; b < kBlocks; ++b) chosen[b] = words.of[which[b]][b];
    of(chosen, out);
  }
};

template <class T>
struct Normal {
  static void all(const Words& words, T* out) {
    HWY_ALIGN double wide[4][kBlocks];
    HWY_ALIGN T numbers[4][kBlocks];
    make_normals(words.of[0], words.of[1], wide[0], wide[1]);
    make_normals(words.of[2], words.of[3], wide[2], wide[3]);
    for (std::size_t w = 0; w < 4; ++w) narrow(wide[w], numbers[w]);
    interleave(numbers, out);
  }
  static void some(const Words& words, const std::uint32_t* which, T* out) {
    HWY_ALIGN std::uint32_t first[kBlocks], second[kBlocks];
    HWY_ALIGN double even[kBlocks], odd[kBlocks];
    for (std::int64_t b = 0; b < kBlocks; ++b) {
      first[b] = words.of[which[b] & 2][b];
      second[b] = words.of[which[b] | 1][b];
    }
    make_normals(first, second, even, odd);
    for (std::int64_t b = 0; b < kBlocks; ++b)
      out[b] = static_cast<T>((which[b] & 1) == 0 ? even[b] : odd[b]);
  }
};

bool are_consecutive(const std::uint32_t* index, std::int64_t n) {
  std::uint32_t others = 0;
  for (std::int64_t i = 0; i < n; ++i) others |= (index[i] - index[0]) ^ static_cast<std::uint32_t>(i);
  return others == 0;
}

template <class Numbers, class T>
void numbers(void* out, const void* a, const void* b, const void*, std::int64_t n) {
  auto* o = static_cast<T*>(out);
  const auto* index = static_cast<const std::uint32_t*>(b);
  const std::uint64_t seed = static_cast<const std::uint64_t*>(a)[0];
  std::uint32_t blocks[kBlocks], which[kBlocks];
  Words words;
  HWY_ALIGN T made[kNumbers];
  if (are_consecutive(index, n)) {
    for (std::int64_t i = 0; i < n;) {
      for (std::int64_t j = 0; j < kBlocks; ++j)
        blocks[j] = (index[i] + 4 * static_cast<std::uint32_t>(j)) / 4;
      make_words(blocks, seed, words);
      Numbers::all(words, made);
      const std::int64_t skipped = index[i] % 4;
      const std::int64_t count = std::min(kNumbers - skipped, n - i);
      std::memcpy(o + i, made + skipped, static_cast<std::size_t>(count) * sizeof(T));
      i += count;
    }
    return;
  }
  for (std::int64_t i = 0; i < n; i += kBlocks) {
    const std::int64_t count = std::min(kBlocks, n - i);
    for (std::int64_t j = 0; j < kBlocks; ++j) {
      const std::uint32_t at = index[i + std::min(j, count - 1)];
      blocks[j] = at / 4;
      which[j] = at % 4;
    }
    make_words(blocks, seed, words);
    Numbers::some(words, which, made);
    std::memcpy(o + i, made, static_cast<std::size_t>(count) * sizeof(T));
  }
}

MicroFn random_op(ScalarOp op, DType result) {
  const bool wide = result == DType::f64;
  if (result != DType::f32 && !wide) return nullptr;
  if (op == ScalarOp::philox_uniform)
    return wide ? numbers<Uniform<double>, double> : numbers<Uniform<float>, float>;
  if (op == ScalarOp::philox_normal)
    return wide ? numbers<Normal<double>, double> : numbers<Normal<float>, float>;
  return nullptr;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(random_op);

MicroFn find_random_op(ScalarOp op, DType result) { return HWY_DYNAMIC_DISPATCH(random_op)(op, result); }
}  // namespace caldera::cpu
#endif
