// The merge loop of byte-pair encoding against the plainest one, on tables of every kind and words of every
// length.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "lm/tokenizers/models/merge_word.h"
#include "tests/lm/tokenizers/tokenizer_tests.h"

namespace caldera::testing {
namespace {

using detail::Merge;
using detail::MergeTable;

/// Looks at every pair for each merge.
Ids merged_plainly(const MergeTable& merges, Ids word) {
  for (;;) {
    const Merge* best = nullptr;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < word.size(); ++i) {
      const Merge* merge = merges.find(word[i], word[i + 1]);
      if (merge != nullptr && (best == nullptr || merge->rank < best->rank)) {
        best = merge;
        place = i;
      }
    }
    if (best == nullptr) return word;
    word[place] = best->id;
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

Ids merged(const MergeTable& merges, Ids word) {
  // What stands before is no part of the word.
  word.insert(word.begin(), {0, 1, 0});
  detail::merge_word(merges, word, 3);
  EXPECT_EQ((Ids{word[0], word[1], word[2]}), (Ids{0, 1, 0}));
  word.erase(word.begin(), word.begin() + 3);
  return word;
}

int random_below(std::mt19937& random, int limit) {
  return static_cast<int>(random() % static_cast<unsigned>(limit));
}

TEST(MergeWord, AsThePlainLoop) {
  std::mt19937 random(11);
  for (int round = case_count(120); round > 0; --round) {
    // Few letters and many merges, whose ranks have no order, repeat, and may make tokens that were there.
    const int letters = 1 + random_below(random, 4);
    const int ids = letters + 1 + random_below(random, 30);
    MergeTable merges;
    for (int n = random_below(random, 120); n > 0; --n) {
      const bool ordered = random() % 2 == 0;
      const int made = random_below(random, ids);
      merges.set(random_below(random, ordered ? made + 1 : ids),
                 random_below(random, ordered ? made + 1 : ids),
                 {ordered ? made : random_below(random, 50), made});
    }
    static constexpr int kLengths[] = {1,  2,  3,   15,   16,   17,   31,   32,
                                       33, 64, 200, 1023, 1024, 1025, 1900, 3000};
    Ids word(static_cast<std::size_t>(kLengths[random_below(random, std::size(kLengths))]));
    for (auto& id : word) id = random_below(random, letters);
    ASSERT_EQ(merged(merges, word), merged_plainly(merges, word)) << "round " << round << ", " << word.size();
  }
}

TEST(MergeWord, WhatTheEndDecides) {
  // Nothing merges until the last letter is seen; then it swallows all before it, or every second one.
  MergeTable swallow;
  swallow.set(0, 1, {0, 1});
  MergeTable pairs;
  pairs.set(0, 1, {0, 2});
  pairs.set(0, 2, {1, 1});
  MergeTable doubling;
  for (int i = 0; i < 20; ++i) doubling.set(i, i, {i, i + 1});
  for (const std::size_t length : {1024U, 1025U, 3000U, 5000U}) {
    Ids word(length, 0);
    ASSERT_EQ(merged(doubling, word), merged_plainly(doubling, word));
    word.back() = 1;
    ASSERT_EQ(merged(swallow, word), Ids{1});
    ASSERT_EQ(merged(pairs, word), merged_plainly(pairs, word));
  }
}

TEST(MergeWord, LongWordsThatDisagreeTakeNoQuadraticTime) {
  MergeTable swallow;
  swallow.set(0, 1, {0, 1});
  Ids word(1'000'000, 0);
  word.back() = 1;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(merged(swallow, word), Ids{1});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 60.0);  // a quadratic loop would take hours
}

}  // namespace
}  // namespace caldera::testing
