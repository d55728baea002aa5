#include "training/rl/ppo/device_ppo.h"

#include <algorithm>

#include "engine/control/scan.h"
#include "engine/graph/default_device.h"
#include "engine/jit/compiled.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/elementwise/bitwise.h"
#include "ops/elementwise/clip.h"
#include "ops/random/uniform_normal.h"
#include "training/rl/envs/batch_environment.h"
#include "training/rl/ppo/ppo_rows.h"
#include "training/rl/ppo/ppo_update.h"

namespace caldera::rl {
namespace {

struct DeviceRollout {
  detail::Rollout rows;
  LazyTensor places, taken;
};

/// Steps the environments as turns of a scan, from noise (steps, count, numbers) and draws (steps, count,
/// draws).
DeviceRollout roll_out(const GraphEnvironment& simulation, const ActorCritic& network,
                       std::span<const LazyTensor> parameters, const LazyTensor& places,
                       const LazyTensor& taken, const LazyTensor& noise, const LazyTensor& draws) {
  const std::vector<LazyTensor> init{places, taken}, over{noise, draws};
  const ScanTurn turns = scan(
      [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> slices) {
        const LazyTensor seen = simulation.observe(carry[0]);
        const LazyTensor action = network.act(parameters, seen, slices[0]);
        const GraphStep next = simulation.step(carry[0], squeeze(action, 1));
        const LazyTensor count = carry[1] + 1.0;
        const LazyTensor ended = logical_or(next.ended, count >= static_cast<double>(simulation.steps));
        const LazyTensor place = where(expand_dims(ended, 1), simulation.begin(slices[1]), next.state);
        return ScanTurn{{place, where(ended, zeros_like(count), count)},
                        {seen, simulation.observe(next.state), action, next.reward,
                         astype(next.ended, DType::f32), astype(ended, DType::f32)}};
      },
      init, over);
  const auto rows = [&](std::size_t k) {
    const LazyTensor& x = turns.stacked[k];
    return reshape(x, {x.shape(0) * x.shape(1), x.shape(2)});
  };
  return {{rows(0), rows(1), rows(2), turns.stacked[3], turns.stacked[4], turns.stacked[5]},
          turns.carry[0],
          turns.carry[1]};
}

/// Arguments: Adam's state, places, steps taken, noise, draws, order, rate, clip range. Results: the first
/// three, rewards, ends, figures.
VectorFunction compiled_iteration(const GraphEnvironment& simulation, const ActorCritic& network,
                                  const PPOOptions& options, std::size_t count) {
  const std::size_t held = AdamState::size(count);
  return compiled(VectorFunction([=, &simulation](std::span<const LazyTensor> a) {
    const AdamState state = AdamState::from(a, count);
    const DeviceRollout rollout =
        roll_out(simulation, network, state.parameters, a[held], a[held + 1], a[held + 2], a[held + 3]);
    const detail::UpdateResult result =
        detail::ppo_update(network, options, state, rollout.rows, a[held + 4], a[held + 5], a[held + 6]);
    std::vector<LazyTensor> results = result.state.all();
    results.insert(results.end(),
                   {rollout.places, rollout.taken, rollout.rows.rewards, rollout.rows.ended, result.figures});
    return results;
  }));
}

}  // namespace

DevicePPO::DevicePPO(std::string_view environment, std::int64_t count, PPOOptions options)
    : Agent("device_ppo", std::make_unique<BatchEnvironment>(environment, count, options.seed), options.seed),
      options_(std::move(options)),
      device_(options_.device.value_or(default_device())),
      simulation_(find_graph_environment(environment)),
      network_(simulation_.observations.size(), simulation_.actions, options_.hidden, options_.activation) {
  options_.validate(count);
  state_ = AdamState::begin(network_.make_parameters(options_.seed, device_));
  places_ =
      simulation_.begin(random_uniform({count, simulation_.draws}, random().bits(), DType::f32, device_))
          .eval();
  taken_ = zeros({count}, DType::f32, device_).eval();
  iterate_ = compiled_iteration(simulation_, network_, options_, state_.parameters.size());
}

void DevicePPO::iterate(std::int64_t total) {
  const double progress = std::min(1.0, static_cast<double>(steps_done()) / static_cast<double>(total));
  const std::int64_t count = environments().count(), steps = options_.rollout_steps, rows = steps * count;
  const Shape shape{steps, count, network_.noise_size()};
  const LazyTensor noise =
      network_.actions().is_continuous()
          ? random_normal(shape, random().bits(), DType::f32, device_)
          : clip(random_uniform(shape, random().bits(), DType::f32, device_), LazyTensor(0x1p-25));
  std::vector<LazyTensor> arguments = state_.all();
  arguments.insert(
      arguments.end(),
      {places_, taken_, noise,
       random_uniform({steps, count, simulation_.draws}, random().bits(), DType::f32, device_),
       LazyTensor::from_vector(detail::shuffled_rows(random(), rows, options_.epochs),
                               {rows / options_.batch_size * options_.epochs, options_.batch_size}, device_),
       detail::falling_number(options_.learning_rate, options_.learning_rate_end, progress, device_),
       detail::falling_number(options_.clip_range, options_.clip_range_end, progress, device_)});
  const std::vector<LazyTensor> results = iterate_(arguments);
  const std::size_t held = results.size() - 5;
  state_ = AdamState::from(results, (held - 1) / 3);
  places_ = results[held];
  taken_ = results[held + 1];
  tell(results[held + 2].to_vector<float>(), results[held + 3].to_vector<float>());
  figures_ = results[held + 4].to_vector<float>();
}

void DevicePPO::tell(const std::vector<float>& rewards, const std::vector<float>& ended) {
  const auto count = static_cast<std::size_t>(environments().count());
  VectorStep step = environments().now();
  std::ranges::fill(step.truncated, std::uint8_t{0});
  for (std::size_t at = 0; at < rewards.size(); at += count) {
    for (std::size_t i = 0; i < count; ++i) {
      step.rewards[i] = rewards[at + i];
      step.terminated[i] = ended[at + i] != 0 ? 1 : 0;
    }
    count_step(step);
  }
}

std::vector<std::pair<std::string, double>> DevicePPO::figures() const {
  return detail::named_figures(figures_);
}

std::map<std::string, LazyTensor*> DevicePPO::tensors() {
  std::map<std::string, LazyTensor*> all = detail::named_tensors(network_, state_);
  all["places"] = &places_;
  all["taken"] = &taken_;
  return all;
}

Policy DevicePPO::policy() const {
  return detail::policy_of(network_, options_, state_, environments().observation_space(), {});
}

}  // namespace caldera::rl
