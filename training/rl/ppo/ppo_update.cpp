#include "training/rl/ppo/ppo_update.h"

#include "engine/control/scan.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"
#include "ops/elementwise/clip.h"
#include "ops/elementwise/exponential.h"
#include "ops/elementwise/power.h"
#include "ops/elementwise/sign.h"
#include "ops/reduce/mean.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/joining.h"
#include "training/optim/clip.h"
#include "training/rl/nets/gradients.h"
#include "training/rl/ppo/gae.h"

namespace caldera::rl::detail {
namespace {

/// What updates are made of, a row each.
struct Experience {
  LazyTensor observations, actions, log_probs, advantages, returns, values;
};

/// A batch of it.
Experience rows_of(const Experience& all, const LazyTensor& rows) {
  const auto pick = [&](const LazyTensor& x) { return take(x, rows, 0); };
  return {pick(all.observations), pick(all.actions), pick(all.log_probs),
          pick(all.advantages),   pick(all.returns), pick(all.values)};
}

LazyTensor value_loss_of(const PPOOptions& options, const Experience& batch, const LazyTensor& values) {
  if (!options.clip_range_value) return mean(square(values - batch.returns));
  const double most = *options.clip_range_value;
  const LazyTensor near = batch.values + clip(values - batch.values, LazyTensor(-most), LazyTensor(most));
  return mean(square(near - batch.returns));
}

struct Losses {
  LazyTensor total;
  LazyTensor figures;  // as the enumeration, the first six
};

Losses losses_of(const ActorCritic& network, const PPOOptions& options,
                 std::span<const LazyTensor> parameters, const Experience& batch,
                 const LazyTensor& clip_range) {
  const ActorCritic::Judged judged = network.judge(parameters, batch.observations, batch.actions);
  const LazyTensor values = network.value(parameters, batch.observations);
  LazyTensor advantages = batch.advantages;
  if (options.normalize_advantage && advantages.shape(0) > 1)
    advantages = (advantages - mean(advantages)) / (std(advantages, {}, 1) + 1e-8);
  const LazyTensor change = judged.log_prob - batch.log_probs;
  const LazyTensor ratio = exp(change);
  const LazyTensor clipped = clip(ratio, 1.0 - clip_range, 1.0 + clip_range);
  const LazyTensor policy_loss = -mean(minimum(advantages * ratio, advantages * clipped));
  const LazyTensor value_loss = value_loss_of(options, batch, values);
  const LazyTensor entropy = mean(judged.entropy);
  const LazyTensor kl = mean(ratio - 1.0 - change);
  const LazyTensor outside = mean(astype(abs(ratio - 1.0) > clip_range, DType::f32));
  return {policy_loss + options.value_coefficient * value_loss - options.entropy_coefficient * entropy,
          stop_gradient(stack({policy_loss, value_loss, entropy, kl, outside, ones_like(kl)}, 0))};
}

LazyTensor explained_variance(const LazyTensor& returns, const LazyTensor& values) {
  return 1.0 - var(returns - values) / var(returns);
}

}  // namespace

Rollout Rollout::from(std::span<const LazyTensor> t) { return {t[0], t[1], t[2], t[3], t[4], t[5]}; }

std::vector<LazyTensor> Rollout::all() const {
  return {observations, next_observations, actions, rewards, terminated, ended};
}

UpdateResult ppo_update(const ActorCritic& network, const PPOOptions& options, const AdamState& state,
                        const Rollout& rollout, const LazyTensor& order, const LazyTensor& rate,
                        const LazyTensor& clip_range) {
  // Of the parameters as they are before the first update.
  const Shape steps = rollout.rewards.shape();
  const LazyTensor values = network.value(state.parameters, rollout.observations);
  const LazyTensor next_values = network.value(state.parameters, rollout.next_observations);
  const LazyTensor advantages =
      generalized_advantages({rollout.rewards, reshape(values, steps), reshape(next_values, steps),
                              rollout.terminated, rollout.ended},
                             options.gamma, options.gae_lambda);
  const LazyTensor flat = reshape(advantages, values.shape());
  const Experience all{rollout.observations,
                       rollout.actions,
                       network.judge(state.parameters, rollout.observations, rollout.actions).log_prob,
                       flat,
                       flat + values,
                       values};

  const std::size_t count = state.parameters.size();
  std::vector<LazyTensor> init = state.all();
  init.push_back(zeros({static_cast<std::int64_t>(kFigures) - 1}, DType::f32, values.device()));
  if (options.target_kl) init.push_back(ones({}, DType::f32, values.device()));
  const std::vector<LazyTensor> over{order};
  const ScanTurn turns = scan(
      [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> slices) {
        const AdamState now = AdamState::from(carry, count);
        Losses losses;
        const auto loss = [&, batch = rows_of(all, slices[0])](std::span<const LazyTensor> parameters) {
          const Losses found = losses_of(network, options, parameters, batch, clip_range);
          if (!losses.figures.defined()) losses = found;
          return found.total;
        };
        std::vector<LazyTensor> grads = loss_gradients(loss, now.parameters, options.grad_mode).grads;
        clip_grad_norm(grads, options.max_grad_norm);
        std::vector<LazyTensor> next = adam_step(now, grads, rate, {.eps = options.adam_eps}).all();
        const LazyTensor& sums = carry[AdamState::size(count)];
        next.push_back(sums + losses.figures);
        if (options.target_kl) {
          const LazyTensor kl = take(losses.figures, LazyTensor(3), 0);
          const LazyTensor on = carry.back() * astype(kl <= 1.5 * *options.target_kl, DType::f32);
          for (std::size_t i = 0; i < next.size(); ++i) next[i] = where(on > 0.5, next[i], carry[i]);
          next.push_back(on);
        }
        return ScanTurn{std::move(next)};
      },
      init, over);
  const LazyTensor& sums = turns.carry[AdamState::size(count)];
  const LazyTensor explained = reshape(explained_variance(all.returns, all.values), {1});
  return {AdamState::from(turns.carry, count), concatenate({sums, explained}, 0)};
}

}  // namespace caldera::rl::detail
