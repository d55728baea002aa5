#include "training/rl/envs/normalized_environment.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"

namespace caldera::rl {
namespace {

void write_moments(std::vector<double>& numbers, const RunningMoments& moments) {
  numbers.insert(numbers.end(), moments.mean().begin(), moments.mean().end());
  numbers.insert(numbers.end(), moments.variance().begin(), moments.variance().end());
  numbers.push_back(moments.count());
}

/// Takes moments off the end.
RunningMoments read_moments(std::vector<double>& numbers, std::int64_t width) {
  const auto w = static_cast<std::ptrdiff_t>(width);
  const auto begin = numbers.end() - (2 * w + 1);
  RunningMoments moments({begin, begin + w}, {begin + w, begin + 2 * w}, numbers.back());
  numbers.erase(begin, numbers.end());
  return moments;
}

}  // namespace

NormalizedEnvironment::NormalizedEnvironment(std::unique_ptr<VectorEnvironment> inner,
                                             NormalizeOptions options)
    : VectorEnvironment(inner ? inner->count() : 1, inner ? inner->observation_space() : Box(0.0, 1.0, 1),
                        inner ? inner->action_space() : Space(Discrete(1))),
      inner_(std::move(inner)),
      options_(options),
      observed_(observation_space().size()),
      returned_(1),
      returns_(static_cast<std::size_t>(count())) {
  if (!inner_) throw ValueError("NormalizedEnvironment: there are no environments to normalise");
  take(true);
}

void NormalizedEnvironment::take(bool learns) {
  now_ = inner_->now();
  if (!options_.observations) return;
  if (learns && !frozen_) observed_.add(now_.observations);
  observed_.normalize(now_.observations);
  observed_.normalize(now_.last_observations);
}

void NormalizedEnvironment::reset() {
  inner_->reset();
  std::ranges::fill(returns_, 0.0);
  take(true);
}

void NormalizedEnvironment::step(std::span<const double> actions) {
  inner_->step(actions);
  take(true);
  if (!options_.rewards) return;
  for (std::size_t i = 0; i < returns_.size(); ++i)
    returns_[i] = returns_[i] * options_.gamma + now_.rewards[i];
  if (!frozen_) returned_.add(returns_);
  for (std::size_t i = 0; i < returns_.size(); ++i) {
    now_.rewards[i] = std::clamp(now_.rewards[i] / std::sqrt(returned_.variance()[0] + 1e-8), -10.0, 10.0);
    if (now_.ended(i)) returns_[i] = 0;
  }
}

VectorState NormalizedEnvironment::state() const {
  VectorState state = inner_->state();
  state.numbers.insert(state.numbers.end(), returns_.begin(), returns_.end());
  write_moments(state.numbers, observed_);
  write_moments(state.numbers, returned_);
  return state;
}

void NormalizedEnvironment::set_state(const VectorState& state) {
  VectorState inner = state;
  const std::size_t own = returns_.size() + 2 * static_cast<std::size_t>(observed_.width()) + 1 + 3;
  if (inner.numbers.size() < own) throw ShapeError("NormalizedEnvironment: the state has no moments");
  const RunningMoments returned = read_moments(inner.numbers, 1);
  const RunningMoments observed = read_moments(inner.numbers, observed_.width());
  const auto begin = inner.numbers.end() - static_cast<std::ptrdiff_t>(returns_.size());
  const std::vector<double> returns(begin, inner.numbers.end());
  inner.numbers.erase(begin, inner.numbers.end());
  inner_->set_state(inner);
  observed_ = observed;
  returned_ = returned;
  returns_ = returns;
  take(false);
}

}  // namespace caldera::rl
