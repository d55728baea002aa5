#include "training/rl/sac/sac_update.h"

#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"
#include "ops/reduce/mean.h"
#include "ops/shape/joining.h"
#include "ops/shape/manipulation.h"
#include "training/rl/nets/gradients.h"
#include "training/rl/nets/mlp.h"

namespace caldera::rl::detail {
namespace {

constexpr double kLeastLogStd = -20, kMostLogStd = 2;  // as in the authors' code (Haarnoja et al. 2018)

/// Transitions by their parts.
struct Batch {
  LazyTensor observations, actions, rewards, terminated, next;
};

Batch parts_of(const SacShape& shape, const LazyTensor& rows) {
  const std::int64_t o = shape.observations, a = shape.actions;
  const auto columns = [&](std::int64_t from, std::int64_t count) {
    return slice(rows, 1, from, from + count);
  };
  return {columns(0, o), columns(o, a), squeeze(columns(o + a, 1), -1), squeeze(columns(o + a + 1, 1), -1),
          columns(o + a + 2, o)};
}

struct Values {
  LazyTensor first, second;
};

Values critics_at(const SacShape& shape, std::span<const LazyTensor> critics, const LazyTensor& observations,
                  const LazyTensor& actions) {
  const LazyTensor input = concatenate({observations, actions}, -1);
  const std::size_t n = shape.network();
  return {squeeze(mlp(critics.first(n), input, shape.activation), -1),
          squeeze(mlp(critics.subspan(n), input, shape.activation), -1)};
}

LazyTensor least(const Values& values) { return minimum(values.first, values.second); }

}  // namespace

std::vector<LazyTensor> SacState::all() const {
  std::vector<LazyTensor> all = actor.all();
  for (const AdamState* part : {&critics, &temperature}) {
    const std::vector<LazyTensor> more = part->all();
    all.insert(all.end(), more.begin(), more.end());
  }
  all.insert(all.end(), targets.begin(), targets.end());
  return all;
}

std::size_t SacState::size(const SacShape& shape) {
  const std::size_t n = shape.network();
  return AdamState::size(n) + AdamState::size(2 * n) + AdamState::size(1) + 2 * n;
}

SacState SacState::from(std::span<const LazyTensor> all, const SacShape& shape) {
  const std::size_t n = shape.network();
  std::size_t at = 0;
  const auto next = [&](std::size_t count) {
    const auto part = all.subspan(at, count);
    at += count;
    return part;
  };
  SacState state;
  state.actor = AdamState::from(next(AdamState::size(n)), n);
  state.critics = AdamState::from(next(AdamState::size(2 * n)), 2 * n);
  state.temperature = AdamState::from(next(AdamState::size(1)), 1);
  const auto targets = next(2 * n);
  state.targets.assign(targets.begin(), targets.end());
  return state;
}

TanhNormal sac_policy(const SacShape& shape, std::span<const LazyTensor> actor,
                      const LazyTensor& observations) {
  const LazyTensor output = mlp(actor, observations, shape.activation);
  const LazyTensor log_std = slice(output, -1, shape.actions, 2 * shape.actions);
  return {slice(output, -1, 0, shape.actions),
          clip(log_std, LazyTensor(kLeastLogStd), LazyTensor(kMostLogStd))};
}

SacResult sac_update(const SacShape& shape, const SACOptions& options, const SacState& state,
                     const LazyTensor& rows, const LazyTensor& noise, const LazyTensor& rate) {
  const Batch batch = parts_of(shape, rows);
  const auto noise_of = [&](std::int64_t k) { return squeeze(slice(noise, 0, k, k + 1), 0); };
  const LazyTensor& log_temperature = state.temperature.parameters[0];
  const LazyTensor temperature = exp(log_temperature);
  SacState next;

  const TanhNormal future = sac_policy(shape, state.actor.parameters, batch.next);
  const Squashed future_action = future.rsample(noise_of(0));
  const LazyTensor future_value = least(critics_at(shape, state.targets, batch.next, future_action.value)) -
                                  temperature * future.log_prob_before(future_action.before);
  const LazyTensor wanted =
      stop_gradient(batch.rewards + (1.0 - batch.terminated) * future_value * options.gamma);
  const LossGradients critics = loss_gradients(
      [&](std::span<const LazyTensor> parameters) {
        const Values values = critics_at(shape, parameters, batch.observations, batch.actions);
        return (mean(square(values.first - wanted)) + mean(square(values.second - wanted))) * 0.5;
      },
      state.critics.parameters, options.grad_mode);
  next.critics = adam_step(state.critics, critics.grads, rate);

  std::vector<LazyTensor> judges;
  for (const LazyTensor& p : next.critics.parameters) judges.push_back(stop_gradient(p));
  LazyTensor log_prob;
  const LossGradients actor = loss_gradients(
      [&](std::span<const LazyTensor> parameters) {
        const TanhNormal policy = sac_policy(shape, parameters, batch.observations);
        const Squashed action = policy.rsample(noise_of(1));
        const LazyTensor found = policy.log_prob_before(action.before);
        if (!log_prob.defined()) log_prob = found;
        return mean(temperature * found - least(critics_at(shape, judges, batch.observations, action.value)));
      },
      state.actor.parameters, options.grad_mode);
  next.actor = adam_step(state.actor, actor.grads, rate);

  next.temperature = state.temperature;
  if (!options.temperature) {
    const double target = options.target_entropy.value_or(-static_cast<double>(shape.actions));
    const LossGradients loss = loss_gradients(
        [&](std::span<const LazyTensor> parameters) {
          return -mean(parameters[0] * stop_gradient(log_prob + target));
        },
        state.temperature.parameters, options.grad_mode);
    next.temperature = adam_step(state.temperature, loss.grads, rate);
  }
  for (std::size_t i = 0; i < state.targets.size(); ++i)
    next.targets.push_back(state.targets[i] * (1 - options.tau) + next.critics.parameters[i] * options.tau);
  return {std::move(next),
          stack({critics.loss, actor.loss, reshape(temperature, Shape{}), -mean(log_prob)}, 0)};
}

}  // namespace caldera::rl::detail
