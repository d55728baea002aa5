#include "training/rl/envs/batch_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "training/rl/envs/batch_kernels.h"
#include "training/rl/envs/classic.h"

namespace caldera::rl {
namespace {

const detail::ClassicFacts& classic_facts(std::string_view name) {
  if (const detail::ClassicFacts* facts = detail::find_classic(name)) return *facts;
  std::vector<std::string> names;
  for (const detail::ClassicFacts& facts : detail::classic_environments()) names.push_back(facts.name);
  throw ValueError(fmt::format("BatchEnvironment: '{}' is no classic environment (valid: {})", name,
                               fmt::join(names, ", ")));
}

}  // namespace

BatchEnvironment::BatchEnvironment(std::string_view name, std::int64_t count, std::uint64_t seed)
    : VectorEnvironment(count, classic_facts(name).observations, classic_facts(name).actions),
      facts_(classic_facts(name)),
      kernel_(detail::find_batch_kernel(name)),
      stride_((static_cast<std::size_t>(count) + 15) / 16 * 16),
      states_(facts_.state * stride_),
      actions_(stride_),
      seen_(static_cast<std::size_t>(observation_space().size()) * stride_),
      rewards_(stride_),
      ended_(stride_),
      taken_(stride_) {
  for (std::int64_t i = 0; i < count; ++i)
    randoms_.push_back(Random::stream(seed, static_cast<std::uint64_t>(i)));
  reset();
}

void BatchEnvironment::begin(std::size_t i) {
  std::array<double, 8> draws{};
  for (std::size_t k = 0; k < kernel_.draws; ++k) draws[k] = randoms_[i].uniform();
  kernel_.begin(draws.data(), states_.data(), stride_, i);
  taken_[i] = 0;
}

void BatchEnvironment::reset() {
  for (std::size_t i = 0; i < randoms_.size(); ++i) begin(i);
  std::ranges::fill(now_.terminated, std::uint8_t{0});
  std::ranges::fill(now_.truncated, std::uint8_t{0});
  observe();
}

void BatchEnvironment::observe() {
  kernel_.observe(states_.data(), seen_.data(), now_.observations.data(), stride_, randoms_.size());
}

void BatchEnvironment::step(std::span<const double> actions) {
  check_actions(actions);
  std::ranges::copy(actions, actions_.begin());
  kernel_.step(states_.data(), actions_.data(), rewards_.data(), ended_.data(), stride_);
  std::copy_n(rewards_.begin(), randoms_.size(), now_.rewards.begin());
  observe();
  const auto width = static_cast<std::size_t>(observation_space().size());
  const auto limit = static_cast<std::int32_t>(facts_.steps);
  for (std::size_t i = 0; i < randoms_.size(); ++i) now_.terminated[i] = ended_[i] != 0 ? 1 : 0;
  for (std::size_t i = 0; i < randoms_.size(); ++i) now_.truncated[i] = ++taken_[i] >= limit ? 1 : 0;
  for (std::size_t i = 0; i < randoms_.size(); ++i) {
    if (!now_.ended(i)) continue;
    double* const row = now_.observations.data() + i * width;
    std::copy_n(row, width, now_.last_observations.data() + i * width);
    begin(i);
    kernel_.observe_one(states_.data(), row, stride_, i);
  }
}

VectorState BatchEnvironment::state() const {
  VectorState state;
  for (std::size_t i = 0; i < randoms_.size(); ++i) {
    for (std::size_t k = 0; k < facts_.state; ++k) state.numbers.push_back(states_[k * stride_ + i]);
    state.numbers.push_back(taken_[i]);
    state.randoms.push_back(randoms_[i].state());
  }
  return state;
}

void BatchEnvironment::set_state(const VectorState& state) {
  const std::size_t width = facts_.state + 1;
  if (state.randoms.size() != randoms_.size() || state.numbers.size() != width * randoms_.size())
    throw ShapeError(fmt::format("{}: the state of {} environments with {} numbers; there are {}, with {}",
                                 facts_.name, state.randoms.size(), state.numbers.size(), randoms_.size(),
                                 width * randoms_.size()));
  for (std::size_t i = 0; i < randoms_.size(); ++i) {
    const auto one = std::span(state.numbers).subspan(i * width, width);
    const double taken = one.back();
    if (!std::ranges::all_of(one, [](double x) { return std::isfinite(x); }) || taken < 0 ||
        taken >= static_cast<double>(facts_.steps))
      throw ValueError(
          fmt::format("{}: the state of environment {} is none: ({})", facts_.name, i, fmt::join(one, ", ")));
  }
  for (std::size_t i = 0; i < randoms_.size(); ++i) {
    for (std::size_t k = 0; k < facts_.state; ++k) states_[k * stride_ + i] = state.numbers[i * width + k];
    taken_[i] = static_cast<std::int32_t>(state.numbers[i * width + facts_.state]);
    randoms_[i] = Random(state.randoms[i]);
  }
  observe();
}

}  // namespace caldera::rl
