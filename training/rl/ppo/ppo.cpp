#include "training/rl/ppo/ppo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/error.h"
#include "engine/graph/default_device.h"
#include "engine/jit/compiled.h"
#include "training/rl/nets/gradients.h"
#include "training/rl/ppo/ppo_rows.h"
#include "training/rl/ppo/ppo_update.h"

namespace caldera::rl {
namespace {

std::vector<std::size_t> first_numbers(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

VectorFunction compiled_actions(const ActorCritic& network, std::size_t count) {
  return compiled(VectorFunction([=](std::span<const LazyTensor> a) {
    return std::vector<LazyTensor>{network.act(a.first(count), a[count], a[count + 1])};
  }));
}

VectorFunction compiled_update(const ActorCritic& network, const PPOOptions& options, std::size_t count) {
  const std::size_t held = AdamState::size(count);
  return compiled(VectorFunction([=](std::span<const LazyTensor> a) {
                    const detail::UpdateResult result =
                        detail::ppo_update(network, options, AdamState::from(a, count),
                                           detail::Rollout::from(a.subspan(held, detail::Rollout::kTensors)),
                                           a[a.size() - 3], a[a.size() - 2], a[a.size() - 1]);
                    std::vector<LazyTensor> outputs = result.state.all();
                    outputs.push_back(result.figures);
                    return outputs;
                  }),
                  {.donate = first_numbers(held)});
}

void add_floats(std::vector<float>& to, std::span<const double> from) {
  for (const double x : from) to.push_back(static_cast<float>(x));
}

}  // namespace

void PPOOptions::validate(std::int64_t count) const {
  const auto require = [](bool holds, const char* what, double value, const char* domain) {
    if (!holds) throw ValueError(fmt::format("PPO: {} is {}; it must be {}", what, value, domain));
  };
  require(gamma >= 0 && gamma <= 1, "gamma", gamma, "in [0, 1]");
  require(gae_lambda >= 0 && gae_lambda <= 1, "gae_lambda", gae_lambda, "in [0, 1]");
  require(clip_range > 0, "clip_range", clip_range, "positive");
  require(!clip_range_value || *clip_range_value > 0, "clip_range_value", clip_range_value.value_or(0),
          "positive");
  require(!target_kl || *target_kl > 0, "target_kl", target_kl.value_or(0), "positive");
  require(entropy_coefficient >= 0, "entropy_coefficient", entropy_coefficient, "at least 0");
  require(value_coefficient >= 0, "value_coefficient", value_coefficient, "at least 0");
  require(max_grad_norm > 0, "max_grad_norm", max_grad_norm, "positive");
  require(learning_rate > 0, "learning_rate", learning_rate, "positive");
  require(adam_eps > 0, "adam_eps", adam_eps, "positive");
  require(learning_rate_end >= 0 && learning_rate_end <= 1, "learning_rate_end", learning_rate_end,
          "in [0, 1]");
  require(clip_range_end > 0 && clip_range_end <= 1, "clip_range_end", clip_range_end, "in (0, 1]");
  check_grad_mode("PPO", grad_mode);
  require(rollout_steps > 0, "rollout_steps", static_cast<double>(rollout_steps), "positive");
  require(epochs > 0, "epochs", static_cast<double>(epochs), "positive");
  require(batch_size > 0, "batch_size", static_cast<double>(batch_size), "positive");
  if (rollout_steps * count % batch_size != 0)
    throw ValueError(
        fmt::format("PPO: batches of {} do not divide the {} steps of a rollout ({} of each of {} "
                    "environments); choose another batch_size",
                    batch_size, rollout_steps * count, rollout_steps, count));
}

/// Rows one behind the other, a step's environments side by side.
struct PPO::Rows {
  std::vector<float> observations, next_observations, actions, rewards, terminated, ended;
};

PPO::PPO(std::unique_ptr<VectorEnvironment> environments, PPOOptions options)
    : Agent("ppo", std::move(environments), options.seed),
      options_(std::move(options)),
      device_(options_.device.value_or(default_device())),
      network_(this->environments().observation_space().size(), this->environments().action_space(),
               options_.hidden, options_.activation) {
  options_.validate(this->environments().count());
  state_ = AdamState::begin(network_.make_parameters(options_.seed, device_));
  act_ = compiled_actions(network_, state_.parameters.size());
  update_ = compiled_update(network_, options_, state_.parameters.size());
}

void PPO::act(Rows& rows) {
  VectorEnvironment& all = environments();
  const std::int64_t count = all.count();
  add_floats(rows.observations, all.now().observations);
  const auto width = static_cast<std::size_t>(all.observation_space().size() * count);
  const std::span<const float> seen = std::span(rows.observations).last(width);
  std::vector<float> noise(static_cast<std::size_t>(count * network_.noise_size()));
  const bool continuous = all.action_space().is_continuous();
  // Uniform numbers for choices are never 0, of which there is no logarithm.
  for (float& x : noise)
    x = static_cast<float>(continuous ? random().normal() : random().uniform(0x1p-24, 1 - 0x1p-24));
  std::vector<LazyTensor> arguments = state_.parameters;
  arguments.push_back(LazyTensor::from_span(seen, {count, all.observation_space().size()}, device_));
  arguments.push_back(LazyTensor::from_vector(noise, {count, network_.noise_size()}, device_));
  const std::vector<float> chosen = act_(arguments)[0].to_vector<float>();
  rows.actions.insert(rows.actions.end(), chosen.begin(), chosen.end());
  std::vector<double> actions(chosen.begin(), chosen.end());
  if (continuous) {
    const Space& space = all.action_space();
    const auto size = static_cast<std::size_t>(space.size());
    for (std::size_t i = 0; i < actions.size(); ++i)
      actions[i] = std::clamp(actions[i], space.low()[i % size], space.high()[i % size]);
  }
  all.step(actions);
  count_step();

  const VectorStep& now = all.now();
  add_floats(rows.rewards, now.rewards);
  const auto row = static_cast<std::size_t>(all.observation_space().size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    rows.terminated.push_back(now.terminated[i] != 0 ? 1.0F : 0.0F);
    rows.ended.push_back(now.ended(i) ? 1.0F : 0.0F);
    const auto& next = now.ended(i) ? now.last_observations : now.observations;
    add_floats(rows.next_observations, std::span(next).subspan(i * row, row));
  }
}

void PPO::iterate(std::int64_t total) {
  const double progress = std::min(
      1.0, static_cast<double>(steps_done()) / static_cast<double>(std::max<std::int64_t>(total, 1)));
  Rows rows;
  for (std::int64_t step = 0; step < options_.rollout_steps; ++step) act(rows);
  update(rows, progress);
}

void PPO::update(const Rows& rows, double progress) {
  const std::int64_t count = environments().count(), steps = options_.rollout_steps, all = steps * count;
  const auto upload = [&](const std::vector<float>& data, const Shape& shape) {
    return LazyTensor::from_vector(data, shape, device_);
  };
  const Shape grid{steps, count};
  std::vector<LazyTensor> arguments = state_.all();
  const std::int64_t width = environments().observation_space().size();
  arguments.push_back(upload(rows.observations, {all, width}));
  arguments.push_back(upload(rows.next_observations, {all, width}));
  arguments.push_back(upload(rows.actions, {all, environments().action_space().size()}));
  arguments.push_back(upload(rows.rewards, grid));
  arguments.push_back(upload(rows.terminated, grid));
  arguments.push_back(upload(rows.ended, grid));
  const std::int64_t updates = all / options_.batch_size * options_.epochs;
  arguments.push_back(LazyTensor::from_vector(detail::shuffled_rows(random(), all, options_.epochs),
                                              {updates, options_.batch_size}, device_));
  arguments.push_back(
      detail::falling_number(options_.learning_rate, options_.learning_rate_end, progress, device_));
  arguments.push_back(
      detail::falling_number(options_.clip_range, options_.clip_range_end, progress, device_));
  state_ = {};  // the arguments alone hold the tensors whose memory the results take
  const std::vector<LazyTensor> results = update_(arguments);
  const std::size_t parameters = (results.size() - 2) / 3;
  state_ = AdamState::from(results, parameters);
  figures_ = results.back().to_vector<float>();
}

std::vector<std::pair<std::string, double>> PPO::figures() const { return detail::named_figures(figures_); }

std::map<std::string, LazyTensor*> PPO::tensors() { return detail::named_tensors(network_, state_); }

Policy PPO::policy() const {
  return detail::policy_of(network_, options_, state_, environments().observation_space(), normalizer());
}

}  // namespace caldera::rl
