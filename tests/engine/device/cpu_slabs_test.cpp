// Blocks out of slabs: none overlaps another, what was given back is given out again, and sizes do not mix.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/device/cpu/host/slabs.h"

namespace caldera::testing {
namespace {

struct SlabBlock {
  std::byte* at;
  std::size_t size;
  int mark;
};

bool holds_mark(const SlabBlock& block) {
  for (std::size_t i = 0; i < block.size; i += 4096)
    if (block.at[i] != static_cast<std::byte>(block.mark)) return false;
  return block.at[block.size - 1] == static_cast<std::byte>(block.mark);
}

TEST(Slabs, GiveBlocksThatAreTheirOwn) {
  cpu::Slabs slabs;
  std::vector<SlabBlock> blocks;
  const std::size_t sizes[] = {cpu::Slabs::kSmallest, std::size_t{640} << 10, std::size_t{3} << 20};
  for (int turn = 0; turn < 60; ++turn) {
    if (turn % 3 == 2) {  // one goes back: of each size, from full slabs and others
      const std::size_t i = static_cast<std::size_t>(turn) * 7 % blocks.size();
      EXPECT_TRUE(holds_mark(blocks[i]));
      slabs.give(blocks[i].at);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    const std::size_t size = sizes[turn % 5 % 3];
    std::byte* at = slabs.take(size);
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0U);
    std::memset(at, turn, size);
    blocks.push_back({at, size, turn});
  }
  for (const SlabBlock& block : blocks) {
    EXPECT_TRUE(holds_mark(block)) << block.mark;
    slabs.give(block.at);
  }
}

TEST(Slabs, GiveAgainWhatCameBack) {
  cpu::Slabs slabs;
  std::byte* first = slabs.take(cpu::Slabs::kSmallest);
  std::byte* second = slabs.take(cpu::Slabs::kSmallest);
  EXPECT_NE(first, second);
  slabs.give(first);
  EXPECT_EQ(slabs.take(cpu::Slabs::kSmallest), first);
  slabs.give(first);
  slabs.give(second);
}

}  // namespace
}  // namespace caldera::testing
