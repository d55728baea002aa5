#include "training/rl/ppo/ppo_rows.h"

#include <algorithm>

#include "training/rl/ppo/ppo_update.h"

namespace caldera::rl::detail {

std::vector<std::int32_t> shuffled_rows(Random& random, std::int64_t rows, std::int64_t epochs) {
  std::vector<std::int32_t> order;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    const std::size_t first = order.size();
    for (std::int64_t i = 0; i < rows; ++i) order.push_back(static_cast<std::int32_t>(i));
    for (std::int64_t i = rows - 1; i > 0; --i)
      std::swap(order[first + static_cast<std::size_t>(i)],
                order[first + static_cast<std::size_t>(random.below(i + 1))]);
  }
  return order;
}

LazyTensor falling_number(double first, double last_share, double progress, Device device) {
  const double now = first * (1 - progress * (1 - last_share));
  return LazyTensor::from_vector<float>({static_cast<float>(now)}, {}, device);
}

std::vector<std::pair<std::string, double>> named_figures(const std::vector<float>& figures) {
  static constexpr const char* kNames[] = {"policy_loss",       "value_loss",    "entropy",
                                           "approximate_kl",    "clip_fraction", "updates",
                                           "explained_variance"};
  std::vector<std::pair<std::string, double>> named;
  if (figures.empty()) return named;
  const auto updates = static_cast<std::size_t>(Figure::updates);
  for (std::size_t i = 0; i < kFigures; ++i)
    named.emplace_back(kNames[i], i < updates ? figures[i] / std::max(figures[updates], 1.0F) : figures[i]);
  return named;
}

std::map<std::string, LazyTensor*> named_tensors(const ActorCritic& network, AdamState& state) {
  std::map<std::string, LazyTensor*> all{{"step", &state.step}};
  const std::vector<std::string> names = network.names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    all["parameter." + names[i]] = &state.parameters[i];
    all["exp_avg." + names[i]] = &state.first[i];
    all["exp_avg_sq." + names[i]] = &state.second[i];
  }
  return all;
}

Policy policy_of(const ActorCritic& network, const PPOOptions& options, const AdamState& state,
                 const Space& observations, std::optional<RunningMoments> normalizer) {
  PolicyNetwork actor;
  actor.head = network.actions().is_continuous() ? PolicyNetwork::Head::normal : PolicyNetwork::Head::choices;
  actor.activation = options.activation;
  for (std::size_t i = 0; i < network.actor_count(); ++i) {
    const LazyTensor& p = state.parameters[i];
    actor.parameters.push_back(LazyTensor::from_vector(p.to_vector<float>(), p.shape(), p.device()));
  }
  return Policy(observations, network.actions(), std::move(actor), std::move(normalizer));
}

}  // namespace caldera::rl::detail
