#include "engine/device/cpu/quantized/quantized_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/quantized/quantized_ops.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/quantized/byte_codes-inl.h"
#include "engine/device/cpu/quantized/decode_blocks-inl.h"
#include "engine/device/cpu/quantized/decode_groups-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Hands the weights of columns [first, first + count) to the sink, counted from `first`.
template <class Sink>
HWY_INLINE void walk(const QuantizedLayout& layout, const QuantizedRow& row, std::int64_t first,
                     std::int64_t count, Sink& sink) {
  const QuantizedFacts& f = facts(layout.format);
  // Blocks have 32 or 256 weights: a division would take as long as some of them.
  const int shift = f.block > 0 ? std::countr_zero(static_cast<std::uint64_t>(f.block)) : 0;
  const std::int64_t blocks = count >> shift;
  const std::uint8_t* p = f.block > 0 ? row.codes + (first >> shift) * f.block_bytes : row.codes;
  switch (layout.format) {
    case QuantizedFormat::q4_0:
      return walk_q4_0(p, blocks, sink);
    case QuantizedFormat::q4_1:
      return walk_q4_1(p, blocks, sink);
    case QuantizedFormat::q5_0:
      return walk_q5<false>(p, blocks, sink);
    case QuantizedFormat::q5_1:
      return walk_q5<true>(p, blocks, sink);
    case QuantizedFormat::q8_0:
      return walk_q8_0(p, blocks, sink);
    case QuantizedFormat::q2_k:
      return walk_q2_k(p, blocks, sink);
    case QuantizedFormat::q3_k:
      return walk_q3_k(p, blocks, sink);
    case QuantizedFormat::q4_k:
      return walk_q45_k<false>(p, blocks, sink);
    case QuantizedFormat::q5_k:
      return walk_q45_k<true>(p, blocks, sink);
    case QuantizedFormat::q6_k:
      return walk_q6_k(p, blocks, sink);
    case QuantizedFormat::iq4_nl:
      return walk_table<2>(p, blocks, kIq4, HalfScale(), sink);
    case QuantizedFormat::mxfp4:
      return walk_table<1>(p, blocks, kE2m1, HalfPowerOfTwo(), sink);
    case QuantizedFormat::affine2:
      return walk_affine<2>(row, layout.group, first, count, sink);
    case QuantizedFormat::affine4:
      return walk_affine<4>(row, layout.group, first, count, sink);
    case QuantizedFormat::affine8:
      return walk_affine<8>(row, layout.group, first, count, sink);
    case QuantizedFormat::codebook4:
      return walk_codebook4(row, layout.group, first, count, sink);
    case QuantizedFormat::fp8_e4m3:
      return walk_fp8(row, layout.group, first, count, sink);
    case QuantizedFormat::f32:
      return walk_plain<float>(row.codes, first, count, sink);
    case QuantizedFormat::f16:
      return walk_plain<hwy::float16_t>(row.codes, first, count, sink);
    case QuantizedFormat::bf16:
      return walk_plain<hwy::bfloat16_t>(row.codes, first, count, sink);
  }
}

struct StoreSink {
  float* out;

  HWY_INLINE void operator()(std::int64_t k, V weights) { hn::StoreU(weights, F(), out + k); }
  HWY_INLINE void block(std::int64_t k, const V (&codes)[kVectors], V scale) {
    for (std::int64_t j = 0; j < kVectors; ++j) (*this)(k + j * kLanes, hn::Mul(codes[j], scale));
  }
  HWY_INLINE void rest(std::int64_t k, V weights, std::int64_t count) {
    HWY_ALIGN float lanes[static_cast<std::size_t>(kLanes)];
    hn::Store(weights, F(), lanes);
    std::memcpy(out + k, lanes, static_cast<std::size_t>(count) * sizeof(float));
  }
};

/// Dot products with kRows rows of x. Two sums a row, taken in turns: one would wait for itself.
template <int kRows>
struct DotSink {
  const float* x;
  std::int64_t stride;
  V even[kRows], odd[kRows];

