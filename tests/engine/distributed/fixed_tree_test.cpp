// The tree by which sums are made: whoever has which leaves, the same sums of the same operands.
#include "engine/distributed/fixed_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace caldera::distributed {
namespace {

/// The tree over leaves [begin, end), written out by its definition.
std::string tree_text(std::int64_t begin, std::int64_t end) {
  if (end - begin == 1) return std::to_string(begin);
  const std::int64_t middle = begin + (end - begin + 1) / 2;
  return "(" + tree_text(begin, middle) + "+" + tree_text(middle, end) + ")";
}

/// The same by a stack, as the trainer adds gradients.
std::string stack_text(std::int64_t begin, std::int64_t end) {
  std::vector<std::string> stack;
  for (std::int64_t leaf = begin; leaf < end; ++leaf) {
    stack.push_back(std::to_string(leaf));
    for (int k = sums_due(leaf - begin, end - begin); k > 0; --k) {
      const std::string right = stack.back();
      stack.pop_back();
      stack.back() = "(" + stack.back() + "+" + right + ")";
    }
  }
  EXPECT_EQ(stack.size(), 1U);
  return stack.front();
}

std::string of_ranks(const std::vector<std::string>& ranks, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return ranks[begin];
  const std::size_t middle = begin + (end - begin + 1) / 2;
  return "(" + of_ranks(ranks, begin, middle) + "+" + of_ranks(ranks, middle, end) + ")";
}

TEST(FixedTree, AStackMakesTheSameSums) {
  for (std::int64_t count = 1; count < 40; ++count) EXPECT_EQ(stack_text(0, count), tree_text(0, count));
}

TEST(FixedTree, RanksOfAPowerOfTwoMakeTheSameSums) {
  for (const std::int64_t size : {1, 2, 4, 8}) {
    for (std::int64_t count = size; count < 40; ++count) {
      std::vector<std::string> ranks;
      for (std::int64_t rank = 0; rank < size; ++rank) {
        const auto [begin, end] = leaves_of_rank(count, rank, size);
        ranks.push_back(stack_text(begin, end));
      }
      EXPECT_EQ(of_ranks(ranks, 0, ranks.size()), tree_text(0, count)) << size << " ranks";
    }
  }
}

TEST(FixedTree, RanksShareAllLeavesNearlyAlike) {
  for (std::int64_t size = 1; size < 9; ++size) {
    for (std::int64_t count = size; count < 40; ++count) {
      std::int64_t next = 0;
      for (std::int64_t rank = 0; rank < size; ++rank) {
        const auto [begin, end] = leaves_of_rank(count, rank, size);
        EXPECT_EQ(begin, next);
        EXPECT_GE(end - begin, count / size);
        EXPECT_LE(end - begin, (count + size - 1) / size);
        next = end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

}  // namespace
}  // namespace caldera::distributed
