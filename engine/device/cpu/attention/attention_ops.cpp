#include "engine/device/cpu/attention/attention_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/device/cpu/attention/attention_ops.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/device/cpu/simd/math_f32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace caldera::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Exponentials that are added up in f32, a vector at a time, before they go into the wide sum.
constexpr std::int64_t kVectorsPerSum = 32;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(F32())); }

/// The last n values, fewer than a vector, with `rest` behind them.
VF load_some(const float* from, std::int64_t n, float rest) {
  HWY_ALIGN float padded[hn::MaxLanes(F32())];
  hn::Store(splat(rest), F32(), padded);
  std::memcpy(padded, from, static_cast<std::size_t>(n) * sizeof(float));
  return hn::Load(F32(), padded);
}

void store_some(VF v, float* to, std::int64_t n) {
  HWY_ALIGN float padded[hn::MaxLanes(F32())];
  hn::Store(v, F32(), padded);
  std::memcpy(to, padded, static_cast<std::size_t>(n) * sizeof(float));
}

float maximum_of(const float* values, std::int64_t n) {
  const F32 d;
  VF low = splat(-kInfinity);
  VF high = low;
  std::int64_t i = 0;
  for (; i + 2 * lanes() <= n; i += 2 * lanes()) {
    low = hn::Max(low, hn::LoadU(d, values + i));
    high = hn::Max(high, hn::LoadU(d, values + i + lanes()));
  }
  for (; i + lanes() <= n; i += lanes()) low = hn::Max(low, hn::LoadU(d, values + i));
  if (i < n)
    high = hn::Max(high, n < lanes() ? load_some(values, n, -kInfinity) : hn::LoadU(d, values + n - lanes()));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(low, high)));
}

/// values[i] = share * exp(values[i] - shift); returns their sum.
double exponentials(float* values, std::int64_t n, float shift, float share) {
  const F32 d;
  const VF part = splat(share);
  const VF minus = splat(-shift);
  if (n < lanes()) {
    const VF e = hn::Mul(exp_f32(hn::Add(load_some(values, n, -kInfinity), minus)), part);
    store_some(e, values, n);
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, e)));
  }
  // The last vector overlaps the one before it: it is read before and written after that, and only what is
  // its own counts.
  const std::int64_t left = n % lanes();
  const VF last = hn::Mul(exp_f32(hn::Add(hn::LoadU(d, values + n - lanes()), minus)), part);
  const auto before = hn::FirstN(d, static_cast<std::size_t>(lanes() - left));
  double total =
      left == 0 ? 0 : static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::IfThenZeroElse(before, last))));
  const std::int64_t whole = n - left;
  for (std::int64_t i = 0; i < whole;) {
    VF sum = hn::Zero(d);
    const std::int64_t end = std::min(whole, i + kVectorsPerSum * lanes());
    for (; i < end; i += lanes()) {
      const VF e = hn::Mul(exp_f32(hn::Add(hn::LoadU(d, values + i), minus)), part);
      hn::StoreU(e, d, values + i);
      sum = hn::Add(sum, e);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  hn::StoreU(last, d, values + n - lanes());
  return total;
}

float accumulate(float* scores, std::int64_t n, float share, SoftmaxRow& row) {
  const float maximum = std::max(row.maximum, maximum_of(scores, n));
  const float shift = maximum == -kInfinity ? 0.0F : maximum;
  const float factor = std::exp(row.maximum - shift);
  row.maximum = maximum;
  row.sum = row.sum * static_cast<double>(factor) + exponentials(scores, n, shift, share);
  return factor;
}

bool vanish(const float* scores, std::int64_t n, float highest) {
  const F32 d;
  const VF limit = splat(kExpVanishes);
  bool all = true;
  std::int64_t i = 0;
  for (; all && i + lanes() <= n; i += lanes())
    all = hn::AllTrue(d, hn::Lt(hn::Sub(hn::LoadU(d, scores + i), splat(highest)), limit));
  for (; all && i < n; ++i) all = scores[i] - highest < kExpVanishes;
  return all;
}

void scale(float* values, std::int64_t n, float factor) {
  const F32 d;
  std::int64_t i = 0;
  for (; i + lanes() <= n; i += lanes())
    hn::StoreU(hn::Mul(hn::LoadU(d, values + i), splat(factor)), d, values + i);
  for (; i < n; ++i) values[i] *= factor;
}

void divide(float* values, std::int64_t n, float total) {
  const F32 d;
  std::int64_t i = 0;
  for (; i + lanes() <= n; i += lanes())
    hn::StoreU(hn::Div(hn::LoadU(d, values + i), splat(total)), d, values + i);
  for (; i < n; ++i) values[i] /= total;
}

void gradient(float* scores, float* products, std::int64_t n, float highest, float total, float delta) {
  const F32 d;
  const VF h = splat(highest);
  const VF share = splat(1 / total);
  const VF e = splat(delta);
  std::int64_t i = 0;
  for (; i + lanes() <= n; i += lanes()) {
    const VF p = hn::Mul(exp_f32(hn::Sub(hn::LoadU(d, scores + i), h)), share);
    hn::StoreU(p, d, scores + i);
    hn::StoreU(hn::Mul(p, hn::Sub(hn::LoadU(d, products + i), e)), d, products + i);
  }
  if (i < n) {
    const VF p = hn::Mul(exp_f32(hn::Sub(load_some(scores + i, n - i, 0), h)), share);
    store_some(p, scores + i, n - i);
    store_some(hn::Mul(p, hn::Sub(load_some(products + i, n - i, 0), e)), products + i, n - i);
  }
}

const AttentionOps* ops_of_target() {
  static constexpr AttentionOps ops{accumulate, vanish, scale, divide, gradient};
  return &ops;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::cpu {
HWY_EXPORT(ops_of_target);
const AttentionOps& attention_ops() {
  static const AttentionOps& ops = *HWY_DYNAMIC_DISPATCH(ops_of_target)();
  return ops;
}
}  // namespace caldera::cpu
#endif
