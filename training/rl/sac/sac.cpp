#include "training/rl/sac/sac.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "engine/control/scan.h"
#include "engine/graph/default_device.h"
#include "engine/jit/compiled.h"
#include "lm/nn/module.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/views.h"
#include "ops/shape/dynamic_slicing.h"
#include "ops/shape/manipulation.h"
#include "training/rl/nets/gradients.h"
#include "training/rl/nets/mlp.h"
#include "training/rl/sac/sac_update.h"

namespace caldera::rl {
namespace {

std::vector<std::size_t> all_up_to(std::size_t count) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

detail::SacState make_state(const detail::SacShape& shape, const SACOptions& options, Device device) {
  const auto widths = [&](std::int64_t in, std::int64_t out) {
    std::vector<std::int64_t> all{in};
    all.insert(all.end(), options.hidden.begin(), options.hidden.end());
    all.push_back(out);
    return all;
  };
  detail::SacState state;
  state.actor = AdamState::begin(
      make_mlp(widths(shape.observations, 2 * shape.actions), 0.01, mix_seed(options.seed, 1), device));
  std::vector<LazyTensor> critics;
  for (const std::uint64_t k : {2, 3})
    for (LazyTensor& p :
         make_mlp(widths(shape.observations + shape.actions, 1), 1, mix_seed(options.seed, k), device))
      critics.push_back(std::move(p));
  for (const LazyTensor& p : critics)
    state.targets.push_back(LazyTensor::from_vector(p.to_vector<float>(), p.shape(), device));
  state.critics = AdamState::begin(std::move(critics));
  const double temperature = options.temperature.value_or(options.initial_temperature);
  state.temperature = AdamState::begin(
      {LazyTensor::from_vector<float>({static_cast<float>(std::log(temperature))}, {}, device)});
  return state;
}

/// Arguments: state, buffer, new rows, place, indices (updates, batch), noise (updates, 2, batch, actions),
/// rate. Results: state, buffer, figures.
VectorFunction compiled_updates(const detail::SacShape& shape, const SACOptions& options) {
  const std::size_t held = detail::SacState::size(shape);
  const auto function = [=](std::span<const LazyTensor> a) {
    const LazyTensor buffer = dynamic_update_slice(a[held], a[held + 1], {a[held + 2], LazyTensor(0)});
    const LazyTensor &indices = a[held + 3], &noises = a[held + 4], &rate = a[held + 5];
    const auto turn = [&](std::span<const LazyTensor> state, const LazyTensor& rows,
                          const LazyTensor& noise) {
      const detail::SacResult result = detail::sac_update(
          shape, options, detail::SacState::from(state, shape), take(buffer, rows, 0), noise, rate);
      std::vector<LazyTensor> next = result.state.all();
      next.push_back(result.figures);
      return next;
    };
    std::vector<LazyTensor> results;
    if (indices.shape(0) == 1) {
      results = turn(a.first(held), squeeze(indices, 0), squeeze(noises, 0));
    } else {
      std::vector<LazyTensor> init(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(held));
      init.push_back(zeros({4}, DType::f32, rate.device()));
      const std::vector<LazyTensor> over{indices, noises};
      results = scan(
                    [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> slices) {
                      return ScanTurn{turn(carry.first(held), slices[0], slices[1])};
                    },
                    init, over)
                    .carry;
    }
    results.insert(results.end() - 1, buffer);
    return results;
  };
  return compiled(VectorFunction(function), {.donate = all_up_to(held + 1)});
}

}  // namespace

void SACOptions::validate() const {
  const auto require = [](bool holds, const char* what, double value, const char* domain) {
    if (!holds) throw ValueError(fmt::format("SAC: {} is {}; it must be {}", what, value, domain));
  };
  require(gamma >= 0 && gamma <= 1, "gamma", gamma, "in [0, 1]");
  require(tau > 0 && tau <= 1, "tau", tau, "in (0, 1]");
  require(learning_rate > 0, "learning_rate", learning_rate, "positive");
  require(buffer_size > 0, "buffer_size", static_cast<double>(buffer_size), "positive");
  require(buffer_size < (std::int64_t{1} << 31), "buffer_size", static_cast<double>(buffer_size),
          "below 2^31");
  require(start_steps >= 0, "start_steps", static_cast<double>(start_steps), "at least 0");
  check_grad_mode("SAC", grad_mode);
  require(batch_size > 0, "batch_size", static_cast<double>(batch_size), "positive");
  require(train_every > 0, "train_every", static_cast<double>(train_every), "positive");
  require(updates > 0, "updates", static_cast<double>(updates), "positive");
  require(!temperature || *temperature > 0, "temperature", temperature.value_or(0), "positive");
  require(initial_temperature > 0, "initial_temperature", initial_temperature, "positive");
}

SAC::SAC(std::unique_ptr<VectorEnvironment> environments, SACOptions options)
    : Agent("sac", std::move(environments), options.seed),
      options_(std::move(options)),
      device_(options_.device.value_or(default_device())) {
  options_.validate();
  const Space& space = this->environments().action_space();
  for (std::size_t i = 0; i < space.low().size(); ++i)
    if (!space.is_continuous() || !std::isfinite(space.high()[i] - space.low()[i]))
      throw ValueError(
          fmt::format("SAC: {} is no space of numbers with bounds; PPO takes choices", space.to_string()));
  shape_ = std::make_unique<detail::SacShape>(
      detail::SacShape{this->environments().observation_space().size(), space.size(),
                       options_.hidden.size() + 1, options_.activation});
  state_ = std::make_unique<detail::SacState>(make_state(*shape_, options_, device_));
  const std::int64_t rows = this->environments().count() * options_.train_every;
  capacity_ = (options_.buffer_size + rows - 1) / rows * rows;
  buffer_ = zeros({capacity_, shape_->row()}, DType::f32, device_).eval();
  inserted_ = LazyTensor::from_vector<std::int64_t>({0}, {1}, Device::cpu());
  act_ = compiled(VectorFunction([shape = *shape_](std::span<const LazyTensor> a) {
    const std::size_t n = shape.network();
    return std::vector<LazyTensor>{detail::sac_policy(shape, a.first(n), a[n]).rsample(a[n + 1]).value};
  }));
  insert_ =
      compiled(VectorFunction([](std::span<const LazyTensor> a) {
                 return std::vector<LazyTensor>{dynamic_update_slice(a[0], a[1], {a[2], LazyTensor(0)})};
               }),
               {.donate = {0}});
  update_ = compiled_updates(*shape_, options_);
}

SAC::~SAC() = default;

std::int64_t SAC::updates() const { return static_cast<std::int64_t>(state_->actor.step.item<float>()); }

std::vector<double> SAC::choose(std::span<const float> observations) {
  const std::int64_t count = environments().count();
  const auto numbers = static_cast<std::size_t>(count * shape_->actions);
  std::vector<double> chosen(numbers);
  if (steps_done() < options_.start_steps) {
    // In the units of the policy: the buffer must not tell who acted.
    for (double& x : chosen) x = random().uniform(-1, 1);
    return chosen;
  }
  std::vector<float> noise(numbers);
  for (float& x : noise) x = static_cast<float>(random().normal());
  std::vector<LazyTensor> arguments = state_->actor.parameters;
  arguments.push_back(LazyTensor::from_span(observations, {count, shape_->observations}, device_));
  arguments.push_back(LazyTensor::from_vector(noise, {count, shape_->actions}, device_));
  const std::vector<float> acted = act_(arguments)[0].to_vector<float>();
  std::ranges::copy(acted, chosen.begin());
  return chosen;
}

void SAC::act(std::vector<float>& rows) {
  VectorEnvironment& all = environments();
  const std::vector<float> seen(all.now().observations.begin(), all.now().observations.end());
  const std::vector<double> chosen = choose(seen);
  const Space& space = all.action_space();
  const auto a = static_cast<std::size_t>(shape_->actions),
             o = static_cast<std::size_t>(shape_->observations);
  std::vector<double> actions(chosen);
  for (std::size_t i = 0; i < actions.size(); ++i)
    actions[i] = space.low()[i % a] + (chosen[i] + 1) * 0.5 * (space.high()[i % a] - space.low()[i % a]);
  all.step(actions);
  count_step();
  const VectorStep& now = all.now();
  const auto add = [&](auto first, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k, ++first) rows.push_back(static_cast<float>(*first));
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(all.count()); ++i) {
    add(seen.begin() + static_cast<std::ptrdiff_t>(i * o), o);
    add(chosen.begin() + static_cast<std::ptrdiff_t>(i * a), a);
    rows.push_back(static_cast<float>(now.rewards[i]));
    rows.push_back(now.terminated[i] != 0 ? 1.0F : 0.0F);
    const auto& next = now.ended(i) ? now.last_observations : now.observations;
    add(next.begin() + static_cast<std::ptrdiff_t>(i * o), o);
  }
}

