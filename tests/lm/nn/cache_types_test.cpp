// Keys and values kept as f32, f16 or q8_0: the bytes of blocks, and attention over what is kept, against
// formulas in double precision; and that the CPU reads them as they are kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "lm/nn/attention_form.h"
#include "lm/nn/caches/kv_cache.h"
#include "lm/nn/caches/paged_kv_cache.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

/// The nearest number of f16, to even, of one that is not negative; infinity beyond the largest.
double nearest_half(double x) {
  if (x == 0) return 0;
  const int exponent = std::max(std::ilogb(x), -14);
  const double unit = std::ldexp(1.0, exponent - 10);
  const double rounded = std::nearbyint(x / unit) * unit;  // to even, as the default mode is
  return rounded > 65504 ? std::numeric_limits<double>::infinity() : rounded;
}

/// What f16, or a block of q8_0, makes of numbers: the definitions, in double.
Doubles kept_numbers(const Doubles& x, CacheType type) {
  Doubles out = x;
  for (std::size_t i = 0; type == CacheType::f16 && i < x.size(); ++i)
    out[i] = std::copysign(nearest_half(std::abs(x[i])), x[i]);
  for (std::size_t b = 0; type == CacheType::q8_0 && b < x.size(); b += 32) {
    float largest = 0;
    for (std::size_t i = b; i < b + 32; ++i) largest = std::max(largest, std::abs(static_cast<float>(x[i])));
    const float scale = largest / 127;
    for (std::size_t i = b; i < b + 32; ++i)
      out[i] = scale == 0 ? 0 : nearest_half(scale) * std::nearbyint(static_cast<float>(x[i]) / scale);
  }
  return out;
}

constexpr CacheType kCacheTypes[] = {CacheType::model, CacheType::f32, CacheType::f16, CacheType::q8_0};

class CacheTypes : public ::testing::TestWithParam<Device> {};

TEST_P(CacheTypes, BlocksAreThoseOfTheirDefinition) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  // A block a scale: powers of two and their neighbours, subnormal halves, the largest, zeros.
  std::vector<float> tops{0.0F, 127.0F * 0x1p-24F, 127.0F * 0x1p-25F, 127.0F * 0x1.8p-24F, 127.0F * 65504.0F};
  for (int e = -16; e <= 15; ++e)
    for (const float s : {1.0F, 1.0F - 0x1p-12F, 1.0F + 0x1p-10F, 1.37F})
      tops.push_back(127.0F * std::ldexp(s, e));
  std::vector<float> x;
  for (std::size_t b = 0; b < tops.size(); ++b)
    for (std::size_t i = 0; i < 32; ++i)
      x.push_back(i == b % 32 ? tops[b] : tops[b] * std::sin(static_cast<float>(31 * b + i) * 0.7F));
  const auto rows = static_cast<std::int64_t>(tops.size());
  const auto bytes =
      q8_0_blocks(LazyTensor::from_vector(x, Shape{rows, 32}, GetParam())).to_vector<std::uint8_t>();
  ASSERT_EQ(bytes.size(), tops.size() * 34);
  for (std::size_t b = 0; b < tops.size(); ++b) {
    float largest = 0;
    for (std::size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[b * 32 + i]));
    const float scale = largest / 127;
    const unsigned bits = bytes[b * 34] | static_cast<unsigned>(bytes[b * 34 + 1]) << 8;
    const int exponent = static_cast<int>(bits >> 10 & 31U);
    const double half =
        exponent == 0 ? std::ldexp(bits & 1023U, -24) : std::ldexp(1024 + (bits & 1023U), exponent - 25);
    ASSERT_LT(bits, 0x7c00U) << b;
    EXPECT_EQ(half, nearest_half(scale)) << "scale " << scale;
    for (std::size_t i = 0; i < 32; ++i) {
      const auto code = static_cast<std::int8_t>(bytes[b * 34 + 2 + i]);
      const double wanted = scale == 0 ? 0 : static_cast<double>(x[b * 32 + i]) / static_cast<double>(scale);
      EXPECT_LE(std::abs(code - wanted), 0.5001) << "block " << b << " number " << i;
    }
  }
}

