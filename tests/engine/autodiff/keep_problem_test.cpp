// What is kept and what is computed again, as numbers: against all answers tried one by one.
#include "engine/autodiff/checkpoint/keep_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>

#include "engine/base/error.h"

namespace caldera::testing {
namespace {

using Values = std::vector<KeepCost>;

/// The cost of one answer, by its meaning: a value that is needed is kept, or made of its inputs, which are
/// needed then.
double seconds_of(const Values& values, std::uint32_t kept) {
  std::vector<bool> needed(values.size());
  double seconds = 0;
  for (std::size_t i = values.size(); i-- > 0;) {
    if (!(needed[i] || values[i].is_needed) || (kept >> i & 1U) != 0) continue;
    seconds += values[i].seconds;
    for (const std::uint32_t input : values[i].inputs) needed[input] = true;
  }
  return seconds;
}

std::int64_t bytes_of(const Values& values, std::uint32_t kept) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < values.size(); ++i) bytes += (kept >> i & 1U) != 0 ? values[i].bytes : 0;
  return bytes;
}

bool is_allowed(const Values& values, std::uint32_t kept) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if ((kept >> i & 1U) != 0 && !values[i].may_be_kept) return false;
  return true;
}

Values random_values(std::mt19937& random, std::size_t most) {
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  Values values(static_cast<std::size_t>(draw(1, static_cast<int>(most))));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = {.bytes = draw(1, 20),
                 .seconds = static_cast<double>(draw(0, 15)),
                 .inputs = {},
                 .is_needed = draw(0, 2) > 0,
                 .may_be_kept = draw(0, 5) > 0};
    for (std::uint32_t input = 0; input < i; ++input)
      if (draw(0, 3) == 0) values[i].inputs.push_back(input);
  }
  return values;
}

TEST(KeepProblem, TheCheapestIsTheCheapestOfAllOnRandomGraphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const Values values = random_values(random, 12);
    const auto limit = static_cast<std::int64_t>(random() % 120);
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t kept = 0; kept < 1U << values.size(); ++kept) {
      if (is_allowed(values, kept) && bytes_of(values, kept) <= limit)
        least = std::min(least, seconds_of(values, kept));
    }
    const KeepAnswer answer = cheapest_within(values, limit);
    ASSERT_EQ(answer.seconds, least) << "round " << round;
    ASSERT_LE(answer.bytes, limit);
    std::uint32_t kept = 0;
    for (std::size_t i = 0; i < values.size(); ++i) kept |= answer.kept[i] ? 1U << i : 0U;
    ASSERT_TRUE(is_allowed(values, kept));
    ASSERT_EQ(seconds_of(values, kept), answer.seconds);
    ASSERT_EQ(bytes_of(values, kept), answer.bytes);
  }
}

TEST(KeepProblem, ConvexAnswersAreTheHullOfAll) {
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round) {
    const Values values = random_values(random, 10);
    const std::vector<KeepAnswer> answers = convex_answers(values);
    ASSERT_FALSE(answers.empty());
    EXPECT_EQ(answers.back().bytes, 0);
    for (std::int64_t limit = 0; limit <= answers.front().bytes + 1; ++limit) {
      const auto within = std::ranges::find_if(answers, [&](const auto& a) { return a.bytes <= limit; });
      ASSERT_EQ(convex_answer_within(values, limit).kept, within->kept) << "limit " << limit;
    }
    // Of all answers none lies below a line through two neighbours, nor beyond the first.
    for (std::uint32_t kept = 0; kept < 1U << values.size(); ++kept) {
      if (!is_allowed(values, kept)) continue;
      const double seconds = seconds_of(values, kept);
      const auto bytes = static_cast<double>(bytes_of(values, kept));
      ASSERT_GE(seconds, answers.front().seconds - 1e-9);
      for (std::size_t k = 1; k < answers.size(); ++k) {
        const KeepAnswer &more = answers[k - 1], &fewer = answers[k];
        ASSERT_GT(more.bytes, fewer.bytes);
        const double price = (fewer.seconds - more.seconds) / static_cast<double>(more.bytes - fewer.bytes);
        ASSERT_GE(seconds + price * bytes, more.seconds + price * static_cast<double>(more.bytes) - 1e-6)
            << "round " << round;
      }
    }
  }
}

TEST(KeepProblem, BudgetsOfIndependentProductsAreUsedUp) {
  // Equal work a byte: the cheapest keeps as many bytes as it may. Taking the largest first misses most.
  Values values;
  for (const std::int64_t width : {11, 3, 4, 2})
    values.push_back(
        {.bytes = width, .seconds = static_cast<double>(width), .inputs = {}, .is_needed = true});
  for (const std::int64_t budget : {18, 17, 16, 15, 14, 13, 11, 7, 6, 5})
    EXPECT_EQ(cheapest_within(values, budget).bytes, budget);
}

TEST(KeepProblem, WhatIsCheapToMakeOfWhatIsKeptIsNotKept) {
  // A product, and an element-wise function of it: both needed, of equal size.
  const Values values{{.bytes = 8, .seconds = 100, .inputs = {}, .is_needed = true},
                      {.bytes = 8, .seconds = 1, .inputs = {0}, .is_needed = true}};
  const std::vector<KeepAnswer> answers = convex_answers(values);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].kept, (std::vector<bool>{true, true}));
  EXPECT_EQ(answers[1].kept, (std::vector<bool>{true, false}));
  EXPECT_EQ(answers[1].seconds, 1);
  EXPECT_EQ(answers[2].seconds, 101);
}

TEST(KeepProblem, RefusesWhatHasNoOrderOrIsTooMuch) {
  const Values circle{{.bytes = 1, .seconds = 1, .inputs = {0}, .is_needed = true}};
  EXPECT_THROW(convex_answers(circle), ValueError);
  const Values many(kMostChosenOneByOne + 1);
  EXPECT_THROW(cheapest_within(many, 1), ValueError);
}

/// A block of a network: each value is computed from one to three of the ten before it.
TEST(KeepProblem, AThousandValuesAreAnsweredWithinASecond) {
  std::mt19937 random(5);
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  Values values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = {.bytes = draw(1, 1 << 20),
                 .seconds = 1e-6 * draw(1, 1000),
                 .inputs = {},
                 .is_needed = draw(0, 2) > 0,
                 .may_be_kept = draw(0, 5) > 0};
    for (int k = draw(1, 3); k > 0 && i > 0; --k)
      values[i].inputs.push_back(static_cast<std::uint32_t>(i) -
                                 static_cast<std::uint32_t>(draw(1, std::min(10, static_cast<int>(i)))));
  }
  std::int64_t all = 0;
  for (const KeepCost& value : values) all += value.bytes;
  const auto start = std::chrono::steady_clock::now();
  const KeepAnswer half = convex_answer_within(values, all / 4);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", std::to_string(took.count()));
  EXPECT_LT(took.count(), 1);
  EXPECT_LE(half.bytes, all / 4);
  EXPECT_GT(half.bytes, all / 5);
}

}  // namespace
}  // namespace caldera::testing
