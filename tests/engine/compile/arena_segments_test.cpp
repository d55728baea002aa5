// Arenas in segments: no block crosses a cut, no segment is larger than it may be, and what is there
// costs little more than it would in one piece.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/caldera.h"
#include "engine/compile/arena/arena_layout.h"
#include "engine/plan/verify.h"
#include "engine/runtime/evaluate.h"
#include "tests/engine/compile/damage.h"
#include "tests/engine/compile/sound_plan.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

/// What holds for every layout, told block against block.
void expect_sound(const std::vector<ArenaBlock>& blocks, const ArenaLayout& layout, std::int64_t segment) {
  ASSERT_EQ(layout.offsets.size(), blocks.size());
  std::vector<std::int64_t> bounds{0};
  bounds.insert(bounds.end(), layout.cuts.begin(), layout.cuts.end());
  bounds.push_back(layout.bytes);
  ASSERT_TRUE(std::is_sorted(bounds.begin(), bounds.end()));
  std::vector<std::int64_t> largest(bounds.size() - 1, 0), filled(bounds.size() - 1, 0);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::int64_t begin = layout.offsets[b], end = begin + blocks[b].bytes;
    std::size_t home = 0;
    while (home + 2 < bounds.size() && bounds[home + 1] <= begin) ++home;
    EXPECT_LE(end, bounds[home + 1]) << "block " << b << " crosses";
    largest[home] = std::max(largest[home], blocks[b].bytes);
    filled[home] = std::max(filled[home], end);
    for (std::size_t other = 0; other < b; ++other) {
      const bool apart = blocks[other].first > blocks[b].last || blocks[b].first > blocks[other].last;
      const std::int64_t at = layout.offsets[other];
      EXPECT_TRUE(apart || at + blocks[other].bytes <= begin || end <= at) << other << " and " << b;
    }
  }
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
    EXPECT_LE(bounds[s + 1] - bounds[s], std::max(segment, largest[s])) << "segment " << s;
    EXPECT_EQ(filled[s], bounds[s + 1]) << "a hole at the end of segment " << s;
  }
}

std::vector<ArenaBlock> random_blocks(std::uint32_t seed, int count, std::int64_t most) {
  std::mt19937 random(seed);
  std::vector<ArenaBlock> blocks;
  for (int i = 0; i < count; ++i) {
    const auto first = static_cast<std::int64_t>(random() % 100);
    blocks.push_back({256 * (1 + static_cast<std::int64_t>(random()) % most), first,
                      first + static_cast<std::int64_t>(random() % 30)});
  }
  return blocks;
}

TEST(ArenaSegments, RandomLayoutsAreSound) {
  constexpr std::int64_t kSegment = 64 * 256;
  double worst = 0;
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    // Every third with blocks of up to three segments, every fifth with more than the quadratic ways take.
    const std::vector<ArenaBlock> blocks =
        random_blocks(seed, seed % 5 == 0 ? 1500 : 120, seed % 3 == 0 ? 192 : 24);
    const ArenaLayout layout = lay_out(blocks, kSegment);
    SCOPED_TRACE(seed);
    EXPECT_FALSE(layout.cuts.empty());
    expect_sound(blocks, layout, kSegment);
    worst = std::max(worst, static_cast<double>(layout.bytes) / static_cast<double>(peak_of(blocks)));
  }
  EXPECT_LE(worst, 1.5) << "of the bytes alive at once";
}

TEST(ArenaSegments, WhatFitsIntoOneIsLaidOutAsEver) {
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    const std::vector<ArenaBlock> blocks = random_blocks(seed, 60, 24);
    const ArenaLayout free = lay_out(blocks, kArenaSegment);
    const ArenaLayout just = lay_out(blocks, free.bytes);
    EXPECT_TRUE(free.cuts.empty());
    EXPECT_EQ(just.offsets, free.offsets);
    EXPECT_EQ(just.bytes, free.bytes);
  }
}

TEST(ArenaSegments, ALargeBlockHasItsOwnAndSharesItOverTime) {
  // Two that are larger than a segment and never alive together, and one beside each.
  const std::vector<ArenaBlock> blocks = {{2560, 0, 1}, {3072, 3, 4}, {512, 0, 4}, {1024, 5, 6}};
  const ArenaLayout layout = lay_out(blocks, 1024);
  expect_sound(blocks, layout, 1024);
  EXPECT_EQ(layout.bytes, 3072 + 512);
  EXPECT_EQ(layout.cuts.size(), 1U);
}