void SAC::iterate(std::int64_t /*total*/) {
  std::vector<float> rows;
  for (std::int64_t step = 0; step < options_.train_every; ++step) act(rows);
  const std::int64_t count = options_.train_every * environments().count();
  const std::int64_t before = inserted_.item<std::int64_t>();
  inserted_ = LazyTensor::from_vector<std::int64_t>({before + count}, {1}, Device::cpu());
  const LazyTensor fresh = LazyTensor::from_vector(rows, {count, shape_->row()}, device_);
  const LazyTensor place =
      LazyTensor::from_vector<std::int32_t>({static_cast<std::int32_t>(before % capacity_)}, {}, device_);
  if (steps_done() <= options_.start_steps) {
    std::vector<LazyTensor> arguments{std::exchange(buffer_, {}), fresh, place};
    buffer_ = insert_(arguments)[0];
    return;
  }
  const std::int64_t filled = std::min(before + count, capacity_);
  std::vector<std::int32_t> indices(static_cast<std::size_t>(options_.updates * options_.batch_size));
  for (std::int32_t& i : indices) i = static_cast<std::int32_t>(random().below(filled));
  std::vector<float> noise(indices.size() * 2 * static_cast<std::size_t>(shape_->actions));
  for (float& x : noise) x = static_cast<float>(random().normal());
  std::vector<LazyTensor> arguments = state_->all();
  arguments.insert(
      arguments.end(),
      {std::exchange(buffer_, {}), fresh, place,
       LazyTensor::from_vector(indices, {options_.updates, options_.batch_size}, device_),
       LazyTensor::from_vector(noise, {options_.updates, 2, options_.batch_size, shape_->actions}, device_),
       LazyTensor::from_vector<float>({static_cast<float>(options_.learning_rate)}, {}, device_)});
  learn(std::move(arguments));
}

