#include "training/rl/envs/vector_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "engine/base/error.h"

namespace caldera::rl {
namespace {

using World = std::unique_ptr<MultiAgentEnvironment>;

std::size_t size_of_space(const Space& space) { return static_cast<std::size_t>(space.size()); }

/// Agents of several worlds as rows.
class WorldsOfAgents final : public VectorEnvironment {
 public:
  WorldsOfAgents(std::vector<World> worlds, std::uint64_t seed, int threads)
      : VectorEnvironment(static_cast<std::int64_t>(worlds.size()) * worlds.front()->agents(),
                          worlds.front()->observation_space(), worlds.front()->action_space()),
        worlds_(std::move(worlds)),
        agents_(static_cast<std::size_t>(worlds_.front()->agents())),
        results_(worlds_.size() * agents_),
        threads_(std::max(1, threads)) {
    for (std::size_t w = 0; w < worlds_.size(); ++w) randoms_.push_back(Random::stream(seed, w));
    reset();
  }

  void reset() override {
    for (std::size_t w = 0; w < worlds_.size(); ++w) begin_world(w);
    std::ranges::fill(now_.terminated, std::uint8_t{0});
    std::ranges::fill(now_.truncated, std::uint8_t{0});
  }

  void step(std::span<const double> actions) override {
    check_actions(actions);
    const std::size_t width = agents_ * size_of_space(action_space());
    std::exception_ptr error;
    const auto n = static_cast<std::ptrdiff_t>(worlds_.size());
#pragma omp parallel for num_threads(threads_) if (threads_ > 1) schedule(static)
    for (std::ptrdiff_t k = 0; k < n; ++k) {
      const auto w = static_cast<std::size_t>(k);
      try {
        step_world(w, actions.subspan(w * width, width));
      } catch (...) {
#pragma omp critical(caldera_rl_step)
        if (!error) error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
  }

  VectorState state() const override {
    VectorState state;
    for (std::size_t w = 0; w < worlds_.size(); ++w) {
      const std::vector<double> one = worlds_[w]->state();
      state.numbers.push_back(static_cast<double>(one.size()));
      state.numbers.insert(state.numbers.end(), one.begin(), one.end());
      state.randoms.push_back(randoms_[w].state());
    }
    return state;
  }

  void set_state(const VectorState& state) override {
    if (state.randoms.size() != worlds_.size())
      throw ShapeError(
          fmt::format("the state of {} environments; there are {}", state.randoms.size(), worlds_.size()));
    std::span<const double> left = state.numbers;
    for (std::size_t w = 0; w < worlds_.size(); ++w) {
      const double size = left.empty() ? -1 : left.front();
      if (!(size >= 0 && size < static_cast<double>(left.size())))
        throw ShapeError(fmt::format("the state of environment {} is cut off", w));
      const auto one = left.subspan(1, static_cast<std::size_t>(size));
      left = left.subspan(1 + one.size());
      randoms_[w] = Random(state.randoms[w]);
      if (one.empty())
        begin_world(w);
      else
        worlds_[w]->set_state(one, rows(now_.observations, w));
    }
  }

 private:
  std::span<double> rows(std::vector<double>& all, std::size_t w) const {
    const std::size_t width = agents_ * size_of_space(observation_space());
    return std::span(all).subspan(w * width, width);
  }

  void begin_world(std::size_t w) {
    worlds_[w]->reset(randoms_[w], rows(now_.observations, w));
    check_observations(w, "reset()");
  }

  /// One number that is none would make all parameters of an agent such.
  void check_observations(std::size_t w, const char* of) {
    const std::span<const double> seen = rows(now_.observations, w);
    if (!std::ranges::all_of(seen, [](double x) { return std::isfinite(x); }))
      throw ValueError(fmt::format(
          "environment {}: {} gave the observation ({}); check_environment() looks for such steps", w, of,
          fmt::join(seen, ", ")));
  }

  void step_world(std::size_t w, std::span<const double> actions) {
    const std::span<double> observations = rows(now_.observations, w);
    const auto results = std::span(results_).subspan(w * agents_, agents_);
    worlds_[w]->step(actions, observations, results);
    check_observations(w, "step()");
    const bool ends =
        std::ranges::any_of(results, [](const StepResult& r) { return r.terminated || r.truncated; });
    for (std::size_t a = 0; a < agents_; ++a) {
      const std::size_t at = w * agents_ + a;
      now_.rewards[at] = results[a].reward;
      if (!std::isfinite(results[a].reward))
        throw ValueError(
            fmt::format("environment {}: step() gave the reward {}; check_environment() looks for such steps",
                        w, results[a].reward));
      now_.terminated[at] = results[a].terminated ? 1 : 0;
      now_.truncated[at] = results[a].truncated || (ends && !results[a].terminated) ? 1 : 0;
    }
    if (!ends) return;
    std::ranges::copy(observations, rows(now_.last_observations, w).begin());
    begin_world(w);
  }

  std::vector<World> worlds_;
  std::size_t agents_;
  std::vector<StepResult> results_;
  std::vector<Random> randoms_;
  int threads_;
};

/// An environment as a world of one agent.
class OneAgent final : public MultiAgentEnvironment {
 public:
  explicit OneAgent(std::unique_ptr<Environment> environment) : environment_(std::move(environment)) {}
  std::int64_t agents() const override { return 1; }
  const Space& observation_space() const override { return environment_->observation_space(); }
  const Space& action_space() const override { return environment_->action_space(); }
  void reset(Random& random, std::span<double> observations) override {
    environment_->reset(random, observations);
  }
  void step(std::span<const double> actions, std::span<double> observations,
            std::span<StepResult> results) override {
    results[0] = environment_->step(actions, observations);
  }
  std::vector<double> state() const override { return environment_->state(); }
  void set_state(std::span<const double> state, std::span<double> observations) override {
    environment_->set_state(state, observations);
  }

 private:
  std::unique_ptr<Environment> environment_;
};

void check_world(const World& world, const World& first) {
  if (!world) throw ValueError("make_multi_agent_environment: the function made no world");
  if (world->agents() < 1)
    throw ValueError(fmt::format("make_multi_agent_environment: a world of {} agents", world->agents()));
  if (world->agents() != first->agents() ||
      world->observation_space().to_string() != first->observation_space().to_string() ||
      world->action_space().to_string() != first->action_space().to_string())
    throw ValueError("make_multi_agent_environment: worlds differ in their agents or spaces");
}

}  // namespace

VectorEnvironment::VectorEnvironment(std::int64_t count, Space observations, Space actions)
    : count_(count), observation_space_(std::move(observations)), action_space_(std::move(actions)) {
  if (count < 1) throw ValueError(fmt::format("{} environments; at least 1", count));
  const auto rows = static_cast<std::size_t>(count);
  now_.observations.resize(rows * static_cast<std::size_t>(observation_space_.size()));
  now_.last_observations.resize(now_.observations.size());
  now_.rewards.resize(rows);
  now_.terminated.resize(rows);
  now_.truncated.resize(rows);
}

void VectorEnvironment::check_actions(std::span<const double> actions) const {
  if (static_cast<std::int64_t>(actions.size()) != count_ * action_space_.size())
    throw ShapeError(fmt::format("step: {} numbers as actions; {} environments with {} take {}",
                                 actions.size(), count_, action_space_.to_string(),
                                 count_ * action_space_.size()));
}

std::unique_ptr<VectorEnvironment> make_vector_environment(const EnvironmentFactory& make, std::int64_t count,
                                                           std::uint64_t seed, int threads) {
  if (!make) throw ValueError("make_vector_environment: give a function that makes an environment");
  if (count < 1) throw ValueError(fmt::format("{} environments; at least 1", count));
  std::vector<World> all;
  for (std::int64_t i = 0; i < count; ++i) {
    std::unique_ptr<Environment> one = make();
    if (!one) throw ValueError("make_vector_environment: the function made no environment");
    all.push_back(std::make_unique<OneAgent>(std::move(one)));
  }
  return std::make_unique<WorldsOfAgents>(std::move(all), seed, threads);
}

std::unique_ptr<VectorEnvironment> make_multi_agent_environment(const MultiAgentFactory& make,
                                                                std::int64_t worlds, std::uint64_t seed,
                                                                int threads) {
  if (!make) throw ValueError("make_multi_agent_environment: give a function that makes a world");
  if (worlds < 1) throw ValueError(fmt::format("{} worlds; at least 1", worlds));
  std::vector<World> all;
  for (std::int64_t w = 0; w < worlds; ++w) {
    all.push_back(make());
    check_world(all.back(), all.front());
  }
  return std::make_unique<WorldsOfAgents>(std::move(all), seed, threads);
}

}  // namespace caldera::rl
