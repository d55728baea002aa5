// Environments against Gymnasium's trajectories, to the last bit.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "engine/base/error.h"
#include "training/rl/envs/batch_environment.h"
#include "training/rl/envs/classic.h"
#include "training/rl/envs/dynamics.h"
#include "training/rl/envs/graph_environment.h"
#include "training/rl/envs/registry.h"

namespace caldera::rl {
namespace {

using Numbers = std::vector<double>;

/// An environment in a given state.
struct Placed {
  Placed(const char* name, Numbers state)
      : environment(make_unlimited_environment(name)),
        observation(static_cast<std::size_t>(environment->observation_space().size())) {
    environment->set_state(state, observation);
  }
  StepResult step(double action) { return environment->step(std::span(&action, 1), observation); }

  std::unique_ptr<Environment> environment;
  Numbers observation;
};

/// The state after these steps.
Numbers state_after(const char* name, const Numbers& state, int steps, double (*action)(int)) {
  Placed placed(name, state);
  for (int i = 0; i < steps; ++i) placed.step(action(i));
  Numbers after = placed.environment->state();
  after.resize(state.size());
  return after;
}

// Numbers of tests/golden/rl/generate.py.
TEST(Environments, AreGymnasiumsBitForBit) {
  const auto alternate = [](int i) -> double { return i % 2; };
  const Numbers cart{0.01, -0.02, 0.03, -0.04};
  EXPECT_EQ(state_after("CartPole-v1", cart, 1, alternate),
            (Numbers{0.009600000000000001, -0.21553901710278936, 0.0292, 0.2619952237760392}));
  EXPECT_EQ(state_after("CartPole-v1", cart, 20, alternate),
            (Numbers{-0.03957518147707681, -0.037975691094187164, 0.12910626835660832, 0.3593825712559674}));
  const auto half = [](int) { return 0.5; };
  EXPECT_EQ(state_after("Pendulum-v1", {std::numbers::pi, 1}, 200, half),
            (Numbers{3.3635597471216196, 1.0485988321334359}));
  EXPECT_EQ(state_after("MountainCar-v0", {-0.5, 0}, 100, [](int i) -> double { return i / 20 % 3; }),
            (Numbers{-1.0368402787487432, -0.01320819184234211}));
  const Numbers acrobot{0.05, -0.03, 0.02, 0.01};
  const auto sevens = [](int i) -> double { return i / 7 % 3; };
  EXPECT_EQ(state_after("Acrobot-v1", acrobot, 10, sevens),
            (Numbers{-0.11312707900263808, -0.05866811722704074, -0.2891464872520392, 0.9643097729456345}));
  EXPECT_EQ(state_after("Acrobot-v1", acrobot, 100, sevens),
            (Numbers{-0.11727275026223202, 0.3932995876520324, 0.005780695484466303, -0.3224083101720644}));
}

// The published numbers of this trajectory were made with NumPy 1.24, whose cosine is up to two units of the
// last place off on processors with AVX-512; Gymnasium's environment takes math.cos. Given these cosines
// (numpy.cos of the angles of the 20 steps), the dynamics have the published numbers to the last bit.
namespace published {
using namespace detail;  // NOLINT(google-build-using-namespace): all but the cosine is theirs
const double* next_cosine = nullptr;
double cosine(double /*angle*/) { return *next_cosine++; }
#include "training/rl/envs/dynamics-inl.h"
}  // namespace published

TEST(Environments, CartPoleIsThePublishedOneBitForBit) {
  static constexpr double kCosines[] = {
      0x1.ffc505a355cf8p-1, 0x1.ffc82017476b4p-1, 0x1.ffb24664a64c5p-1, 0x1.ffb43060a6bddp-1,
      0x1.ff98f71d6b1a6p-1, 0x1.ff98f08fef891p-1, 0x1.ff76c854d766fp-1, 0x1.ff73bcbaf3fcep-1,
      0x1.ff48989c2ef80p-1, 0x1.ff40fea324c7ap-1, 0x1.ff0a2a29e1f6cp-1, 0x1.fefbd767035afp-1,
      0x1.feb5be334629fp-1, 0x1.fe9daab637794p-1, 0x1.fe438ce79d625p-1, 0x1.fe1d80f814b0cp-1,
      0x1.fda90de40a7e5p-1, 0x1.fd6f32559a4a2p-1, 0x1.fcd801040c9bep-1, 0x1.fc82481594befp-1};
  published::next_cosine = kCosines;
  std::array<double, 4> state{0.01, -0.02, 0.03, -0.04};
  const auto go_to = [&](int from, int to) {
    for (int i = from; i < to; ++i) published::CartPole::advance<double>(state, i % 2);
    return Numbers(state.begin(), state.end());
  };
  // 0.01 - 0.02 * 0.02, published as 0.0096.
  EXPECT_EQ(go_to(0, 1), (Numbers{0.009600000000000001, -0.21553901710278936, 0.0292, 0.2619952237760393}));
  EXPECT_EQ(go_to(1, 2), (Numbers{0.005289219657944213, -0.020845786573834096, 0.03443990447552078,
                                  -0.021336548341699846}));
  EXPECT_EQ(go_to(2, 20),
            (Numbers{-0.03957518147707681, -0.037975691094187136, 0.12910626835660838, 0.35938257125596756}));
}

// With this library's cosine.
TEST(Environments, CartPoleAlternates) {
  const auto alternate = [](int i) -> double { return i % 2; };
  const Numbers cart{0.01, -0.02, 0.03, -0.04};
  const auto expect = [&](int steps, const Numbers& want) {
    const Numbers got = state_after("CartPole-v1", cart, steps, alternate);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], want[i], 4e-16) << steps << ", number " << i;
  };
  expect(1, {0.0096, -0.21553901710278936, 0.0292, 0.2619952237760393});
  expect(2, {0.005289219657944213, -0.020845786573834096, 0.03443990447552078, -0.021336548341699846});
  expect(10, {-0.013963629429072073, -0.025793950300804253, 0.06125620085156021, 0.08799099474620214});
  expect(20, {-0.03957518147707681, -0.037975691094187136, 0.12910626835660838, 0.35938257125596756});
}

