#include "lm/generate/sampling/logit_rows.h"

#include <algorithm>
#include <array>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lm/generate/sampling/logit_rows.cpp"
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace caldera::detail {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
constexpr std::size_t kMostLanes = 16;
using D = hn::CappedTag<float, kMostLanes>;
using DI = hn::RebindToSigned<D>;
using DU = hn::Rebind<std::uint16_t, D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;

V splat(float x) { return hn::Set(D(), x); }
// No product and sum become one instruction: not every processor has it, and results are to be the same.
V multiply_add(V a, V b, V c) { return hn::Add(hn::Mul(a, b), c); }

/// exp(x) for x in [-87, 0]; polynomial: Cephes mathematical library, single precision (S. L. Moshier).
V exp_of(V x) {
  const V n = hn::Round(hn::Mul(x, splat(1.44269504088896341F)));
  V r = hn::Sub(x, hn::Mul(n, splat(0.693359375F)));
  r = hn::Sub(r, hn::Mul(n, splat(-2.12194440e-4F)));
  V p = splat(1.9875691500E-4F);
  p = multiply_add(p, r, splat(1.3981999507E-3F));
  p = multiply_add(p, r, splat(8.3334519073E-3F));
  p = multiply_add(p, r, splat(4.1665795894E-2F));
  p = multiply_add(p, r, splat(1.6666665459E-1F));
  p = multiply_add(p, r, splat(5.0000001201E-1F));
  const V e = hn::Add(multiply_add(p, hn::Mul(r, r), r), splat(1.0F));
  const VI power = hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(DI(), n), hn::Set(DI(), 127)));
  return hn::Mul(e, hn::BitCast(D(), power));
}

VI in_units(V share) {
  return hn::ConvertTo(DI(), hn::Round(hn::Mul(share, splat(static_cast<float>(LogitBuckets::kUnits)))));
}

/// Weighs a vector of logits, of which the first is number `first` of the row.
void weigh_vector(const float* logits, std::size_t first, const LogitBuckets& rule, std::uint16_t* buckets,
                  std::int32_t* shares, std::int32_t* moments) {
  const D d;
  const DI di;
  const V logit = hn::LoadU(d, logits);
  const VI far = hn::Set(di, LogitBuckets::kCount);
  const V place = hn::Min(hn::Mul(hn::Sub(splat(rule.best), logit), splat(rule.scale)), splat(1e9F));
  VI bucket = hn::Min(hn::ConvertTo(di, place), far);
  const V part = hn::Sub(place, hn::ConvertTo(d, bucket));
  const V share = exp_of(hn::Max(hn::Mul(part, splat(-rule.nats)), splat(-87.0F)));
  hn::StoreU(in_units(share), di, shares);
  if (moments != nullptr) hn::StoreU(in_units(hn::Mul(share, hn::Min(part, splat(1.0F)))), di, moments);
  const VI turns = hn::And(hn::Iota(di, static_cast<std::int32_t>(first % LogitBuckets::kTurns)),
                           hn::Set(di, LogitBuckets::kTurns - 1));
  bucket = hn::IfThenElse(hn::Eq(bucket, far), hn::Add(far, turns), bucket);
  const auto out = hn::Eq(logit, splat(-std::numeric_limits<float>::infinity()));
  bucket = hn::IfThenElse(hn::RebindMask(di, out), hn::Set(di, LogitBuckets::kRuledOut), bucket);
  hn::StoreU(hn::DemoteTo(DU(), bucket), DU(), buckets);
}

void weigh_row(const float* logits, std::size_t count, const LogitBuckets& rule, std::uint16_t* buckets,
               std::int32_t* shares, std::int32_t* moments) {
  const std::size_t lanes = hn::Lanes(D());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    weigh_vector(logits + i, i, rule, buckets + i, shares + i, moments == nullptr ? nullptr : moments + i);
  if (i == count) return;
  std::array<float, kMostLanes> rest{};
  std::array<std::uint16_t, kMostLanes> rest_buckets{};
  std::array<std::int32_t, kMostLanes> rest_shares{}, rest_moments{};
  rest.fill(rule.best);
  std::copy_n(logits + i, count - i, rest.begin());
  weigh_vector(rest.data(), i, rule, rest_buckets.data(), rest_shares.data(), rest_moments.data());
  std::copy_n(rest_buckets.begin(), count - i, buckets + i);
  std::copy_n(rest_shares.begin(), count - i, shares + i);
  if (moments != nullptr) std::copy_n(rest_moments.begin(), count - i, moments + i);
}