  HWY_INLINE DotSink(const float* rows, std::int64_t apart) : x(rows), stride(apart) {
    for (int i = 0; i < kRows; ++i) even[i] = odd[i] = hn::Zero(F());
  }
  HWY_INLINE void operator()(std::int64_t k, V weights) {
    for (int i = 0; i < kRows; ++i) {
      const V sum = hn::MulAdd(weights, hn::LoadU(F(), x + i * stride + k), odd[i]);
      odd[i] = even[i];
      even[i] = sum;
    }
  }
  /// Each weight is scaled before the sum: a code of 0 is NaN under a scale that is infinite.
  HWY_INLINE void block(std::int64_t k, const V (&codes)[kVectors], V scale) {
    for (std::int64_t j = 0; j < kVectors; ++j) (*this)(k + j * kLanes, hn::Mul(codes[j], scale));
  }
  HWY_INLINE void rest(std::int64_t k, V weights, std::int64_t count) {
    for (int i = 0; i < kRows; ++i) {
      HWY_ALIGN float lanes[static_cast<std::size_t>(kLanes)] = {};
      std::memcpy(lanes, x + i * stride + k, static_cast<std::size_t>(count) * sizeof(float));
      even[i] = hn::MulAdd(weights, hn::Load(F(), lanes), even[i]);
    }
  }
  HWY_INLINE float sum(int i) const { return hn::GetLane(hn::SumOfLanes(F(), hn::Add(even[i], odd[i]))); }
};

void decode(const QuantizedLayout& layout, const QuantizedRow& row, std::int64_t first, std::int64_t count,
            float* out) {
  StoreSink sink{out};
  walk(layout, row, first, count, sink);
}

template <int kRows>
void dot_rows(const QuantizedLayout& layout, const QuantizedRow& row, std::int64_t columns, const float* x,
              std::int64_t x_stride, float* out, std::int64_t out_stride) {
  DotSink<kRows> sink(x, x_stride);
  walk(layout, row, 0, columns, sink);
  for (int i = 0; i < kRows; ++i) out[i * out_stride] = sink.sum(i);
}

void dot(const QuantizedLayout& layout, const QuantizedRow& row, std::int64_t columns, const float* x,
         std::int64_t x_stride, std::int64_t m, float* out, std::int64_t out_stride) {
  for (; m >= 2; m -= 2, x += 2 * x_stride, out += 2 * out_stride)
    dot_rows<2>(layout, row, columns, x, x_stride, out, out_stride);
  if (m == 1) dot_rows<1>(layout, row, columns, x, x_stride, out, out_stride);
}

const QuantizedOps* ops_of_target() {
  static constexpr QuantizedOps ops{decode, dot};
  return &ops;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(ops_of_target);

const QuantizedOps& quantized_ops() {
  static const QuantizedOps& ops = *HWY_DYNAMIC_DISPATCH(ops_of_target)();
  return ops;
}

const float* half_table() {
  static const auto kTable = [] {
    std::vector<float> table(std::size_t{1} << 16);
    // By parts, so that this is right for any instruction set: 10 bits of mantissa, 5 of exponent.
    for (std::size_t bits = 0; bits < table.size(); ++bits) {
      const auto mantissa = static_cast<float>(bits & 0x3ff);
      const int exponent = static_cast<int>(bits >> 10 & 0x1f);
      float value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
      if (exponent == 0x1f)
        value =
            mantissa == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
      table[bits] = (bits & 0x8000) != 0 ? -value : value;
    }
    return table;
  }();
  return kTable.data();
}

std::int64_t column_unit(const QuantizedLayout& layout) {
  if (is_block_format(layout.format)) return facts(layout.format).block;
  return layout.format == QuantizedFormat::fp8_e4m3 || is_plain(layout.format) ? 1 : layout.group;
}

}  // namespace caldera::cpu
#endif