TEST_P(CacheTypes, BlocksThatNoScaleHoldsAreNaN) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  std::vector<float> x(96, 1.0F);
  x[3] = std::numeric_limits<float>::infinity();
  x[40] = std::numeric_limits<float>::quiet_NaN();
  x[70] = 1e9F;  // its scale is beyond f16
  const CacheForm form(CacheType::q8_0, DType::f32, 96);
  const auto back =
      form.numbers(form.kept(LazyTensor::from_vector(x, Shape{1, 1, 96}, GetParam()))).to_vector<float>();
  for (const float v : back) EXPECT_TRUE(std::isnan(v));
}

TEST(CacheType, SaysWhatItCannotKeep) {
  EXPECT_EQ(cache_type_of("q8_0"), CacheType::q8_0);
  EXPECT_EQ(cache_type_of("q4_0"), std::nullopt);
  EXPECT_THROW(CacheForm(CacheType::q8_0, DType::f32, 8), ValueError);
  EXPECT_EQ(CacheForm(CacheType::q8_0, DType::f32, 64).bytes(), 68);
  EXPECT_EQ(CacheForm(CacheType::model, DType::bf16, 8).bytes(), 16);
}

constexpr std::int64_t kCacheHeads = 2, kQueryHeads = 6, kHeadDim = 32;

/// Attention of one query head over rows of numbers, in double.
Doubles attend_in_double(const Doubles& q, const Doubles& k, const Doubles& v,
                         const std::vector<std::int64_t>& seen) {
  std::vector<double> weights;
  double total = 0;
  for (const std::int64_t n : seen) {
    double s = 0;
    for (std::int64_t d = 0; d < kHeadDim; ++d) s += q[to_size(d)] * k[to_size(n * kHeadDim + d)];
    weights.push_back(std::exp(s / std::sqrt(static_cast<double>(kHeadDim))));
    total += weights.back();
  }
  Doubles out(to_size(kHeadDim));
  for (std::size_t i = 0; i < seen.size(); ++i)
    for (std::int64_t d = 0; d < kHeadDim; ++d)
      out[to_size(d)] += weights[i] / total * v[to_size(seen[i] * kHeadDim + d)];
  return out;
}

LazyTensor attention_of(const LazyTensor& q, const AttendedKeys& to, const AttentionForm& form) {
  AttentionOptions options{.mask = to.mask, .enable_gqa = true};
  if (!to.mask.defined()) {
    options.is_causal = true;
    options.window = form.window;
    options.offset = to.offset;
  }
  return scaled_dot_product_attention(q, to.keys, to.values, options);
}

/// The numbers of positions and heads of a text: (positions, heads, kHeadDim).
Doubles numbers_of_text(std::int64_t positions, std::int64_t heads, std::uint64_t seed) {
  Doubles all;
  for (const double x : random_doubles(positions * heads * kHeadDim, seed))
    all.push_back(static_cast<float>(x));
  return all;
}

/// Positions [first, first + count) of it as (1, heads, count, kHeadDim).
LazyTensor part_of_text(const Doubles& all, std::int64_t heads, std::int64_t first, std::int64_t count,
                        Device device) {
  const Doubles part(all.begin() + first * heads * kHeadDim,
                     all.begin() + (first + count) * heads * kHeadDim);
  return permute_dims(make_tensor(part, Shape{1, count, heads, kHeadDim}, DType::f32, device), {0, 2, 1, 3});
}

/// One head of it, as it is kept: (positions, kHeadDim).
Doubles head_of_text(const Doubles& all, std::int64_t heads, std::int64_t head, CacheType type) {
  Doubles out;
  for (std::size_t at = to_size(head * kHeadDim); at < all.size(); at += to_size(heads * kHeadDim))
    out.insert(out.end(), all.begin() + static_cast<std::ptrdiff_t>(at),
               all.begin() + static_cast<std::ptrdiff_t>(at) + kHeadDim);
  return kept_numbers(out, type);
}

