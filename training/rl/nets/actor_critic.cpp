#include "training/rl/nets/actor_critic.h"

#include "lm/nn/module.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/distributions/distributions.h"
#include "ops/shape/joining.h"
#include "ops/shape/manipulation.h"

namespace caldera::rl {

ActorCritic::ActorCritic(std::int64_t observations, Space actions, std::vector<std::int64_t> hidden,
                         Activation activation)
    : observations_(observations),
      actions_(std::move(actions)),
      hidden_(std::move(hidden)),
      activation_(activation),
      actor_count_(2 * (hidden_.size() + 1)) {}

std::vector<LazyTensor> ActorCritic::make_parameters(std::uint64_t seed, Device device) const {
  std::vector<std::int64_t> widths{observations_};
  widths.insert(widths.end(), hidden_.begin(), hidden_.end());
  widths.push_back(actions_.flat_size());
  std::vector<LazyTensor> parameters = make_mlp(widths, 0.01, mix_seed(seed, 1), device);
  if (actions_.is_continuous()) parameters.push_back(zeros({actions_.size()}, DType::f32, device).eval());
  widths.back() = 1;
  for (LazyTensor& p : make_mlp(widths, 1, mix_seed(seed, 2), device)) parameters.push_back(std::move(p));
  return parameters;
}

std::vector<std::string> ActorCritic::names() const {
  std::vector<std::string> names = mlp_names("actor", hidden_.size() + 1);
  if (actions_.is_continuous()) names.emplace_back("log_std");
  for (std::string& name : mlp_names("critic", hidden_.size() + 1)) names.push_back(std::move(name));
  return names;
}

LazyTensor ActorCritic::logits(std::span<const LazyTensor> parameters, const LazyTensor& observations) const {
  return mlp(parameters.first(actor_count_), observations, activation_);
}

std::vector<LazyTensor> ActorCritic::choices(const LazyTensor& logits) const {
  if (actions_.size() == 1) return {logits};
  std::vector<LazyTensor> parts;
  std::int64_t at = 0;
  for (const std::int64_t count : actions_.counts()) {
    parts.push_back(slice(logits, -1, at, at + count));
    at += count;
  }
  return parts;
}

ActorCritic::Judged ActorCritic::judge(std::span<const LazyTensor> parameters, const LazyTensor& observations,
                                       const LazyTensor& actions) const {
  const LazyTensor output = logits(parameters, observations);
  if (actions_.is_continuous()) {
    const DiagonalNormal policy(output, parameters[actor_count_]);
    return {policy.log_prob(actions), policy.entropy()};
  }
  Judged judged;
  const std::vector<LazyTensor> parts = choices(output);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Categorical policy(parts[i]);
    const auto column = static_cast<std::int64_t>(i);
    const LazyTensor chosen = astype(squeeze(slice(actions, -1, column, column + 1), -1), DType::i32);
    const LazyTensor log_prob = policy.log_prob(chosen), entropy = policy.entropy();
    judged.log_prob = i == 0 ? log_prob : judged.log_prob + log_prob;
    judged.entropy = i == 0 ? entropy : judged.entropy + entropy;
  }
  return judged;
}

LazyTensor ActorCritic::value(std::span<const LazyTensor> parameters, const LazyTensor& observations) const {
  const std::size_t first = actor_count_ + (actions_.is_continuous() ? 1 : 0);
  return squeeze(mlp(parameters.subspan(first), observations, activation_), -1);
}

LazyTensor ActorCritic::act(std::span<const LazyTensor> parameters, const LazyTensor& observations,
                            const LazyTensor& noise) const {
  const LazyTensor output = logits(parameters, observations);
  if (actions_.is_continuous()) return DiagonalNormal(output, parameters[actor_count_]).rsample(noise);
  std::vector<LazyTensor> drawn;
  const std::vector<LazyTensor> parts = choices(output), noises = choices(noise);
  for (std::size_t i = 0; i < parts.size(); ++i)
    drawn.push_back(astype(Categorical(parts[i]).sample(noises[i]), DType::f32));
  return stack(drawn, -1);
}

LazyTensor ActorCritic::act_greedily(std::span<const LazyTensor> parameters,
                                     const LazyTensor& observations) const {
  LazyTensor output = logits(parameters, observations);
  if (actions_.is_continuous()) return output;
  std::vector<LazyTensor> best;
  for (const LazyTensor& part : choices(output)) best.push_back(astype(Categorical(part).mode(), DType::f32));
  return stack(best, -1);
}

}  // namespace caldera::rl
