// Every cache has a bound in bytes and keeps to it; what was dropped is made again.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/runtime.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class Caches : public EngineTest {
 protected:
  void TearDown() override {
    for (const auto& [kind, limit] : limits_) set_cache_limit(kind, limit);
  }
  static LazyTensor expression(const LazyTensor& x, int number) {
    LazyTensor y = x;
    for (int bits = number + 2; bits > 1; bits /= 2) y = bits % 2 == 0 ? y + 1.0 : y * 0.5;
    return y;
  }
  static float value(float x, int number) {
    for (int bits = number + 2; bits > 1; bits /= 2) x = bits % 2 == 0 ? x + 1.0F : x * 0.5F;
    return x;
  }
  static LazyTensor leaf() { return LazyTensor::from_vector<float>({1, 2, 3}, {3}, device()); }
  static void evaluate(int first, int last) {
    const LazyTensor x = leaf();
    for (int i = first; i < last; ++i)
      ASSERT_EQ(expression(x, i).to_vector<float>(), (std::vector{value(1, i), value(2, i), value(3, i)}))
          << i;
  }

 private:
  std::vector<std::pair<CacheKind, std::uint64_t>> limits_{
      {CacheKind::plans, cache_stats(CacheKind::plans).limit},
      {CacheKind::kernels, cache_stats(CacheKind::kernels).limit},
      {CacheKind::pipelines, cache_stats(CacheKind::pipelines).limit}};
};
INSTANTIATE_TEST_SUITE_P(Setups, Caches, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(Caches, KernelsAreBoundedWhateverHowManyDifferentOnesThereAre) {
  if (!GetParam().fusion) GTEST_SKIP() << "without fusion there are few kernels";
  backend(device());
  const bool is_cpu = device().kind == DeviceKind::cpu;
  const CacheKind kind = is_cpu ? CacheKind::kernels : CacheKind::pipelines;
  const int count = is_cpu ? 600 : 24;
  clear_plan_cache();
  set_cache_limit(kind, 0);
  set_cache_limit(kind, 64 << 10);
  const CacheStats before = cache_stats(kind);
  EXPECT_LE(before.entries, 1U);
  evaluate(0, count);
  const CacheStats after = cache_stats(kind);
  EXPECT_GT(after.evictions, before.evictions);
  EXPECT_GT(after.entries, 1U);
  EXPECT_LE(after.bytes, after.limit);
  EXPECT_GE(after.misses, before.misses + static_cast<std::uint64_t>(count) - 4);
  // Plans keep the kernels that they run; what is compiled again finds them gone.
  evaluate(0, is_cpu ? 100 : 4);
  clear_plan_cache();
  evaluate(0, is_cpu ? 100 : 4);
  EXPECT_LE(cache_stats(kind).bytes, cache_stats(kind).limit);
}

TEST_P(Caches, PlansAndTheKernelsBehindThemStayWithinTheirBounds) {
  set_cache_limit(CacheKind::plans, 64 << 10);
  evaluate(0, device().kind == DeviceKind::cpu ? 300 : 8);
  const CacheStats plans = cache_stats(CacheKind::plans);
  EXPECT_TRUE(plans.bytes <= plans.limit || plans.entries == 1) << plans.bytes << " of " << plans.entries;
  EXPECT_EQ(plans.limit, plan_cache_stats().limit);
}

TEST_P(Caches, ALimitHoldsForDevicesThatAreOpenedLater) {
  const CacheKind kind = device().kind == DeviceKind::cpu ? CacheKind::kernels : CacheKind::pipelines;
  backend(device());
  set_cache_limit(kind, 12345678);
  reopen_device(device());
  EXPECT_EQ(cache_stats(kind).limit, 12345678U);
}

}  // namespace
}  // namespace caldera::testing