TEST(Environments, CartPoleFallsAtStepNine) {
  Placed cart("CartPole-v1", {0, 0, 0, 0});
  for (int step = 1; step < 9; ++step) EXPECT_FALSE(cart.step(1).terminated) << step;
  EXPECT_TRUE(cart.step(1).terminated);
  EXPECT_EQ(cart.observation,
            (Numbers{0.14065097203306187, 1.7603811257683097, -0.21518604988500967, -2.777886494012814}));
}

TEST(Environments, PendulumPaysForTheStateBeforeTheStep) {
  Placed pendulum("Pendulum-v1", {std::numbers::pi, 1});
  double total = 0;
  for (int step = 1; step <= 200; ++step) {
    const StepResult result = pendulum.step(0.5);
    total += result.reward;
    if (step == 1) {
      EXPECT_EQ(result.reward, -9.969854401089357);
      EXPECT_EQ(pendulum.environment->state(), (Numbers{3.195342653589793, 1.0750000000000002}));
    }
  }
  EXPECT_NEAR(total, -1753.6184015231686, 1e-9);
}

/// Full throttle along the velocity; how many steps it takes, and the return.
std::pair<int, double> drive(const char* name, double back, double forth) {
  Placed car(name, {-0.5, 0});
  double total = 0;
  for (int step = 1; step <= 999; ++step) {
    const StepResult result = car.step(car.observation[1] < 0 ? back : forth);
    total += result.reward;
    if (result.terminated) return {step, total};
  }
  return {-1, total};
}

TEST(Environments, MountainCarsReachTheTopInAsManySteps) {
  const auto [continuous, gained] = drive("MountainCarContinuous-v0", -1, 1);
  EXPECT_EQ(continuous, 106);
  EXPECT_NEAR(gained, 89.4, 1e-9);
  const auto [discrete, lost] = drive("MountainCar-v0", 0, 2);
  EXPECT_EQ(discrete, 124);
  EXPECT_EQ(lost, -124);
}

