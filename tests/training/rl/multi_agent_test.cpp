// Worlds of several agents: rows, ends, errors, saved worlds, and a policy that they share.
#include "training/rl/envs/multi_agent.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/error.h"
#include "training/rl/rl.h"

namespace caldera::rl {
namespace {

/// Two agents on a ring of nine places step left, stay, or step right. Each sees how far the other is, from
/// -4 to 4. Both are paid -1 a step until they meet, which ends it; after 20 steps the second one is tired.
class Meeting final : public MultiAgentEnvironment {
 public:
  std::int64_t agents() const override { return 2; }
  const Space& observation_space() const override { return observations_; }
  const Space& action_space() const override { return actions_; }
  void reset(Random& random, std::span<double> observations) override {
    steps_ = 0;
    places_[0] = std::floor(random.uniform(0, 9));
    places_[1] = std::fmod(places_[0] + std::floor(random.uniform(1, 9)), 9.0);
    observe(observations);
  }
  void step(std::span<const double> actions, std::span<double> observations,
            std::span<StepResult> results) override {
    ++steps_;
    for (std::size_t a = 0; a < 2; ++a) places_[a] = std::fmod(places_[a] + actions[a] + 8, 9.0);
    observe(observations);
    const bool met = places_[0] == places_[1];
    results[0] = {.reward = -1, .terminated = met};
    results[1] = {.reward = -1, .terminated = met, .truncated = !met && steps_ == 20};
  }
  std::vector<double> state() const override { return {places_[0], places_[1], steps_}; }
  void set_state(std::span<const double> state, std::span<double> observations) override {
    places_[0] = state[0];
    places_[1] = state[1];
    steps_ = state[2];
    observe(observations);
  }

 private:
  void observe(std::span<double> observations) const {
    const double apart = std::fmod(places_[1] - places_[0] + 9, 9.0);
    observations[0] = apart > 4 ? apart - 9 : apart;
    observations[1] = -observations[0];
  }
  Box observations_{-4.0, 4.0, 1};
  Discrete actions_{3};
  double places_[2] = {0, 0}, steps_ = 0;
};

std::unique_ptr<VectorEnvironment> meetings(std::int64_t worlds, int threads = 1) {
  return make_multi_agent_environment([] { return std::make_unique<Meeting>(); }, worlds, 7, threads);
}

TEST(MultiAgent, RowsAreAgentsOfWorldsInTheirOrder) {
  const auto env = meetings(3);
  ASSERT_EQ(env->count(), 6);
  for (std::size_t w = 0; w < 3; ++w) {
    const double apart = env->now().observations[2 * w];
    EXPECT_NE(apart, 0);
    EXPECT_EQ(env->now().observations[2 * w + 1], -apart);
  }
  const std::vector<double> before = env->now().observations;
  // The first agent of each world goes to the right, the other one stays: the distance falls by one.
  env->step(std::vector<double>{2, 1, 2, 1, 2, 1});
  for (std::size_t w = 0; w < 3; ++w) {
    const std::vector<double>& seen =
        env->now().ended(2 * w) ? env->now().last_observations : env->now().observations;
    const double expected = before[2 * w] == -4 ? 4 : before[2 * w] - 1;
    EXPECT_EQ(seen[2 * w], expected) << w;
    EXPECT_EQ(env->now().terminated[2 * w], expected == 0) << w;
    EXPECT_EQ(env->now().rewards[2 * w + 1], -1);
  }
}

TEST(MultiAgent, AWorldEndsForAllOfItsAgents) {
  const auto env = meetings(1);
  const double apart = env->now().observations[0];
  for (int step = 1; step <= 20; ++step) {
    env->step(std::vector<double>{1, 1});  // nobody moves
    EXPECT_EQ(env->now().ended(0), step == 20);
    EXPECT_EQ(env->now().ended(1), step == 20);
  }
  // The second one was tired; the first one's episode would have gone on.
  EXPECT_EQ(env->now().terminated, (std::vector<std::uint8_t>{0, 0}));
  EXPECT_EQ(env->now().truncated, (std::vector<std::uint8_t>{1, 1}));
  EXPECT_EQ(env->now().last_observations[0], apart);
}

TEST(MultiAgent, ThreadsAndSavedWorldsChangeNothing) {
  const auto one = meetings(4), two = meetings(4, 2), third = meetings(4);
  Random random(3);
  for (int step = 0; step < 50; ++step) {
    if (step == 25) third->set_state(one->state());
    std::vector<double> actions;
    for (int i = 0; i < 8; ++i) actions.push_back(std::floor(random.uniform(0, 3)));
    one->step(actions);
    two->step(actions);
    if (step >= 25) third->step(actions);
    EXPECT_EQ(one->now().observations, two->now().observations);
  }
  EXPECT_EQ(one->now().observations, third->now().observations);
  VectorState cut = one->state();
  cut.numbers.resize(5);
  EXPECT_THROW(third->set_state(cut), ShapeError);
  cut.randoms.resize(1);
  EXPECT_THROW(third->set_state(cut), ShapeError);
}

TEST(MultiAgent, LearnOnePolicy) {
  PPOOptions options;
  options.rollout_steps = 32;
  options.batch_size = 64;
  options.epochs = 4;
  options.hidden = {32};
  options.learning_rate = 3e-3;
  options.seed = 1;
  options.device = Device::cpu();
  PPO agent(meetings(8), options);
  agent.train(16 * 32 * 25);
  // Both go towards each other: at most two steps from any distance up to four; parity costs one more at
  // most.
  EXPECT_GT(evaluate_agent(agent.policy(), *meetings(10), 60).mean_return, -3.2);
}

TEST(MultiAgent, RefusesWhatIsNoWorld) {
  EXPECT_THROW(make_multi_agent_environment({}, 1, 0), ValueError);
  EXPECT_THROW(make_multi_agent_environment([] { return nullptr; }, 1, 0), ValueError);
  EXPECT_THROW(meetings(0), ValueError);
  EXPECT_THROW(meetings(2)->step(std::vector<double>(3)), ShapeError);
}

}  // namespace
}  // namespace caldera::rl
