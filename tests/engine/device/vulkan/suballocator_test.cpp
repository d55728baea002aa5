// The bookkeeping of device memory, without a device: free ranges and slabs beside a list of what is taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "engine/device/vulkan/memory/free_ranges.h"
#include "engine/device/vulkan/memory/slabs.h"

namespace caldera::testing {
namespace {

using vulkan::FreeRanges;
using vulkan::Range;
using vulkan::Slab;
using vulkan::Slabs;

/// What is taken, by block and offset. Complains of overlaps.
class Taken {
 public:
  void add(const Range& range) {
    auto& block = blocks_[range.block];
    const auto next = block.lower_bound(range.offset);
    if (next != block.end()) {
      EXPECT_LE(range.offset + range.bytes, next->first);
    }
    if (next != block.begin()) {
      EXPECT_LE(std::prev(next)->first + std::prev(next)->second, range.offset);
    }
    block.emplace(range.offset, range.bytes);
  }
  void remove(const Range& range) { EXPECT_EQ(blocks_[range.block].erase(range.offset), 1U); }
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const auto& [number, block] : blocks_) {
      for (const auto& [offset, bytes] : block) sum += bytes;
    }
    return sum;
  }

 private:
  std::map<std::uint32_t, std::map<std::uint64_t, std::uint64_t>> blocks_;
};

TEST(FreeRanges, TheShortestThatFitsIsCut) {
  FreeRanges free(1 << 20);
  free.give({0, 0, 1000});
  free.give({1, 0, 500});
  free.give({2, 0, 500});
  EXPECT_EQ(free.take(400), (Range{1, 0, 400})) << "the oldest block of those";
  EXPECT_EQ(free.take(100), (Range{1, 400, 100}));
  EXPECT_EQ(free.take(600), (Range{0, 0, 600}));
  EXPECT_EQ(free.take(600), std::nullopt);
  EXPECT_FALSE(free.is_whole({0, 0, 1000}));
  free.give({0, 0, 600});
  EXPECT_TRUE(free.is_whole({0, 0, 1000})) << "joined with what lies behind";
  EXPECT_TRUE(free.remove_whole({0, 0, 1000}));
  EXPECT_EQ(free.take(600), std::nullopt);
}

TEST(FreeRanges, ALargeBlockIsNotBrokenUpForLittle) {
  FreeRanges free(1000);
  free.give({0, 0, 4000});
  EXPECT_EQ(free.take(1999), std::nullopt);
  EXPECT_EQ(free.take(2000), (Range{0, 0, 2000}));
  EXPECT_EQ(free.take(10), std::nullopt);
  EXPECT_EQ(free.take(10, true), (Range{0, 2000, 10})) << "unless there is nothing else";
}

TEST(FreeRanges, RandomUseNeverOverlapsAndNothingIsLost) {
  constexpr std::uint64_t kBlock = 1 << 20;
  FreeRanges free(kBlock);
  for (std::uint32_t block = 0; block < 4; ++block) free.give({block, 0, kBlock});
  Taken taken;
  std::vector<Range> ranges;
  std::mt19937 random(3);
  std::size_t most = 0;
  for (int i = 0; i < 40000; ++i) {
    if (!ranges.empty() && random() % 5 < 2) {
      std::swap(ranges[random() % ranges.size()], ranges.back());
      taken.remove(ranges.back());
      free.give(ranges.back());
      ranges.pop_back();
    } else if (const auto range = free.take(1 + random() % 5000)) {
      taken.add(*range);
      ranges.push_back(*range);
    }
    most = std::max(most, ranges.size());
  }
  EXPECT_GT(most, 1000U);
  std::ranges::shuffle(ranges, random);
  for (const Range& range : ranges) free.give(range);
  EXPECT_EQ(free.count(), 4U);
  for (std::uint32_t block = 0; block < 4; ++block) EXPECT_TRUE(free.is_whole({block, 0, kBlock}));
}

TEST(Slabs, RandomUseNeverOverlapsAndNothingIsLost) {
  struct Small {
    Slab* slab;
    Range range;
  };
  Slabs slabs;
  Taken taken, slabs_taken;
  std::vector<Small> pieces;
  std::mt19937 random(5);
  std::uint32_t next_block = 0;
  const auto give = [&](const Small& piece) {
    taken.remove(piece.range);
    if (const auto range = slabs.give(piece.slab, piece.range.offset)) slabs_taken.remove(*range);
  };
  for (int i = 0; i < 200000; ++i) {
    const bool shrink = i > 100000;
    if (!pieces.empty() && random() % 5 < (shrink ? 3 : 2)) {
      std::swap(pieces[random() % pieces.size()], pieces.back());
      give(pieces.back());
      pieces.pop_back();
      continue;
    }
    const std::uint64_t bytes = random() % (Slabs::kLargest + 1);
    auto piece = slabs.take(bytes);
    if (!piece) {
      const Range range{next_block++, 256, Slabs::slab_bytes(bytes)};
      EXPECT_EQ(range.bytes % 256, 0U);
      EXPECT_LE(range.bytes, Slabs::kSlab);
      slabs_taken.add(range);
      piece = slabs.take_from(range, bytes);
    }
    EXPECT_GE(piece->range.bytes, bytes);
    EXPECT_LT(piece->range.bytes, bytes + 64 + (bytes == 0 ? 1 : 0));
    EXPECT_EQ(piece->range.offset % 64, 0U);
    EXPECT_LE(piece->range.offset + piece->range.bytes, 256 + Slabs::slab_bytes(bytes));
    taken.add(piece->range);
    pieces.push_back({piece->slab, piece->range});
  }
  EXPECT_GE(slabs_taken.bytes(), taken.bytes());
  std::ranges::shuffle(pieces, random);
  for (const Small& piece : pieces) give(piece);
  EXPECT_LE(slabs_taken.bytes(), 64 * Slabs::kSlab) << "one empty slab of a size is kept";
  for (const Range& range : slabs.trim()) slabs_taken.remove(range);
  EXPECT_EQ(slabs_taken.bytes(), 0U);
}

}  // namespace
}  // namespace caldera::testing
