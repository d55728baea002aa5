// The judgement at the end of a soak run, on made-up samples.
#include "tests/support/memory_watch.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/support/sanitizers.h"

namespace caldera::testing {
namespace {

MemorySample sample(double seconds, std::uint64_t bytes) {
  return {.seconds = seconds, .rss = bytes, .heap = 500, .device_live = 2 * bytes, .device_held = 4096};
}

TEST(MemoryWatch, ComparesTheMostAfterSettlingWithTheMostOfTheWindowBefore) {
  const std::vector<MemorySample> samples{sample(10, 9000),  sample(95, 1000),  sample(115, 990),
                                          sample(130, 1005), sample(140, 1030), sample(150, 980)};
  const std::vector<Growth> growths = growth_after(samples, 120, 30);
  ASSERT_EQ(growths.size(), 4U);
  EXPECT_STREQ(growths[0].name, "rss");
  EXPECT_EQ(growths[0].settled, 1000U);  // not the 9000 of the start
  EXPECT_EQ(growths[0].most, 1030U);
  EXPECT_EQ(growths[0].last, 980U);
  EXPECT_NEAR(growths[0].percent(), 3.0, 1e-9);
  EXPECT_NEAR(growths[2].percent(), 3.0, 1e-9);
  EXPECT_EQ(growths[1].percent(), 0.0);
  EXPECT_EQ(growths[3].percent(), 0.0);
}

TEST(MemoryWatch, ShrinkingIsNoGrowth) {
  EXPECT_EQ(growth_after({sample(100, 1000), sample(130, 700)}, 120, 30)[0].percent(), 0.0);
}

TEST(MemoryWatch, ARunThatIsTooShortIsNoVerdict) {
  EXPECT_THROW(growth_after({sample(100, 1000)}, 120, 30), std::invalid_argument);
  EXPECT_THROW(growth_after({sample(10, 1000), sample(130, 1000)}, 120, 30), std::invalid_argument);
}

TEST(MemoryWatch, ASampleSeesWhatIsHeld) {
  if (kSanitized) GTEST_SKIP() << "sanitizers: the heap has no count";
  const MemorySample before = take_sample(Device::cpu(), 0, 0);
  std::vector<char> block(std::size_t{64} << 20, 'x');
  const MemorySample after = take_sample(Device::cpu(), 1.5, 7);
  EXPECT_GE(after.rss, before.rss + block.size() - (std::size_t{1} << 20));
  EXPECT_GE(after.heap, before.heap + block.size());
  const auto json = nlohmann::json::parse(after.to_json());
  EXPECT_EQ(json.at("steps"), 7);
  EXPECT_EQ(json.at("rss"), after.rss);
  EXPECT_DOUBLE_EQ(json.at("seconds"), 1.5);
}

}  // namespace
}  // namespace caldera::testing
