#include "training/rl/envs/vector_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "engine/base/error.h"

namespace caldera::rl {
namespace {

/// Environments behind the virtual interface.
class SeparateEnvironments final : public VectorEnvironment {
 public:
  SeparateEnvironments(std::vector<std::unique_ptr<Environment>> all, std::uint64_t seed, int threads)
      : VectorEnvironment(static_cast<std::int64_t>(all.size()), all.front()->observation_space(),
                          all.front()->action_space()),
        all_(std::move(all)),
        threads_(std::max(1, threads)) {
    for (std::size_t i = 0; i < all_.size(); ++i) randoms_.push_back(Random::stream(seed, i));
    reset();
  }

  void reset() override {
    for (std::size_t i = 0; i < all_.size(); ++i) all_[i]->reset(randoms_[i], row(now_.observations, i));
    std::ranges::fill(now_.terminated, std::uint8_t{0});
    std::ranges::fill(now_.truncated, std::uint8_t{0});
  }

  void step(std::span<const double> actions) override {
    check_actions(actions);
    const auto width = static_cast<std::size_t>(action_space().size());
    std::exception_ptr error;
    const auto n = static_cast<std::ptrdiff_t>(all_.size());
#pragma omp parallel for num_threads(threads_) if (threads_ > 1) schedule(static)
    for (std::ptrdiff_t k = 0; k < n; ++k) {
      const auto i = static_cast<std::size_t>(k);
      try {
        step_one(i, actions.subspan(i * width, width));
      } catch (...) {
#pragma omp critical(caldera_rl_step)
        error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
  }

  VectorState state() const override {
    VectorState state;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const std::vector<double> one = all_[i]->state();
      state.numbers.push_back(static_cast<double>(one.size()));
      state.numbers.insert(state.numbers.end(), one.begin(), one.end());
      state.randoms.push_back(randoms_[i].state());
    }
    return state;
  }

  void set_state(const VectorState& state) override {
    if (state.randoms.size() != all_.size())
      throw ShapeError(
          fmt::format("the state of {} environments; there are {}", state.randoms.size(), all_.size()));
    std::size_t at = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const std::size_t left = state.numbers.size() - std::min(at, state.numbers.size());
      const double size = left > 0 ? state.numbers[at] : -1;
      if (!(size >= 0 && size < static_cast<double>(left)))
        throw ShapeError(fmt::format("the state of environment {} is cut off", i));
      randoms_[i] = Random(state.randoms[i]);
      const auto one = std::span(state.numbers).subspan(at + 1, static_cast<std::size_t>(size));
      if (one.empty())
        all_[i]->reset(randoms_[i], row(now_.observations, i));
      else
        all_[i]->set_state(one, row(now_.observations, i));
      at += 1 + one.size();
    }
  }

 private:
  std::span<double> row(std::vector<double>& rows, std::size_t i) const {
    const auto width = static_cast<std::size_t>(observation_space().size());
    return std::span(rows).subspan(i * width, width);
  }

  void step_one(std::size_t i, std::span<const double> action) {
    const std::span<double> observation = row(now_.observations, i);
    const StepResult result = all_[i]->step(action, observation);
    now_.rewards[i] = result.reward;
    now_.terminated[i] = result.terminated ? 1 : 0;
    now_.truncated[i] = result.truncated ? 1 : 0;
    if (!result.terminated && !result.truncated) return;
    std::ranges::copy(observation, row(now_.last_observations, i).begin());
    all_[i]->reset(randoms_[i], observation);
  }

  std::vector<std::unique_ptr<Environment>> all_;
  std::vector<Random> randoms_;
  int threads_;
};

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
  std::vector<std::unique_ptr<Environment>> all;
  for (std::int64_t i = 0; i < std::max<std::int64_t>(count, 1); ++i) {
    all.push_back(make());
    if (!all.back()) throw ValueError("make_vector_environment: the function made no environment");
  }
  if (count < 1) throw ValueError(fmt::format("{} environments; at least 1", count));
  return std::make_unique<SeparateEnvironments>(std::move(all), seed, threads);
}

}  // namespace caldera::rl