const Damage kSegments[] = {
    {"a buffer across a cut", "buffer 6 lies across the arena's cut at 512",
     [](Plan& p) {
       p.buffers[kB].bytes = 512;
       p.arena_cuts = {512};
     }},
    {"a cut that is not aligned", "the arena of 768 bytes cannot be cut at 300 after 0",
     [](Plan& p) { p.arena_cuts = {300}; }},
    {"a cut beyond the end", "the arena of 768 bytes cannot be cut at 768 after 0",
     [](Plan& p) { p.arena_cuts = {768}; }},
    {"cuts that fall", "the arena of 768 bytes cannot be cut at 256 after 512",
     [](Plan& p) {
       p.arena_cuts = {512, 256};
     }},
    {"a segment too large", "segment 1 of the arena has 512 bytes, more than 256 and than its largest buffer",
     [](Plan& p) {
       p.arena_segment = 256;
       p.arena_cuts = {256};
     }},
};

TEST(ArenaSegments, TheVerifierRefusesDamage) {
  Plan sound = sound_plan();
  sound.arena_cuts = {256, 512};
  sound.arena_segment = 256;
  EXPECT_NO_THROW(verify_plan(sound));
  expect_all_rejected(sound_plan(), kSegments);
}

/// A step of training, on the same data every time.
std::vector<LazyTensor> training_step(Device device) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> values(-1, 1);
  const auto tensor = [&](const Shape& shape) {
    std::vector<float> data(static_cast<std::size_t>(shape.numel()));
    for (float& v : data) v = values(random);
    return LazyTensor::from_vector(data, shape, device);
  };
  const LazyTensor x = tensor({4, 33, 64}), q = tensor({64, 64});
  const LazyTensor w1 = tensor({64, 200}), w2 = tensor({200, 64});
  const LazyTensor h = matmul(gelu(matmul(x, w1) * 0.1F), w2) * 0.1F + x;
  const LazyTensor scores = matmul(matmul(h, q), transpose(h)) * 0.1F;
  const LazyTensor loss = mean(matmul(exp(scores), h) * h);
  std::vector<LazyTensor> results = grad(loss, {w1, w2, q, x});
  results.push_back(loss);
  results.push_back(sum(h, 1));
  return results;
}

/// What every driver can allocate, without anybody asking for it.
TEST(ArenaSegments, NoAllocationOfALargePlanIsAboveAGibibyte) {
  const ScopedSettings scope;
  std::vector<LazyTensor> values;
  for (int i = 0; i < 12; ++i) {
    const LazyTensor x = LazyTensor::full({64, 8}, 1.0F + static_cast<float>(i), DType::f32, Device::null());
    values.push_back(matmul(x, LazyTensor::full({8, 1 << 20}, 2.0F, DType::f32, Device::null())));  // 256 MiB
  }
  LazyTensor sum_of_all = matmul(values[0], transpose(values[11]));
  for (int i = 1; i < 12; ++i) sum_of_all = sum_of_all + matmul(values[11 - i], transpose(values[i]));
  const auto plan = plan_for({sum_of_all});
  EXPECT_GT(plan->arena_bytes, std::int64_t{2} << 30);
  EXPECT_LT(plan->arena_bytes, std::int64_t{4} << 30);
  for (const ArenaSegment& s : plan->arena_segments()) EXPECT_LT(s.end - s.begin, std::int64_t{1} << 30);
}

class ArenaSegmentsOn : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, ArenaSegmentsOn, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(ArenaSegmentsOn, RealGraphsComputeTheSame) {
  std::vector<std::vector<float>> want;
  for (const LazyTensor& r : training_step(Device::cpu())) want.push_back(r.to_vector<float>());
  for (const std::int64_t bytes : {std::int64_t{64} << 10, std::int64_t{256}}) {
    settings().arena_segment = bytes;
    std::vector<LazyTensor> results = training_step(device());
    EXPECT_GE(plan_for(results)->arena_segments().size(), 3U);
    eval(results);
    for (std::size_t r = 0; r < results.size(); ++r) {
      const std::vector<float> got = results[r].to_vector<float>();
      ASSERT_EQ(got.size(), want[r].size());
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], want[r][i], 2e-4 * (1 + std::fabs(want[r][i]))) << "result " << r << " at " << i;
    }
  }
}

}  // namespace
}  // namespace caldera::testing