void SAC::learn(std::vector<LazyTensor> arguments) {
  *state_ = {};  // the arguments alone hold the tensors whose memory the results take
  const std::vector<LazyTensor> results = update_(arguments);
  *state_ = detail::SacState::from(results, *shape_);
  buffer_ = results[results.size() - 2];
  figures_ = results.back().to_vector<float>();
}

std::vector<std::pair<std::string, double>> SAC::figures() const {
  static constexpr const char* kNames[] = {"critic_loss", "actor_loss", "temperature", "entropy"};
  std::vector<std::pair<std::string, double>> named;
  for (std::size_t i = 0; i < figures_.size(); ++i) named.emplace_back(kNames[i], figures_[i]);
  return named;
}

std::map<std::string, LazyTensor*> SAC::tensors() {
  std::map<std::string, LazyTensor*> all{{"replay", &buffer_}, {"inserted", &inserted_}};
  const auto add = [&](AdamState& state, const std::vector<std::string>& names) {
    all["step." + names.front()] = &state.step;
    for (std::size_t i = 0; i < names.size(); ++i) {
      all["parameter." + names[i]] = &state.parameters[i];
      all["exp_avg." + names[i]] = &state.first[i];
      all["exp_avg_sq." + names[i]] = &state.second[i];
    }
  };
  add(state_->actor, mlp_names("actor", shape_->layers));
  std::vector<std::string> critics = mlp_names("critic1", shape_->layers);
  for (std::string& name : mlp_names("critic2", shape_->layers)) critics.push_back(std::move(name));
  add(state_->critics, critics);
  add(state_->temperature, {"log_temperature"});
  for (std::size_t i = 0; i < critics.size(); ++i) all["target." + critics[i]] = &state_->targets[i];
  return all;
}

void SAC::check_state(const std::map<std::string, LazyTensor>& state) const {
  const std::int64_t inserted = state.at("tensor.inserted").item<std::int64_t>();
  if (inserted < 0 || inserted >> 62 != 0)
    throw ValueError(fmt::format("the replay buffer got {} transitions", inserted));
}

Policy SAC::policy() const {
  PolicyNetwork network;
  network.head = PolicyNetwork::Head::squashed;
  network.activation = options_.activation;
  for (const LazyTensor& p : state_->actor.parameters)
    network.parameters.push_back(LazyTensor::from_vector(p.to_vector<float>(), p.shape(), device_));
  return Policy(environments().observation_space(), environments().action_space(), std::move(network),
                normalizer());
}

}  // namespace caldera::rl
