#include "training/trainer/outer_step.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "engine/base/error.h"
#include "engine/runtime/runtime.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "training/trainer/joined_tensors.h"

namespace caldera::detail {
namespace {

constexpr std::string_view kMomentum = "outer_momentum";

}  // namespace

OuterStep::OuterStep(const std::vector<Parameter>& parameters, const OptimizerState& inner,
                     const SharingOptions& options, distributed::Group group)
    : parameters_(parameters), options_(options), group_(std::move(group)) {
  for (const auto& [state, tensor] : inner.tensors)
    if (!is_floating(tensor.dtype()))
      throw ValueError(fmt::format(
          "training: with sync_every the optimiser's state becomes the mean over ranks, and {} is "
          "{}: use an optimizer that keeps floats, adamw",
          state, name(tensor.dtype())));
  for (const Parameter& p : parameters_)
    momentum_.push_back(LazyTensor::zeros(p.tensor->shape(), DType::f32, p.tensor->device()));
  eval(momentum_);
  begin_at_parameters();
}

void OuterStep::begin_at_parameters() {
  before_.clear();
  for (const Parameter& p : parameters_) before_.push_back(*p.tensor);
}

void OuterStep::take(Optimizer& inner) {
  OptimizerState state = inner.state();
  std::vector<LazyTensor> means;
  for (const Parameter& p : parameters_) means.push_back(*p.tensor);
  for (const auto& [name, tensor] : state.tensors) means.push_back(tensor);
  const auto order = options_.fast_reduction ? distributed::SumOrder::fast : distributed::SumOrder::fixed;
  for (const auto& [begin, end] : message_ranges(means)) {
    const std::span<LazyTensor> part = std::span(means).subspan(begin, end - begin);
    separate(distributed::all_sum(joined(part), group_, order) * (1.0 / group_.size()), part);
  }
  std::vector<LazyTensor> results;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const LazyTensor p = astype(before_[i], DType::f32), d = p - astype(means[i], DType::f32);
    momentum_[i] = stop_gradient(momentum_[i] * options_.outer_momentum + d);
    const LazyTensor next = p - (d + momentum_[i] * options_.outer_momentum) * options_.outer_learning_rate;
    *parameters_[i].tensor = stop_gradient(astype(next, before_[i].dtype()));
    results.insert(results.end(), {momentum_[i], *parameters_[i].tensor});
  }
  std::size_t next = parameters_.size();
  for (auto& [name, tensor] : state.tensors) results.push_back(tensor = stop_gradient(means[next++]));
  eval(results);
  inner.restore(state);
  begin_at_parameters();
}

std::map<std::string, LazyTensor> OuterStep::state() const {
  std::map<std::string, LazyTensor> state;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    state.emplace(join_name(parameters_[i].name, std::string(kMomentum)), momentum_[i]);
  return state;
}

void OuterStep::restore(const std::map<std::string, LazyTensor>& state) {
  std::vector<LazyTensor> momentum;
  for (const Parameter& p : parameters_) {
    const auto found = state.find(join_name(p.name, std::string(kMomentum)));
    if (found == state.end() || found->second.shape() != p.tensor->shape() ||
        found->second.dtype() != DType::f32)
      throw ValueError(fmt::format(
          "the run to go on with has no outer momentum of {}: go on with the sync_every that it began with",
          p.name));
    momentum.push_back(found->second);
  }
  momentum_ = std::move(momentum);
  begin_at_parameters();
}

bool OuterStep::is_own(const std::string& name) { return name.ends_with(kMomentum); }

}  // namespace caldera::detail
