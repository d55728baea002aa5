#include "training/rl/policy/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"
#include "engine/jit/compiled.h"
#include "ops/core/cast.h"
#include "ops/core/slicing.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/joining.h"

namespace caldera::rl {
namespace {

/// What the network's output says as actions, in the network's units.
LazyTensor likeliest(const PolicyNetwork& network, const Space& actions, const LazyTensor& output) {
  if (network.head == PolicyNetwork::Head::normal) return output;
  if (network.head == PolicyNetwork::Head::squashed) return tanh(slice(output, -1, 0, actions.size()));
  std::vector<LazyTensor> best;
  std::int64_t at = 0;
  for (const std::int64_t count : actions.counts()) {
    best.push_back(astype(argmax(slice(output, -1, at, at + count), -1), DType::f32));
    at += count;
  }
  return stack(best, -1);
}

void check_widths(const Space& observations, const Space& actions, const PolicyNetwork& network) {
  const auto& p = network.parameters;
  const bool squashed = network.head == PolicyNetwork::Head::squashed;
  const std::int64_t out = squashed ? 2 * actions.size() : actions.flat_size();
  bool fits = p.size() >= 2 && p.size() % 2 == 0 && p.front().rank() == 2 &&
              p.front().shape(1) == observations.size() && p.back().shape() == Shape{out} &&
              actions.is_continuous() == (network.head != PolicyNetwork::Head::choices);
  for (std::size_t i = 0; fits && i < p.size(); i += 2)
    fits = p[i].rank() == 2 && p[i + 1].shape() == Shape{p[i].shape(0)} &&
           (i == 0 || p[i].shape(1) == p[i - 1].shape(0));
  if (!fits)
    throw ShapeError(fmt::format("Policy: the network does not lead from {} to {}", observations.to_string(),
                                 actions.to_string()));
}

}  // namespace

Policy::Policy(Space observations, Space actions, PolicyNetwork network,
               std::optional<RunningMoments> normalizer)
    : observations_(std::move(observations)),
      actions_(std::move(actions)),
      network_(std::move(network)),
      normalizer_(std::move(normalizer)) {
  check_widths(observations_, actions_, network_);
  if (normalizer_ && normalizer_->width() != observations_.size())
    throw ShapeError(fmt::format("Policy: a normaliser of {} numbers; observations have {}",
                                 normalizer_->width(), observations_.size()));
  forward_ = compiled(VectorFunction([network = network_, space = actions_](std::span<const LazyTensor> a) {
    const LazyTensor output = mlp(a.subspan(1), a[0], network.activation);
    return std::vector<LazyTensor>{likeliest(network, space, output)};
  }));
}

std::vector<double> Policy::act(std::span<const double> observations) const {
  const auto width = static_cast<std::size_t>(observations_.size());
  if (observations.empty() || observations.size() % width != 0)
    throw ShapeError(fmt::format("Policy: {} numbers are no rows of {}", observations.size(), width));
  std::vector<double> rows(observations.begin(), observations.end());
  if (normalizer_) normalizer_->normalize(rows);
  const std::vector<float> floats(rows.begin(), rows.end());
  std::vector<LazyTensor> arguments{
      LazyTensor::from_vector(floats, {static_cast<std::int64_t>(rows.size() / width), observations_.size()},
                              network_.parameters.front().device())};
  arguments.insert(arguments.end(), network_.parameters.begin(), network_.parameters.end());
  const std::vector<float> chosen = forward_(arguments)[0].to_vector<float>();
  std::vector<double> actions(chosen.begin(), chosen.end());
  if (network_.head == PolicyNetwork::Head::choices) return actions;
  const auto size = static_cast<std::size_t>(actions_.size());
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const double low = actions_.low()[i % size], high = actions_.high()[i % size];
    if (network_.head == PolicyNetwork::Head::squashed)
      actions[i] = low + (actions[i] + 1) * 0.5 * (high - low);
    actions[i] = std::clamp(actions[i], low, high);
  }
  return actions;
}

}  // namespace caldera::rl
