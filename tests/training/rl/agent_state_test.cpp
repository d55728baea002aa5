// What agents refuse: numbers that are none, states that no run can have come to; and tables of runs that go
// on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/error.h"
#include "tests/support/messages.h"
#include "tests/support/temp_folder.h"
#include "training/rl/policy/log.h"
#include "training/rl/rl.h"

namespace caldera::rl {
namespace {

using testing::message_of;

/// Pays and shows what it is told to from the third step on.
class Spoiled final : public Environment {
 public:
  Spoiled(double observation, double reward) : observation_(observation), reward_(reward) {}
  const Space& observation_space() const override { return seen_; }
  const Space& action_space() const override { return ways_; }
  void reset(Random&, std::span<double> observation) override { observation[0] = 0; }
  StepResult step(std::span<const double>, std::span<double> observation) override {
    const bool spoils = ++steps_ >= 3;
    observation[0] = spoils ? observation_ : 0;
    return {spoils ? reward_ : 0, false, false};
  }

 private:
  Box seen_{-1.0, 1.0, 1};
  Discrete ways_{2};
  double observation_, reward_;
  int steps_ = 0;
};

PPO small_agent(std::unique_ptr<VectorEnvironment> environments, double rate = 1e-3) {
  PPOOptions options;
  options.rollout_steps = 16;
  options.batch_size = 16;
  options.hidden = {8};
  options.learning_rate = rate;
  options.device = Device::cpu();
  return PPO(std::move(environments), options);
}

TEST(AgentState, EnvironmentsOfOnesOwnHaveNames) {
  register_environment("Spoiled-v0", [] { return std::make_unique<Spoiled>(0.5, 1); });
  const auto names = environment_names();
  EXPECT_NE(std::find(names.begin(), names.end(), "Spoiled-v0"), names.end());
  const auto agent = make_agent("ppo", "Spoiled-v0", {.device = Device::cpu(), .environments = 2});
  agent->train(256);
  EXPECT_EQ(agent->steps_done(), 256);
  EXPECT_THROW(make_agent("ppo", "Spoiled-v0", {.device = Device::cpu(), .placement = Placement::device}),
               ValueError);
  register_environment("None-v0", [] { return nullptr; });
  EXPECT_MENTIONS(message_of<ValueError>([] { make_environment("None-v0"); }), "'None-v0' made none");
  EXPECT_MENTIONS(message_of<ValueError>([] { register_environment("CartPole-v1", [] { return nullptr; }); }),
                  "choose another one");
  EXPECT_THROW(register_environment("", [] { return nullptr; }), ValueError);
}

TEST(AgentState, NumbersThatAreNoneEndTheTraining) {
  const auto spoiled = [](double observation, double reward) {
    return make_vector_environment([=] { return std::make_unique<Spoiled>(observation, reward); }, 2, 1);
  };
  const double inf = std::numeric_limits<double>::infinity();
  PPO sees = small_agent(spoiled(std::nan(""), 1)), gets = small_agent(spoiled(0, inf));
  EXPECT_MENTIONS(message_of<ValueError>([&] { sees.train(32); }),
                  "environment 0: step() gave the observation (nan)");
  EXPECT_MENTIONS(message_of<ValueError>([&] { gets.train(32); }),
                  "environment 0: step() gave the reward inf");
  PPO fast = small_agent(make_vector_environment("CartPole-v1", 4, 2), 1e30);
  const std::string message = message_of<ValueError>([&] { fast.train(64 * 5); });
  EXPECT_MENTIONS(message, "_loss is");
  EXPECT_MENTIONS(message, "lower the learning rate");
}

TEST(AgentState, SaysWhichEnvironmentsAFileIsOf) {
  const testing::TempFolder folder;
  small_agent(make_vector_environment("CartPole-v1", 4, 2)).save(folder / "agent");
  PPO wider = small_agent(make_vector_environment("CartPole-v1", 8, 2)),
      other = small_agent(make_vector_environment("Acrobot-v1", 4, 2));
  EXPECT_MENTIONS(message_of<FileError>([&] { wider.load(folder / "agent"); }),
                  "saved with 4 environments of Box(4) with Discrete(2); this agent has 8 environments");
  EXPECT_MENTIONS(message_of<FileError>([&] { other.load(folder / "agent"); }),
                  "this agent has 4 environments of Box(6) with Discrete(3)");
}

/// Writes other bytes over the beginning of a tensor of a safetensors file.
template <class T>
void overwrite(const std::filesystem::path& path, const std::string& tensor, std::size_t at, T value) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::uint64_t size = 0;
  file.read(reinterpret_cast<char*>(&size), sizeof(size));
  std::string header(size, ' ');
  file.read(header.data(), static_cast<std::streamsize>(size));
  const auto begin = nlohmann::json::parse(header)[tensor]["data_offsets"][0].get<std::size_t>();
  file.seekp(static_cast<std::streamoff>(8 + size + begin + at * sizeof(T)));
  file.write(reinterpret_cast<const char*>(&value), sizeof(T));
}

TEST(AgentState, NoRunCanHaveComeToIsRefused) {
  const testing::TempFolder folder;
  SACOptions options;
  options.hidden = {8};
  options.batch_size = 8;
  options.buffer_size = 100;
  options.start_steps = 10;
  options.device = Device::cpu();
  SAC agent(make_vector_environment("Pendulum-v1", 1, 2), options);
  agent.train(20);
  const auto message = [&](const std::string& tensor, std::size_t at, auto value) {
    agent.save(folder / "agent");
    overwrite(folder / "agent", tensor, at, value);
    return message_of<FileError>([&] { agent.load(folder / "agent"); });
  };
  EXPECT_MENTIONS(message("tensor.inserted", 0, std::int64_t{-1}), "got -1 transitions");
  EXPECT_MENTIONS(message("tensor.inserted", 0, std::numeric_limits<std::int64_t>::max()), "transitions");
  EXPECT_MENTIONS(message("counters", 0, std::int64_t{-5}), "number of steps");
  EXPECT_MENTIONS(message("environments.numbers", 0, std::nan("")), "the state of environment 0 is none");
  EXPECT_MENTIONS(message("environments.numbers", 2, 1e300), "the state of environment 0 is none");
  agent.train(40);
  EXPECT_EQ(agent.steps_done(), 40);
}

std::string text_of(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A run that was killed has a longer table than its saved agent.
TEST(AgentState, TablesGoOnFromWhereTheAgentDoes) {
  const testing::TempFolder folder;
  const Progress at{.steps = 30,
                    .total = 90,
                    .episodes = 4,
                    .mean_return = 2,
                    .mean_length = 3,
                    .steps_per_second = 1,
                    .figures = {{"policy_loss", 0.5}}};
  folder.put("progress.csv", "steps,episodes,mean_return\n10,1,5\n20,2,6\n30,3,7\n4");
  AgentLog(folder.path(), 20).add(at);
  EXPECT_EQ(text_of(folder / "progress.csv"), "steps,episodes,mean_return\n10,1,5\n20,2,6\n30,4,2,3,1,0.5\n");
  // Before an algorithm learned anything, its table had no names.
  folder.put("progress.csv", "");
  AgentLog(folder.path(), 20).add(at);
  EXPECT_EQ(text_of(folder / "progress.csv"),
            "steps,episodes,mean_return,mean_length,steps_per_second,policy_loss\n30,4,2,3,1,0.5\n");
}

}  // namespace
}  // namespace caldera::rl
