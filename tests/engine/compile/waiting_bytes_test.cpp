// Which of the steps that wait runs next, against what the contract says, looked up step by step.
#include "engine/compile/order/waiting_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "tests/engine/compile/unit_plans.h"

namespace caldera::testing {
namespace {

/// The blocks that are held, in the order in which they came to be, and which steps have run.
class Held {
 public:
  explicit Held(const StepGraph& graph) : graph_(graph), has_run_(graph.size(), false) {}

  void run(std::uint32_t step) { has_run_[step] = true; }
  void pass(std::uint32_t step) {
    for (std::int32_t b : graph_.touches[step]) {
      if (touching(b).back() == step) past_.push_back(b);
    }
  }
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (std::int32_t b : past_) sum += first_left(b) ? graph_.bytes[static_cast<std::size_t>(b)] : 0;
    return sum;
  }
  std::optional<std::uint32_t> first() const {
    for (std::int32_t b : past_) {
      if (const auto step = first_left(b)) return step;
    }
    return {};
  }

 private:
  std::vector<std::uint32_t> touching(std::int32_t block) const {
    std::vector<std::uint32_t> steps;
    for (std::uint32_t s = 0; s < graph_.size(); ++s) {
      if (std::ranges::find(graph_.touches[s], block) != graph_.touches[s].end()) steps.push_back(s);
    }
    return steps;
  }
  std::optional<std::uint32_t> first_left(std::int32_t block) const {
    for (std::uint32_t s : touching(block)) {
      if (!has_run_[s]) return s;
    }
    return {};
  }

  const StepGraph& graph_;
  std::vector<bool> has_run_;
  std::vector<std::int32_t> past_;
};

TEST(WaitingBytes, TheFirstThatTouchesWhatWasHeldFirstRunsNext) {
  constexpr int kSteps = 40;
  std::mt19937 random(7);
  const auto pick = [&](int below) { return std::uniform_int_distribution<int>(0, below - 1)(random); };
  int asked = 0;
  for (int round = 0; round < 100; ++round) {
    Plan plan = empty_plan(kSteps);
    for (int s = 0; s < kSteps; ++s) {
      const auto recent = [&] { return s == 0 ? 0 : 2 + std::max(0, s - 1 - pick(4)); };
      plan.steps.push_back(pointwise_step({recent(), recent()}, {2 + s}));
    }
    const StepGraph graph(plan);
    std::vector<std::uint32_t> order(graph.size());
    std::iota(order.begin(), order.end(), 0U);
    const std::int64_t most = peak_of(graph, order) + pick(2) * kArenaAlignment;
    WaitingBytes bytes(graph, order, most);
    Held held(graph);
    LiveBytes live(graph);
    for (std::uint32_t s : order) {
      while (const auto waiting = bytes.to_run_before(s)) {
        ASSERT_GT(live.during(s) + held.bytes(), most);
        ASSERT_EQ(waiting, held.first());
        bytes.run(*waiting);
        held.run(*waiting);
        ++asked;
      }
      ASSERT_TRUE(held.bytes() == 0 || live.during(s) + held.bytes() <= most);
      if (pick(3) == 0) {
        bytes.run(s);
        held.run(s);
      }
      bytes.pass(s);
      held.pass(s);
      live.run(s, [](std::int32_t) {});
    }
  }
  EXPECT_GT(asked, 100);
}

}  // namespace
}  // namespace caldera::testing
