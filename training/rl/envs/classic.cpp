// No product and sum may become one instruction here: trajectories are those of Gymnasium to the last bit.
#include "training/rl/envs/classic.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "engine/base/error.h"
#include "training/rl/envs/dynamics.h"

namespace caldera::rl {
namespace {

template <class Dynamics>
Space observations_of() {
  std::vector<double> high(Dynamics::kBounds.begin(), Dynamics::kBounds.end()), low(high.size());
  for (std::size_t i = 0; i < high.size(); ++i) {
    if (high[i] > 1e300) high[i] = std::numeric_limits<double>::infinity();
    low[i] = -high[i];
  }
  if constexpr (std::is_base_of_v<detail::Mountain, Dynamics>) high[0] = 0.6;
  return Box(low, high);
}

template <class Dynamics>
Space actions_of() {
  if constexpr (Dynamics::kChoices > 0)
    return Discrete(Dynamics::kChoices);
  else
    return Box(-Dynamics::kForce, Dynamics::kForce, 1);
}

template <class Dynamics>
class ClassicEnvironment final : public Environment {
 public:
  const Space& observation_space() const override { return observations_; }
  const Space& action_space() const override { return actions_; }

  void reset(Random& random, std::span<double> observation) override {
    std::array<double, Dynamics::kDraws> draws{};
    for (double& u : draws) u = random.uniform();
    state_ = Dynamics::template begin<double>(draws);
    write(observation);
  }

  StepResult step(std::span<const double> action, std::span<double> observation) override {
    const auto outcome = Dynamics::template advance<double>(state_, action[0]);
    write(observation);
    return {outcome.reward, outcome.ended, false};
  }

  std::vector<double> state() const override { return {state_.begin(), state_.end()}; }

  void set_state(std::span<const double> state, std::span<double> observation) override {
    if (state.size() != state_.size())
      throw ShapeError(
          fmt::format("{}: a state of {} numbers; it has {}", Dynamics::kName, state.size(), state_.size()));
    std::copy(state.begin(), state.end(), state_.begin());
    write(observation);
  }

 private:
  void write(std::span<double> observation) const {
    const auto seen = Dynamics::template observe<double>(state_);
    std::copy(seen.begin(), seen.end(), observation.begin());
  }

  Space observations_ = observations_of<Dynamics>();
  Space actions_ = actions_of<Dynamics>();
  std::array<double, Dynamics::kState> state_{};
};

template <class Dynamics>
detail::ClassicFacts facts_of() {
  return {Dynamics::kName,
          Dynamics::kSteps,
          Dynamics::kState,
          observations_of<Dynamics>(),
          actions_of<Dynamics>(),
          []() -> std::unique_ptr<Environment> { return std::make_unique<ClassicEnvironment<Dynamics>>(); }};
}

}  // namespace

namespace detail {

const std::vector<ClassicFacts>& classic_environments() {
  static const std::vector<ClassicFacts> kAll{facts_of<CartPole>(), facts_of<Pendulum>(),
                                              facts_of<MountainCar>(), facts_of<MountainCarContinuous>(),
                                              facts_of<Acrobot>()};
  return kAll;
}

const ClassicFacts* find_classic(std::string_view name) {
  const auto found = std::ranges::find(classic_environments(), name, &ClassicFacts::name);
  return found == classic_environments().end() ? nullptr : &*found;
}

}  // namespace detail
}  // namespace caldera::rl
