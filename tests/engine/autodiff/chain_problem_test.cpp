// The exact planner of chains: a table worked out by hand, and all subsets of random chains.
#include "engine/autodiff/checkpoint/chain_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "engine/base/error.h"
#include "tests/support/messages.h"

namespace caldera::testing {
namespace {

const std::vector<ChainValue> kFive{{4, 3, 1, 2}, {8, 10, 2, 2}, {2, 1, 1, 2}, {6, 4, 3, 4}, {4, 2, 1, 1}};
constexpr std::int64_t kAlways = 10;

std::string text_of(const std::vector<bool>& kept) {
  std::string text;
  for (const bool is_kept : kept) text += is_kept ? '1' : '0';
  return text;
}

TEST(ChainProblem, FiveValues) {
  struct Row {
    std::int64_t limit, peak;
    double seconds;
    const char* kept;
  };
  for (const Row& row :
       {Row{36, 35, 0, "11111"}, Row{34, 33, 1, "11011"}, Row{32, 31, 3, "01111"}, Row{30, 29, 4, "01011"},
        Row{28, 27, 10, "10111"}, Row{26, 25, 11, "10011"}, Row{24, 24, 13, "00111"}}) {
    const ChainAnswer answer = cheapest_chain(kFive, kAlways, row.limit);
    EXPECT_EQ(answer.peak_bytes, row.peak) << row.limit;
    EXPECT_EQ(answer.seconds, row.seconds) << row.limit;
    EXPECT_EQ(text_of(answer.kept), row.kept) << row.limit;
  }
  EXPECT_MENTIONS(message_of<OutOfMemoryError>([] { (void)cheapest_chain(kFive, kAlways, 22); }),
                  "the least limit is 24 bytes");
}

/// The peak by going through both passes with a count of live bytes.
std::int64_t peak_of(const std::vector<ChainValue>& values, std::int64_t always, unsigned kept) {
  std::int64_t live = always, peak = always;
  const auto is_kept = [&](std::size_t i) { return (kept >> i & 1U) != 0; };
  for (std::size_t i = 0; i < values.size(); ++i) {
    live += values[i].bytes;
    peak = std::max(peak, live + values[i].forward_bytes);
    if (i > 0 && !is_kept(i - 1)) live -= values[i - 1].bytes;
  }
  if (!values.empty() && !is_kept(values.size() - 1)) live -= values.back().bytes;
  for (std::size_t i = values.size(); i-- > 0;) {
    if (!is_kept(i)) live += values[i].bytes;
    peak = std::max(peak, live + values[i].backward_bytes);
    live -= values[i].bytes;
  }
  return peak;
}

TEST(ChainProblem, IsTheBestOfAllSubsets) {
  std::mt19937 random(5);
  const auto pick = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<ChainValue> values;
    const std::int64_t count = pick(1, 12);
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back({pick(0, 9), static_cast<double>(pick(0, 6)), pick(0, 4), pick(0, 4)});
    const std::int64_t always = pick(0, 10);
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
    std::vector<std::pair<std::int64_t, double>> all;
    for (unsigned kept = 0; kept < 1U << count; ++kept) {
      double seconds = 0;
      for (std::size_t i = 0; i < values.size(); ++i)
        seconds += (kept >> i & 1U) != 0 ? 0 : values[i].seconds;
      all.emplace_back(peak_of(values, always, kept), seconds);
      least = std::min(least, all.back().first);
      most = std::max(most, all.back().first);
    }
    const std::int64_t limit = pick(least - 1, most);
    if (limit < least) {
      EXPECT_THROW((void)cheapest_chain(values, always, limit), OutOfMemoryError);
      continue;
    }
    std::pair<double, std::int64_t> best{std::numeric_limits<double>::infinity(), 0};
    for (const auto& [peak, seconds] : all) {
      if (peak <= limit) best = std::min(best, {seconds, peak});
    }
    const ChainAnswer answer = cheapest_chain(values, always, limit);
    EXPECT_EQ(answer.seconds, best.first) << round;
    EXPECT_EQ(answer.peak_bytes, best.second) << round;
  }
}

TEST(ChainProblem, LongChainsAreSolved) {
  std::mt19937 random(9);
  std::vector<ChainValue> values;
  for (int i = 0; i < 300; ++i) {
    values.push_back({static_cast<std::int64_t>(1 + random() % 20), static_cast<double>(1 + random() % 9),
                      static_cast<std::int64_t>(random() % 5), static_cast<std::int64_t>(random() % 5)});
  }
  const std::int64_t free = chain_answer(values, 0, std::vector<bool>(values.size(), true)).peak_bytes;
  double before = -1;
  for (std::int64_t tenths = 10; tenths >= 1; --tenths) {
    const ChainAnswer answer = cheapest_chain(values, 0, free * tenths / 10);
    EXPECT_LE(answer.peak_bytes, free * tenths / 10);
    EXPECT_GE(answer.seconds, before) << "less memory, less time";
    before = answer.seconds;
  }
}

}  // namespace
}  // namespace caldera::testing