// Of a batch, each follows its own path, and sine and cosine are vectorised.
TEST(Environments, BatchesAreTheEnvironments) {
  for (const detail::ClassicFacts& facts : detail::classic_environments()) {
    const std::string& name = facts.name;
    const std::int64_t count = 21;
    BatchEnvironment batch(name, count, 7);
    const auto separate = make_vector_environment([&] { return make_environment(name); }, count, 7, 2);
    Random random(3);
    Numbers actions(static_cast<std::size_t>(count));
    for (int step = 0; step < 600; ++step) {
      for (double& action : actions) action = batch.action_space().sample(random)[0];
      batch.step(actions);
      separate->step(actions);
      const VectorStep &a = batch.now(), &b = separate->now();
      ASSERT_EQ(a.terminated, b.terminated) << name << " at " << step;
      ASSERT_EQ(a.truncated, b.truncated) << name << " at " << step;
      for (std::size_t i = 0; i < a.observations.size(); ++i) {
        ASSERT_NEAR(a.observations[i], b.observations[i], 1e-6) << name << " at " << step;
        ASSERT_NEAR(a.last_observations[i], b.last_observations[i], 1e-6) << name << " at " << step;
      }
      if (name.starts_with("Acrobot") && step > 30) break;  // chaotic: roundings grow
    }
  }
}

// As graph operations in f64 they are the environments, too.
TEST(Environments, GraphsAreTheEnvironments) {
  for (const detail::ClassicFacts& facts : detail::classic_environments()) {
    const std::string& name = facts.name;
    const GraphEnvironment& graph = find_graph_environment(name);
    const auto environment = make_unlimited_environment(name);
    const Numbers draws{0.3, 0.8, 0.1, 0.6};
    const auto width = static_cast<std::size_t>(graph.observations.size());
    Numbers seen(width);
    const auto rows = [](const Numbers& x) {
      return LazyTensor::from_vector<double>(x, {1, static_cast<std::int64_t>(x.size())}, Device::cpu());
    };
    LazyTensor state =
        graph.begin(rows({draws.begin(), draws.begin() + static_cast<std::ptrdiff_t>(graph.draws)}));
    environment->set_state(state.to_vector<double>(), seen);
    Random random(5);
    for (int step = 0; step < 15; ++step) {
      const Numbers action = graph.actions.sample(random);
      const GraphStep next = graph.step(state, LazyTensor::from_vector<double>(action, {1}, Device::cpu()));
      const StepResult result = environment->step(action, seen);
      const Numbers got = graph.observe(next.state).to_vector<double>();
      for (std::size_t i = 0; i < width; ++i) ASSERT_NEAR(got[i], seen[i], 1e-10) << name << step;
      ASSERT_NEAR(next.reward.item<double>(), result.reward, 1e-10) << name;
      ASSERT_EQ(next.ended.item<int>() != 0, result.terminated) << name;
      state = next.state.detach();
    }
  }
}

TEST(Environments, ARandomPolicyBalancesTwentyTwoSteps) {
  BatchEnvironment carts("CartPole-v1", 64, 1);
  Random random(2);
  Numbers actions(64);
  std::vector<int> lengths(64);
  double steps = 0, episodes = 0;
  while (episodes < 2000) {
    for (double& action : actions) action = static_cast<double>(random.below(2));
    carts.step(actions);
    for (std::size_t i = 0; i < 64; ++i) {
      ++lengths[i];
      if (!carts.now().ended(i)) continue;
      steps += std::exchange(lengths[i], 0);
      ++episodes;
    }
  }
  EXPECT_NEAR(steps / episodes, 22.1, 1);
}

TEST(Environments, GoOnFromTheirState) {
  for (const detail::ClassicFacts& facts : detail::classic_environments()) {
    const std::string& name = facts.name;
    const auto first = make_vector_environment(name, 5, 3), second = make_vector_environment(name, 5, 4);
    Random random(1);
    Numbers actions(5);
    const auto step = [&](VectorEnvironment& environment) {
      for (double& action : actions) action = environment.action_space().sample(random)[0];
      environment.step(actions);
    };
    for (int i = 0; i < 50; ++i) step(*first);
    second->set_state(first->state());
    EXPECT_EQ(first->now().observations, second->now().observations);
    for (int i = 0; i < 300; ++i) {
      step(*first);
      second->step(actions);
      ASSERT_EQ(first->now().observations, second->now().observations) << name << " at " << i;
    }
    EXPECT_THROW(second->set_state({}), ShapeError);
  }
}

TEST(Environments, RefuseWhatIsNotThere) {
  EXPECT_THROW(make_environment("Pong-v5"), ValueError);
  EXPECT_THROW(make_vector_environment("CartPole-v1", 0, 1), ValueError);
  const auto carts = make_vector_environment("CartPole-v1", 2, 1);
  EXPECT_THROW(carts->step(Numbers{1}), ShapeError);
}

}  // namespace
}  // namespace caldera::rl