/// (1, query heads, count, kHeadDim) of queries at positions from `first` on, flat.
Doubles expected_attention(const Doubles& q, const Doubles& k, const Doubles& v, std::int64_t first,
                           std::int64_t count, CacheType type, const AttentionForm& form) {
  Doubles out;
  for (std::int64_t h = 0; h < kQueryHeads; ++h) {
    const std::int64_t head = h / (kQueryHeads / kCacheHeads);
    const Doubles keys = head_of_text(k, kCacheHeads, head, type);
    const Doubles values = head_of_text(v, kCacheHeads, head, type);
    const Doubles queries = head_of_text(q, kQueryHeads, h, CacheType::f32);
    for (std::int64_t p = first; p < first + count; ++p) {
      std::vector<std::int64_t> seen;
      for (std::int64_t n = 0; n <= p; ++n)
        if (!form.window || n > p - *form.window) seen.push_back(n);
      const Doubles query(queries.begin() + p * kHeadDim, queries.begin() + (p + 1) * kHeadDim);
      const Doubles one = attend_in_double(query, keys, values, seen);
      out.insert(out.end(), one.begin(), one.end());
    }
  }
  return out;
}

TEST_P(CacheTypes, ATextAttendsToWhatIsKept) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  const std::int64_t positions = 21;
  const Doubles q = numbers_of_text(positions, kQueryHeads, 1),
                k = numbers_of_text(positions, kCacheHeads, 2),
                v = numbers_of_text(positions, kCacheHeads, 3);
  for (const CacheType type : kCacheTypes)
    for (const std::optional<std::int64_t> window :
         {std::optional<std::int64_t>(), std::optional<std::int64_t>(5)}) {
      AttentionForm form;
      form.window = window;
      KVCache cache(1, 1, kCacheHeads, 24, CacheForm(type, DType::f32, kHeadDim), GetParam());
      std::int64_t first = 0;
      for (const std::int64_t count : {9, 1, 1, 2, 8}) {
        cache.begin(count);
        const AttendedKeys to = cache.attended(0, part_of_text(k, kCacheHeads, first, count, GetParam()),
                                               part_of_text(v, kCacheHeads, first, count, GetParam()), form);
        const LazyTensor out = attention_of(part_of_text(q, kQueryHeads, first, count, GetParam()), to, form);
        cache.finish();
        std::vector<LazyTensor> all = cache.state();
        all.push_back(out);
        eval(all);
        expect_close(out, expected_attention(q, k, v, first, count, type, form), 2e-5,
                     std::string(name(type)) + " at " + std::to_string(first));
        first += count;
      }
    }
}

TEST_P(CacheTypes, ATokenAttendsToManyKeys) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  // In parts of 1,024 on the CPU, of which the last has no key that is seen.
  const std::int64_t positions = 2100, capacity = 4096;
  const Doubles q = numbers_of_text(positions, kQueryHeads, 1),
                k = numbers_of_text(positions, kCacheHeads, 2),
                v = numbers_of_text(positions, kCacheHeads, 3);
  for (const CacheType type : {CacheType::f32, CacheType::q8_0}) {
    KVCache cache(1, 1, kCacheHeads, capacity, CacheForm(type, DType::f32, kHeadDim), GetParam());
    const auto fed = [&](std::int64_t first, std::int64_t count) {
      cache.begin(count);
      AttendedKeys to = cache.attended(0, part_of_text(k, kCacheHeads, first, count, GetParam()),
                                       part_of_text(v, kCacheHeads, first, count, GetParam()), {});
      cache.finish();
      return to;
    };
    fed(0, positions - 1);
    eval(cache.state());
    const LazyTensor out =
        attention_of(part_of_text(q, kQueryHeads, positions - 1, 1, GetParam()), fed(positions - 1, 1), {});
    std::vector<LazyTensor> all = cache.state();
    all.push_back(out);
    eval(all);
    expect_close(out, expected_attention(q, k, v, positions - 1, 1, type, {}), 2e-5, std::string(name(type)));
  }
}

