// The CPU device's own team of threads: each piece is run once, whoever is awake, and by whichever callers.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/cpu/host/awake_team.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu_threads.h"

namespace caldera::cpu {
namespace {

using namespace std::chrono_literals;

struct Counts {
  std::vector<int> at = std::vector<int>(AwakeTeam::kMostPieces, 0);
  static void add(const void* body, int piece) {
    ++const_cast<Counts*>(static_cast<const Counts*>(body))->at[static_cast<std::size_t>(piece)];
  }
};

TEST(CpuTeam, RunsEachPieceOnce) {
  Counts counts;
  std::vector<int> expected(counts.at.size(), 0);
  for (int round = 0; round < 2000; ++round)
    for (const int pieces : {1, 2, 3, 8, AwakeTeam::kMostPieces}) {
      const Team team(2);
      AwakeTeam::run(pieces, &Counts::add, &counts);
      for (int i = 0; i < pieces; ++i) ++expected[static_cast<std::size_t>(i)];
    }
  EXPECT_EQ(counts.at, expected);
}

TEST(CpuTeam, WakesAfterItHasSlept) {
  Counts counts;
  for (int round = 0; round < 5; ++round) {
    const Team team(2);
    AwakeTeam::run(4, &Counts::add, &counts);
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(std::accumulate(counts.at.begin(), counts.at.end(), 0), 20);
  EXPECT_EQ(counts.at[3], 5);
}

TEST(CpuTeam, ErrorsOfPiecesReachTheCaller) {
  for (const int threads : {1, 2, 5}) {
    std::vector<int> runs(20, 0);
    const auto fails = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) ++runs[static_cast<std::size_t>(i)];
      if (end == 20) throw std::bad_alloc();
    };
    for (int round = 1; round < 50; ++round) {
      EXPECT_THROW(parallel_ranges(20, threads, fails), std::bad_alloc);
      EXPECT_EQ(runs, std::vector<int>(20, round)) << "what does not fail is run";
    }
    std::atomic<std::int64_t> sum{0};
    parallel_ranges(20, threads, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, 20);
  }
}

TEST(CpuTeam, SeveralThreadsHelp) {
  // Each piece waits until another one has begun: one thread alone would never end.
  struct Meeting {
    std::atomic<int> begun{0};
  } meeting;
  const Team team(2);
  AwakeTeam::run(
      2,
      [](const void* body, int) {
        auto& begun = const_cast<Meeting*>(static_cast<const Meeting*>(body))->begun;
        ++begun;
        while (begun < 2) std::this_thread::yield();
      },
      &meeting);
  EXPECT_EQ(meeting.begun, 2);
}

TEST(CpuTeam, CallersTakeTurns) {
  std::atomic<int> sum{0};
  const auto add = [](const void* body, int) {
    EXPECT_TRUE(in_parallel());
    const auto one = [](const void* inner, int) {
      ++*const_cast<std::atomic<int>*>(static_cast<const std::atomic<int>*>(inner));
    };
    AwakeTeam::run(2, one, body);  // stays on its thread
    EXPECT_TRUE(in_parallel());
  };
  const auto work = [&] {
    for (int round = 0; round < 300; ++round) {
      const Team team(3);
      AwakeTeam::run(3, add, &sum);
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(sum, 2 * 300 * 3 * 2);
  EXPECT_FALSE(in_parallel());
}

#ifdef __linux__
/// How often each thread of the process has gone to sleep so far.
std::map<std::string, std::int64_t> sleeps_of_threads() {
  std::map<std::string, std::int64_t> sleeps;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;)
      if (word == "voluntary_ctxt_switches:") status >> sleeps[task.path().filename()];
  }
  return sleeps;
}

TEST(CpuTeam, FewerThreadsLeaveTheOthersAsleep) {
  constexpr int kRounds = 40, kThreads = 2;
  const int before = cpu_threads();
  set_cpu_threads(kThreads);
  Counts counts;
  const auto round = [&](int pieces) {
    const Team team(kThreads);
    AwakeTeam::run(pieces, &Counts::add, &counts);
  };
  round(8);  // has eight threads started
  for (int i = 0; i < 5; ++i) {
    round(kThreads);
    std::this_thread::sleep_for(5ms);
  }
  const auto first = sleeps_of_threads();
  for (int i = 0; i < kRounds; ++i) {
    round(kThreads);
    std::this_thread::sleep_for(5ms);
  }
  int woken = 0;
  for (const auto& [thread, sleeps] : sleeps_of_threads())
    if (first.contains(thread) && sleeps - first.at(thread) > kRounds / 4) ++woken;
  set_cpu_threads(before);
  EXPECT_LE(woken, kThreads);
}
#endif

TEST(CpuTeam, LeavesTheCoresToOpenBlas) {
  AwakeTeam::rest();
  EXPECT_FALSE(AwakeTeam::is_better());
  Counts counts;
  {
    const Team team(2);
    AwakeTeam::run(2, &Counts::add, &counts);
  }
  EXPECT_EQ(counts.at[0] + counts.at[1], 2);
  for (int i = 0; i < 400 && !AwakeTeam::is_better(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(AwakeTeam::is_better());
}

}  // namespace
}  // namespace caldera::cpu
