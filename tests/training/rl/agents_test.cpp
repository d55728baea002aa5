// PPO and SAC: they learn, go on to the last bit, and have none of the faults that such agents are known for.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/base/error.h"
#include "lm/formats/safetensors/safetensors.h"
#include "tests/support/devices.h"
#include "tests/support/temp_folder.h"
#include "training/rl/rl.h"

namespace caldera::rl {
namespace {

/// Pays the action itself, which is between -5 and 5, for ten steps. Remembers the largest.
class PaysTheAction final : public Environment {
 public:
  explicit PaysTheAction(std::vector<double>* seen) : seen_(seen) {}
  const Space& observation_space() const override { return observations_; }
  const Space& action_space() const override { return actions_; }
  void reset(Random&, std::span<double> observation) override {
    steps_ = 0;
    observation[0] = 1;
  }
  StepResult step(std::span<const double> action, std::span<double> observation) override {
    seen_->push_back(action[0]);
    observation[0] = 1;
    return {action[0], ++steps_ == 10, false};
  }

 private:
  Box observations_{0.0, 1.0, 1}, actions_{-5.0, 5.0, 1};
  std::vector<double>* seen_;
  int steps_ = 0;
};

PPOOptions small_ppo(Device device = Device::cpu()) {
  PPOOptions options;
  options.rollout_steps = 16;
  options.batch_size = 32;
  options.epochs = 2;
  options.hidden = {16};
  options.seed = 3;
  options.device = device;
  return options;
}

SACOptions small_sac() {
  SACOptions options;
  options.hidden = {32};
  options.batch_size = 32;
  options.buffer_size = 1000;
  options.seed = 5;
  options.device = Device::cpu();
  return options;
}

std::vector<float> numbers_of(const AdamState& state) {
  std::vector<float> all;
  for (const LazyTensor& tensor : state.all())
    for (const float x : tensor.to_vector<float>()) all.push_back(x);
  return all;
}

TEST(Agents, PpoLearnsCartPole) {
  const auto agent = make_agent("ppo", "CartPole-v1", {.seed = 1, .device = Device::cpu()});
  agent->train(25'000);
  EXPECT_GT(evaluate_agent(agent->policy(), *make_vector_environment("CartPole-v1", 10, 99), 20).mean_return,
            300);
}

TEST(Agents, PpoGoesOnToTheLastBit) {
  const testing::TempFolder folder;
  const auto make = [] { return PPO(make_vector_environment("CartPole-v1", 4, 2), small_ppo()); };
  PPO whole = make(), first = make(), second = make();
  whole.train(64 * 4);
  first.train(64 * 2);
  first.save(folder.path() / "agent");
  second.load(folder.path() / "agent");
  EXPECT_EQ(second.steps_done(), 128);
  second.train(64 * 4);
  EXPECT_EQ(numbers_of(whole.parameters()), numbers_of(second.parameters()));
  EXPECT_EQ(whole.monitor().state(), second.monitor().state());
}

TEST(Agents, SacGoesOnToTheLastBit) {
  const testing::TempFolder folder;
  const auto make = [] { return SAC(make_vector_environment("Pendulum-v1", 2, 2), small_sac()); };
  SAC whole = make(), first = make(), second = make();
  whole.train(400);
  first.train(200);
  first.save(folder.path() / "agent");
  second.load(folder.path() / "agent");
  second.train(400);
  EXPECT_EQ(whole.updates(), 150);
  EXPECT_EQ(second.updates(), 150);
  whole.policy().save(folder.path() / "a");
  second.policy().save(folder.path() / "b");
  const auto a = SafetensorsFile::open(folder.path() / "a"), b = SafetensorsFile::open(folder.path() / "b");
  for (const std::string& name : a.names()) EXPECT_EQ(a.read_f32(name), b.read_f32(name)) << name;
}

// The rollout is a scan, and all of an iteration one plan.
TEST(Agents, PpoLearnsWithItsEnvironmentsOnTheDevice) {
  const auto make = [](std::uint64_t seed) {
    return make_agent("ppo", "CartPole-v1",
                      {.seed = seed, .device = Device::cpu(), .placement = Placement::device});
  };
  const auto agent = make(1), other = make(2);
  agent->train(25'000);
  EXPECT_GT(agent->monitor().mean_return(), 100);
  EXPECT_GT(evaluate_agent(agent->policy(), *make_vector_environment("CartPole-v1", 10, 99), 20).mean_return,
            300);
  const testing::TempFolder folder;
  agent->save(folder.path() / "agent");
  other->load(folder.path() / "agent");
  agent->train(25'600);
  other->train(25'600);
  EXPECT_EQ(numbers_of(dynamic_cast<DevicePPO&>(*agent).parameters()),
            numbers_of(dynamic_cast<DevicePPO&>(*other).parameters()));
}

TEST(Agents, NoIterationIsLostByRounding) {
  PPO agent(make_vector_environment("CartPole-v1", 4, 2), small_ppo());
  int iterations = 0;
  agent.train(100, [&](const Progress&) { return ++iterations > 0; });
  EXPECT_EQ(iterations, 2);
  EXPECT_EQ(agent.steps_done(), 128);
  PPOOptions odd = small_ppo();
  odd.batch_size = 48;  // would leave 16 rows out
  EXPECT_THROW(PPO(make_vector_environment("CartPole-v1", 4, 2), odd), ValueError);
}

TEST(Agents, UpdatesEndWhereThePolicyHasMovedEnough) {
  PPOOptions options = small_ppo();
  options.learning_rate = 0.1;
  options.epochs = 10;
  options.target_kl = 0.01;
  PPO agent(make_vector_environment("CartPole-v1", 4, 2), options);
  double step = 0;
  agent.train(64, [&](const Progress&) { return true; });
  step = agent.parameters().step.item<float>();
  EXPECT_GT(step, 0);
  EXPECT_LT(step, 20);
}

TEST(Agents, GradientsInForwardModeAreThoseInReverse) {
  PPOOptions options = small_ppo();
  options.hidden = {3};
  options.epochs = 1;
  options.batch_size = 64;
  PPO reverse(make_vector_environment("CartPole-v1", 4, 2), options);
  options.grad_mode = GradMode::forward;
  PPO forward(make_vector_environment("CartPole-v1", 4, 2), options);
  reverse.train(64);
  forward.train(64);
  const std::vector<float> a = numbers_of(reverse.parameters()), b = numbers_of(forward.parameters());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << i;
  options.grad_mode = GradMode::numeric;
  EXPECT_THROW(PPO(make_vector_environment("CartPole-v1", 4, 2), options), ValueError);
}

TEST(Agents, TheFirstUpdateIsThatOfVulkan) {
  const Device vulkan = Device::vulkan();
  CALDERA_REQUIRE_DEVICE(vulkan);
  PPO cpu(make_vector_environment("CartPole-v1", 4, 2), small_ppo());
  PPO gpu(make_vector_environment("CartPole-v1", 4, 2), small_ppo(vulkan));
  cpu.train(64);
  gpu.train(64);
  const std::vector<float> a = numbers_of(cpu.parameters()), b = numbers_of(gpu.parameters());
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << i;
}

TEST(Agents, TheFirstUpdateOfSacIsThatOfVulkan) {
  const Device vulkan = Device::vulkan();
  CALDERA_REQUIRE_DEVICE(vulkan);
  const testing::TempFolder folder;
  for (const Device device : {Device::cpu(), vulkan}) {
    SACOptions options = small_sac();
    options.device = device;
    SAC agent(make_vector_environment("Pendulum-v1", 1, 2), options);
    agent.train(101);
    EXPECT_EQ(agent.updates(), 1);
    agent.save(folder / device.to_string());
  }
  const auto cpu = SafetensorsFile::open(folder / "cpu"),
             gpu = SafetensorsFile::open(folder / vulkan.to_string());
  for (const std::string& name : cpu.names()) {
    if (!name.starts_with("tensor.parameter.") && !name.starts_with("tensor.target.")) continue;
    const std::vector<float> a = cpu.read_f32(name), b = gpu.read_f32(name);
    ASSERT_EQ(a.size(), b.size()) << name;
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << name << i;
  }
}

TEST(Agents, ActionsAreSquashedOnceAndReachTheirBounds) {
  std::vector<double> seen;
  SACOptions options = small_sac();
  options.gamma = 0;
  options.temperature = 0.01;
  options.learning_rate = 0.01;
  SAC agent(make_vector_environment([&] { return std::make_unique<PaysTheAction>(&seen); }, 1, 1), options);
  agent.train(100);
  double most = 0, total = 0;
  for (const double x : seen) most = std::max(most, std::abs(x)), total += std::abs(x) / 100;
  EXPECT_GT(most, 4.5);  // those of the warm-up are in the environment's units
  EXPECT_NEAR(total, 2.5, 0.5);
  agent.train(900);
  const double action = agent.policy().act(std::vector<double>{1})[0];
  EXPECT_GT(action, 0.99 * 5);
  EXPECT_LE(action, 5);
}

TEST(Agents, EachObjectiveHasItsOwnOptimizerState) {
  const testing::TempFolder folder;
  SAC agent(make_vector_environment("Pendulum-v1", 1, 2), small_sac());
  agent.train(120);
  agent.save(folder.path() / "agent");
  const auto file = SafetensorsFile::open(folder.path() / "agent");
  for (const char* name :
       {"tensor.step.actor.0.weight", "tensor.step.critic1.0.weight", "tensor.step.log_temperature"})
    EXPECT_EQ(file.read_f32(name), std::vector<float>{20}) << name;
  for (const char* name :
       {"tensor.exp_avg.actor.2.bias", "tensor.exp_avg_sq.critic2.0.weight", "tensor.replay"})
    EXPECT_TRUE(file.contains(name)) << name;
}

TEST(Agents, RefuseWhatDoesNotFit) {
  const testing::TempFolder folder;
  EXPECT_THROW(SAC(make_vector_environment("CartPole-v1", 1, 2), small_sac()), ValueError);
  EXPECT_THROW(make_agent("dqn", "CartPole-v1"), ValueError);
  PPO carts(make_vector_environment("CartPole-v1", 4, 2), small_ppo());
  carts.train(64);
  carts.save(folder.path() / "agent");
  PPO wider(make_vector_environment("CartPole-v1", 8, 2), small_ppo());
  EXPECT_THROW(wider.load(folder.path() / "agent"), FileError);
  SAC other(make_vector_environment("Pendulum-v1", 1, 2), small_sac());
  EXPECT_THROW(other.load(folder.path() / "agent"), FileError);
  EXPECT_THROW(Policy::load(folder.path() / "agent", Device::cpu()), FileError);
}

}  // namespace
}  // namespace caldera::rl
