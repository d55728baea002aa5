// The exact planner of chains: a table worked out by hand, all subsets of random chains, and a table over
// bytes for chains too long for that.
#include "engine/autodiff/checkpoint/chain_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
      EXPECT_MENTIONS(message_of<OutOfMemoryError>([&] { (void)cheapest_chain(values, always, limit); }),
                      "the least limit is " + std::to_string(least) + " bytes");
      continue;
    }
    std::pair<double, std::int64_t> best{std::numeric_limits<double>::infinity(), 0};
    for (const auto& [peak, seconds] : all) {
      if (peak <= limit) best = std::min(best, {seconds, peak});
    }
    const ChainAnswer answer = cheapest_chain(values, always, limit);
    EXPECT_EQ(answer.seconds, best.first) << round;
    EXPECT_EQ(answer.peak_bytes, best.second) << round;
    unsigned kept = 0;
    for (std::size_t i = 0; i < values.size(); ++i) kept |= answer.kept[i] ? 1U << i : 0U;
    EXPECT_EQ(all[kept], std::pair(answer.peak_bytes, answer.seconds)) << round;
  }
}

std::vector<ChainValue> long_chain(std::size_t length) {
  std::mt19937 random(9);
  std::vector<ChainValue> values(length);
  for (ChainValue& v : values)
    v = {static_cast<std::int64_t>(1 + random() % 20), static_cast<double>(1 + random() % 9),
         static_cast<std::int64_t>(random() % 5), static_cast<std::int64_t>(random() % 5)};
  return values;
}

/// The least seconds of all answers within `limit`, by a table of the least for each number of kept bytes.
double least_seconds(const std::vector<ChainValue>& values, std::int64_t limit) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> table(static_cast<std::size_t>(limit) + 1, kNever);
  table[0] = 0;
  const auto forbid_above = [&](std::int64_t most) {
    for (std::size_t b = 0; b < table.size(); ++b)
      if (static_cast<std::int64_t>(b) > most) table[b] = kNever;
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ChainValue& v = values[i];
    forbid_above(limit - v.bytes - v.backward_bytes);
    if (i == 0) forbid_above(limit - v.bytes - v.forward_bytes);
    // The next value is computed while this one is there, kept or not.
    if (i + 1 < values.size())
      forbid_above(limit - v.bytes - values[i + 1].bytes - values[i + 1].forward_bytes);
    for (std::size_t b = table.size(); b-- > 0;) {
      const auto size = static_cast<std::size_t>(v.bytes);
      table[b] = std::min(table[b] + v.seconds, b >= size ? table[b - size] : kNever);
    }
  }
  return *std::ranges::min_element(table);
}

TEST(ChainProblem, LongChainsAreSolvedExactly) {
  for (const std::size_t length : {100, 300, 1000}) {
    const std::vector<ChainValue> values = long_chain(length);
    const std::int64_t free = chain_answer(values, 0, std::vector<bool>(length, true)).peak_bytes;
    double before = 0;
    for (const std::int64_t tenths : {10, 8, 5, 3, 1}) {
      const std::int64_t limit = free * tenths / 10;
      const ChainAnswer answer = cheapest_chain(values, 0, limit);
      EXPECT_LE(answer.peak_bytes, limit);
      EXPECT_EQ(answer.seconds, least_seconds(values, limit)) << length << " values in " << limit;
      EXPECT_GE(answer.seconds, before) << "less memory, less time";
      before = answer.seconds;
    }
  }
}

TEST(ChainProblem, SaysSoWhereAProofTakesTooManyCases) {
  // Seconds in proportion to bytes without a common unit: which sums come next to the limit?
  std::mt19937_64 random(14);
  std::vector<ChainValue> values(48);
  std::int64_t total = 0;
  const auto round_up_to = [&](std::int64_t unit) {
    total = 0;
    for (ChainValue& v : values) {
      v.bytes = (v.bytes + unit - 1) / unit * unit;
      v.seconds = static_cast<double>(v.bytes);
      total += v.bytes;
    }
  };
  for (ChainValue& v : values) v.bytes = static_cast<std::int64_t>(random() % (std::uint64_t{1} << 40));
  round_up_to(1);
  EXPECT_MENTIONS(message_of<ValueError>([&] { (void)cheapest_chain(values, 0, total / 2); }),
                  "round the bytes of its values up");
  round_up_to(std::int64_t{1} << 30);
  EXPECT_LE(cheapest_chain(values, 0, total / 2).peak_bytes, total / 2);
}

TEST(ChainProblem, OfNoValuesAndOfThoseThatTakeNothing) {
  EXPECT_EQ(cheapest_chain({}, 7, 7).peak_bytes, 7);
  EXPECT_THROW((void)cheapest_chain({}, 7, 6), OutOfMemoryError);
  // What takes time and no bytes is kept; what takes bytes and no time is not.
  const std::vector<ChainValue> values{{0, 5, 0, 0}, {3, 0, 0, 0}, {4, 1, 0, 0}};
  const ChainAnswer answer = cheapest_chain(values, 0, 7);
  EXPECT_EQ(text_of(answer.kept), "101");
  EXPECT_EQ(answer.seconds, 0);
}

TEST(ChainProblem, RefusesNumbersThatAreNone) {
  for (const ChainValue& bad : {ChainValue{-1, 1, 0, 0}, ChainValue{1, -1, 0, 0}, ChainValue{1, 1, -1, 0},
                                ChainValue{1, 1, 0, -1}, ChainValue{1, std::nan(""), 0, 0}}) {
    EXPECT_THROW((void)cheapest_chain(std::vector{bad}, 0, 100), ValueError);
  }
  EXPECT_THROW((void)cheapest_chain(kFive, -1, 100), ValueError);
  EXPECT_THROW((void)chain_answer(kFive, kAlways, std::vector<bool>(4)), ValueError);
}

}  // namespace
}  // namespace caldera::testing