/// Rules out 8 logits, or as many as a vector has, by the bits of a byte.
void rule_out_byte(float* logits, std::uint8_t bits) {
  constexpr std::size_t kBits = 8;
  const hn::CappedTag<float, kBits> d;
  const auto out = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (std::size_t i = 0; i < kBits; i += hn::Lanes(d)) {
    std::array<std::uint8_t, kBits> here{static_cast<std::uint8_t>(bits >> i)};
    const auto in = hn::LoadMaskBits(d, here.data());
    hn::StoreU(hn::IfThenElse(in, hn::LoadU(d, logits + i), out), d, logits + i);
  }
}

void rule_out_row(float* logits, std::size_t count, const std::uint64_t* words, std::size_t word_count) {
  constexpr float kRuledOut = -std::numeric_limits<float>::infinity();
  for (std::size_t begin = 0; begin < count; begin += 64) {
    const std::uint64_t word = begin / 64 < word_count ? words[begin / 64] : 0;
    const std::size_t size = std::min<std::size_t>(64, count - begin);
    if (word == 0) {
      std::fill_n(logits + begin, size, kRuledOut);
    } else if (~word != 0 && size == 64) {
      for (unsigned i = 0; i < 64; i += 8)
        rule_out_byte(logits + begin + i, static_cast<std::uint8_t>(word >> i));
    } else if (~word != 0) {
      for (std::size_t i = 0; i < size; ++i)
        if (((word >> i) & 1U) == 0) logits[begin + i] = kRuledOut;
    }
  }
}

std::size_t find_in(const std::uint16_t* buckets, std::size_t count, std::uint16_t low, std::uint16_t width,
                    std::int32_t* found) {
  const hn::ScalableTag<std::uint16_t> d;
  const std::size_t lanes = hn::Lanes(d);
  constexpr std::size_t kVectors = 4;  // looked at together
  const auto first = hn::Set(d, low), wide = hn::Set(d, width);
  std::size_t size = 0, i = 0;
  const auto scan = [&](std::size_t end) {
    for (; i < end; ++i)
      if (static_cast<std::uint16_t>(buckets[i] - low) <= width) found[size++] = static_cast<std::int32_t>(i);
  };
  while (i + kVectors * lanes <= count) {
    auto any = hn::Zero(d);
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto off = hn::Sub(hn::LoadU(d, buckets + i + v * lanes), first);
      any = hn::Or(any, hn::VecFromMask(d, hn::Eq(hn::Min(off, wide), off)));
    }
    if (hn::AllTrue(d, hn::Eq(any, hn::Zero(d))))
      i += kVectors * lanes;
    else
      scan(i + kVectors * lanes);
  }
  scan(count);
  return size;
}

void find_ends(const float* logits, std::size_t count, LogitEnds& ends) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const V out = splat(-kInfinity);
  V most = out, least = splat(kInfinity);
  auto sound = hn::Eq(out, out);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V logit = hn::LoadU(d, logits + i);
    sound = hn::And(sound, hn::Lt(logit, splat(kInfinity)));
    most = hn::Max(most, logit);
    least = hn::Min(least, hn::IfThenElse(hn::Eq(logit, out), splat(kInfinity), logit));
  }
  ends.sound = hn::AllTrue(d, sound);
  ends.most = hn::GetLane(hn::MaxOfLanes(d, most));
  ends.least = hn::GetLane(hn::MinOfLanes(d, least));
  for (; i < count; ++i) {
    ends.sound = ends.sound && logits[i] < kInfinity;
    ends.most = std::max(ends.most, logits[i]);
    if (logits[i] > -kInfinity) ends.least = std::min(ends.least, logits[i]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace caldera::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace caldera::detail {
HWY_EXPORT(weigh_row);
HWY_EXPORT(find_ends);
HWY_EXPORT(rule_out_row);
HWY_EXPORT(find_in);

LogitEnds ends_of(std::span<const float> logits) {
  LogitEnds ends;
  HWY_DYNAMIC_DISPATCH(find_ends)(logits.data(), logits.size(), ends);
  return ends;
}

void rule_out(std::span<float> logits, std::span<const std::uint64_t> allowed) {
  HWY_DYNAMIC_DISPATCH(rule_out_row)(logits.data(), logits.size(), allowed.data(), allowed.size());
}

void weigh(std::span<const float> logits, const LogitBuckets& rule, const WeighedRow& row) {
  HWY_DYNAMIC_DISPATCH(weigh_row)
  (logits.data(), logits.size(), rule, row.buckets.data(), row.shares.data(),
   row.moments.empty() ? nullptr : row.moments.data());
}

std::size_t find_buckets(std::span<const std::uint16_t> buckets, std::uint16_t low, std::uint16_t high,
                         std::span<std::int32_t> found) {
  return HWY_DYNAMIC_DISPATCH(find_in)(buckets.data(), buckets.size(), low,
                                       static_cast<std::uint16_t>(high - low), found.data());
}

}  // namespace caldera::detail
#endif
