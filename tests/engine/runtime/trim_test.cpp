// Memory that was needed once goes back: at once when asked for, and by itself when it is no longer needed.
#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/engine_setup.h"
#include "tests/support/sanitizers.h"

namespace caldera::testing {
namespace {

constexpr std::uint64_t kTrimMiB = std::uint64_t{1} << 20;

class Trim : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    trim();
  }
  static std::uint64_t held() { return device_counters(device()).reserved_bytes; }
  static LazyTensor filled(const Shape& shape) { return LazyTensor::full(shape, 1.0, DType::f32, device()); }
  /// 32 MiB of intermediates.
  static float spike() {
    return sum(matmul(matmul(filled({2048, 1}), filled({1, 2048})), filled({2048, 4}))).item();
  }
  static float small() { return sum(filled({16}) * 2.0).item(); }
  static std::uint64_t resident() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t all = 0, pages = 0;
    statm >> all >> pages;
    return pages * 4096;
  }
};
INSTANTIATE_TEST_SUITE_P(Setups, Trim, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(Trim, GivesUnusedMemoryBackNow) {
  if (!kKeepsMemory && device().kind == DeviceKind::cpu)
    GTEST_SKIP() << "AddressSanitizer: no memory is kept";
  const LazyTensor kept = (filled({1000}) + 1.0).eval();
  const std::uint64_t before = held();
  ASSERT_EQ(spike(), 2048.0F * 2048 * 4);
  EXPECT_GE(held(), before + 16 * kTrimMiB);
  const std::uint64_t resident_before = resident();
  trim(device());
  EXPECT_LE(held(), before + 4 * kTrimMiB) << "but for what values lie in";
  if (device().kind == DeviceKind::cpu) {
    EXPECT_LE(resident() + 12 * kTrimMiB, resident_before);
  }
  EXPECT_EQ(kept.to_vector<float>(), std::vector<float>(1000, 2.0F));
  EXPECT_EQ(spike(), 2048.0F * 2048 * 4) << "it is taken again where it is needed";
  trim();
  EXPECT_LE(held(), before + 4 * kTrimMiB);
}

TEST_P(Trim, WhatSmallEvaluationsDoNotNeedGoesByItself) {
  if (!kKeepsMemory && device().kind == DeviceKind::cpu)
    GTEST_SKIP() << "AddressSanitizer: no memory is kept";
  small();
  const std::uint64_t before = held();
  spike();
  ASSERT_GE(held(), before + 16 * kTrimMiB);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(small(), 32.0F);
  EXPECT_LE(held(), before + 4 * kTrimMiB);
}

TEST_P(Trim, WhatIsNeededAgainAndAgainStays) {
  if (!kKeepsMemory && device().kind == DeviceKind::cpu)
    GTEST_SKIP() << "AddressSanitizer: no memory is kept";
  const auto step = [] {  // more than 1 MiB of intermediates
    sum(matmul(matmul(filled({640, 1}), filled({1, 640})), filled({640, 1}))).eval();
    small();
  };
  for (int i = 0; i < 40; ++i) step();  // more than one period
  const std::uint64_t allocations = device_counters(device()).allocations;
  for (int i = 0; i < 40; ++i) step();
  EXPECT_EQ(device_counters(device()).allocations, allocations) << "a loop takes nothing from the system";
}

}  // namespace
}  // namespace caldera::testing