TEST_P(CacheTypes, TextsInPagesAttendToWhatIsKept) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  // Two texts of 21 and 6 positions, whose pages of 4 are not in order, fed up to the last position and then
  // it.
  const std::vector<std::vector<std::int32_t>> pages{{3, 1, 6, 2, 9, 7}, {5, 4, 0, 0, 0, 0}};
  const std::vector<std::int64_t> lengths{21, 6};
  const AttentionForm form;
  for (const CacheType type : kCacheTypes) {
    PagedKVCache cache({{std::nullopt, {0}, 10}}, kCacheHeads, CacheForm(type, DType::f32, kHeadDim), 4, 64,
                       GetParam());
    const auto run = [&](std::size_t row, std::int64_t first, std::int64_t count) {
      const Doubles q = numbers_of_text(lengths[row], kQueryHeads, 10 + row),
                    k = numbers_of_text(lengths[row], kCacheHeads, 20 + row),
                    v = numbers_of_text(lengths[row], kCacheHeads, 30 + row);
      PagedCall call{.batch = 1, .length = count, .longest = 0, .positions = {}, .groups = {{}}};
      for (std::int64_t p = first; p < first + count; ++p) {
        call.positions.push_back(static_cast<std::int32_t>(p));
        call.groups[0].slots.push_back(pages[row][to_size(p / 4)] * 4 + static_cast<std::int32_t>(p % 4));
      }
      call.groups[0].first = {0};
      call.groups[0].pages = pages[row];
      cache.plan(call);
      cache.begin(1, count);
      const AttendedKeys to = cache.attended(0, part_of_text(k, kCacheHeads, first, count, GetParam()),
                                             part_of_text(v, kCacheHeads, first, count, GetParam()), form);
      const LazyTensor out = attention_of(part_of_text(q, kQueryHeads, first, count, GetParam()), to, form);
      cache.finish();
      std::vector<LazyTensor> all = cache.state();
      all.push_back(out);
      eval(all);
      expect_close(out, expected_attention(q, k, v, first, count, type, form), 2e-5,
                   std::string(name(type)) + " text " + std::to_string(row));
    };
    for (std::size_t row = 0; row < 2; ++row) {
      run(row, 0, lengths[row] - 1);
      run(row, lengths[row] - 1, 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, CacheTypes, ::testing::ValuesIn(tested_devices()), device_test_name);

/// Kinds of the steps of a token over a cache in pages.
std::vector<std::string> step_kinds(CacheType type) {
  PagedKVCache cache({{std::nullopt, {0}, 4}}, kCacheHeads, CacheForm(type, DType::f32, kHeadDim), 4, 64,
                     Device::cpu());
  cache.plan({.batch = 1,
              .length = 1,
              .longest = 0,
              .positions = {0},
              .groups = {{.slots = {4}, .first = {0}, .pages = {1, 0, 0, 0}}}});
  cache.begin(1, 1);
  const Doubles x = numbers_of_text(1, kQueryHeads, 5);
  const LazyTensor k = part_of_text(numbers_of_text(1, kCacheHeads, 6), kCacheHeads, 0, 1, Device::cpu());
  const AttendedKeys to = cache.attended(0, k, k, {});
  const LazyTensor out = attention_of(part_of_text(x, kQueryHeads, 0, 1, Device::cpu()), to, {});
  cache.finish();
  std::vector<LazyTensor> all = cache.state();
  all.push_back(out);
  std::vector<std::string> kinds;
  const std::shared_ptr<const Plan> plan = plan_for(all);
  for (const Step& step : plan->steps) kinds.emplace_back(step.kind());
  return kinds;
}

TEST(CacheType, RowsAreReadWhereTheyAreKept) {
  const ScopedSettings scope(true);
  for (const CacheType type : kCacheTypes) {
    const std::vector<std::string> kinds = step_kinds(type);
    EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "attention"), 1) << name(type);
    EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "gather"), 0) << name(type);
    EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "quantized"), 0) << name(type);
  }
}

}  // namespace
}  // namespace caldera::testing
