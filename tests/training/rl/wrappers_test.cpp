// Wrappers, normalisers and the checker.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/error.h"
#include "training/rl/envs/classic.h"
#include "training/rl/rl.h"

namespace caldera::rl {
namespace {

using Values = std::vector<double>;

TEST(Wrappers, MomentsAreThoseOfAllRows) {
  RunningMoments moments(2);
  moments.add(Values{1, 10, 2, 20, 6, 30});
  moments.add(Values{3, 0});
  EXPECT_DOUBLE_EQ(moments.mean()[0], 3);
  EXPECT_DOUBLE_EQ(moments.variance()[0], (4 + 1 + 9 + 0) / 4.0);
  EXPECT_DOUBLE_EQ(moments.mean()[1], 15);
  EXPECT_DOUBLE_EQ(moments.variance()[1], (25 + 25 + 225 + 225) / 4.0);
  Values rows{3, 1e9};
  moments.normalize(rows);
  EXPECT_EQ(rows, (Values{0, 10}));
  EXPECT_THROW(moments.add(Values{1}), ShapeError);
}

TEST(Wrappers, NormalizedEnvironmentsHaveOneScale) {
  NormalizedEnvironment all(make_vector_environment("Pendulum-v1", 8, 1));
  NormalizedEnvironment other(make_vector_environment("Pendulum-v1", 8, 2));
  Random random(1);
  Values actions(8);
  const auto step = [&](NormalizedEnvironment& environment) {
    for (double& action : actions) action = random.uniform(-2, 2);
    environment.step(actions);
  };
  for (int i = 0; i < 300; ++i) step(all);
  EXPECT_LT(all.raw().rewards[0], 0);
  EXPECT_NE(all.raw().rewards, all.now().rewards);
  RunningMoments seen(3);
  for (int i = 0; i < 400; ++i) step(all), seen.add(all.now().observations);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(std::sqrt(seen.variance()[k]), 1, 0.25) << k;

  other.set_state(all.state());
  EXPECT_EQ(other.now().observations, all.now().observations);
  step(all);
  other.step(actions);
  EXPECT_EQ(other.now().rewards, all.now().rewards);
  all.freeze();
  const Values before = all.normalizer()->mean();
  step(all);
  EXPECT_EQ(all.normalizer()->mean(), before);
  EXPECT_THROW(other.set_state({}), ShapeError);
}

// A policy takes the normaliser along: it sees the environment as it is.
TEST(Wrappers, PoliciesNormalizeForThemselves) {
  PPOOptions options;
  options.rollout_steps = 16;
  options.batch_size = 64;
  options.hidden = {8};
  options.device = Device::cpu();
  PPO agent(std::make_unique<NormalizedEnvironment>(make_vector_environment("Pendulum-v1", 4, 1)), options);
  agent.train(640);
  const Policy policy = agent.policy();
  Values raw = agent.environments().raw().observations, normalized = raw;
  agent.environments().normalizer()->normalize(normalized);
  EXPECT_EQ(normalized, agent.environments().now().observations);
  PPO plain(make_vector_environment("Pendulum-v1", 4, 1), options);
  EXPECT_NO_THROW(policy.act(raw));
  EXPECT_LT(agent.monitor().episodes(), 8);
}

TEST(Wrappers, ChangeActionsAndRewards) {
  const auto pendulum = [] { return make_environment("Pendulum-v1"); };
  RescaledActions scaled(pendulum());
  ClippedActions clipped(pendulum());
  ScaledRewards small(pendulum(), 100, 0.5);
  const auto plain = pendulum();
  Values a(3), b(3);
  const Values state{1, 0, 0};
  const auto after = [&](Environment& environment, double action, Values& seen) {
    environment.set_state(state, seen);
    return environment.step(Values{action}, seen);
  };
  after(scaled, 0.5, a), after(*plain, 1, b);
  EXPECT_EQ(a, b);
  after(clipped, 99, a), after(*plain, 2, b);
  EXPECT_EQ(a, b);
  EXPECT_EQ(after(small, 0, a).reward, -0.5);
  EXPECT_THROW(RescaledActions(make_environment("CartPole-v1")), ValueError);
  EXPECT_THROW(TimeLimit(pendulum(), 0), ValueError);
}

/// Says that its numbers are below 1, and gives others; draws its first one from elsewhere.
class Broken final : public Environment {
 public:
  const Space& observation_space() const override { return space_; }
  const Space& action_space() const override { return ways_; }
  void reset(Random&, std::span<double> observation) override { observation[0] = ++resets_ * 0.01; }
  StepResult step(std::span<const double>, std::span<double> observation) override {
    observation[0] = 2;
    return {std::nan(""), true, false};
  }

 private:
  Box space_{0.0, 1.0, 1};
  Discrete ways_{2};
  int resets_ = 0;
};

TEST(Wrappers, TheCheckerFindsWhatIsBroken) {
  for (const detail::ClassicFacts& facts : detail::classic_environments()) {
    const std::string& name = facts.name;
    const auto environment = make_environment(name);
    EXPECT_EQ(check_environment(*environment), std::vector<std::string>()) << name;
  }
  Broken broken;
  const std::vector<std::string> problems = check_environment(broken, 0, 3);
  ASSERT_GE(problems.size(), 3U);
  EXPECT_NE(problems[0].find("is not in Box(1)"), std::string::npos) << problems[0];
  EXPECT_NE(problems[1].find("the reward is nan"), std::string::npos) << problems[1];
  EXPECT_NE(problems.back().find("different episodes"), std::string::npos) << problems.back();
}

TEST(Wrappers, SpacesSampleWithinThemselves) {
  Random random(1);
  const Box box({-1, 0, -INFINITY}, {1, INFINITY, 3});
  const MultiDiscrete choices({3, 2});
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(box.contains(box.sample(random)));
    EXPECT_TRUE(choices.contains(choices.sample(random)));
  }
  EXPECT_EQ(choices.flatten(Values{2, 0}), (Values{0, 0, 1, 1, 0}));
  EXPECT_EQ(choices.unflatten(Values{0, 0, 1, 1, 0}), (Values{2, 0}));
  EXPECT_EQ(choices.to_string(), "MultiDiscrete(3, 2)");
  EXPECT_FALSE(choices.contains(Values{1, 2}) || choices.contains(Values{0.5, 0}) ||
               choices.contains(Values{0}));
  EXPECT_FALSE(box.contains(Values{0, 0, std::nan("")}));
  EXPECT_THROW(Box(1, 0, 2), ValueError);
  EXPECT_THROW(Discrete(0), ValueError);
  EXPECT_THROW(choices.flatten(Values{3, 0}), ValueError);
}

}  // namespace
}  // namespace caldera::rl
