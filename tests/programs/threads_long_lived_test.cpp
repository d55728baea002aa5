// A process that lives long and meets ever new work keeps to its bounds, and gives memory back after a peak.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/runtime.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

class ProgramLongLived : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, ProgramLongLived, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(ProgramLongLived, EverNewExpressionsStayWithinTheBoundsOfTheCaches) {
  const std::uint64_t plans = cache_stats(CacheKind::plans).limit;
  set_cache_limit(CacheKind::plans, 256 << 10);
  const LazyTensor x = LazyTensor::full({5}, 1.0, DType::f32, device());
  for (int rank = 1; rank <= 12; ++rank) {  // chains of different lengths: new plans, new kernels
    LazyTensor y = x;
    for (int i = 0; i < rank; ++i) y = y * 2.0 - 1.0;
    EXPECT_EQ(y.to_vector<float>()[0], 1.0F);
  }
  for (const CacheKind kind :
       {CacheKind::plans, CacheKind::kernels, CacheKind::pipelines, CacheKind::files}) {
    const CacheStats stats = cache_stats(kind);
    EXPECT_TRUE(stats.bytes <= stats.limit || stats.entries <= 1) << static_cast<int>(kind);
  }
  set_cache_limit(CacheKind::plans, plans);
}

TEST_P(ProgramLongLived, APeakInOneThreadIsGivenBackWhileAnotherGoesOn) {
  trim();
  const std::uint64_t before = device_counters(device()).reserved_bytes;
  std::thread peak([] {
    const LazyTensor a = LazyTensor::ones({1024, 2}, DType::f32, device());
    const LazyTensor square = matmul(a, transpose(a));  // 4 MiB, of which only sums are kept
    const LazyTensor one = LazyTensor::ones({1024, 1}, DType::f32, device());
    EXPECT_EQ(sum(matmul(square, one)).item(), 2.0F * 1024 * 1024);
  });
  for (int i = 0; i < 50; ++i) EXPECT_EQ(sum(LazyTensor::ones({3}, DType::f32, device())).item(), 3.0F);
  peak.join();
  trim();
  EXPECT_LE(device_counters(device()).reserved_bytes, before + (6 << 20));
}

}  // namespace
}  // namespace caldera::testing
