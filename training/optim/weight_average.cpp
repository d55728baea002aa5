#include "training/optim/weight_average.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/error.h"
#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"

namespace caldera {

WeightAverage::WeightAverage(std::vector<Parameter> parameters, double decay)
    : parameters_(std::move(parameters)), decay_(decay) {
  if (!(decay > 0 && decay < 1))
    throw ValueError(fmt::format("WeightAverage: the decay {} must lie between 0 and 1", decay));
  for (const Parameter& p : parameters_) averages_.push_back(*p.tensor);
}

void WeightAverage::update() {
  const LazyTensor kept = decay_;
  const LazyTensor fresh = 1 - decay_;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    averages_[i] = stop_gradient(averages_[i] * kept + *parameters_[i].tensor * fresh);
}

std::map<std::string, LazyTensor> WeightAverage::state() const {
  std::map<std::string, LazyTensor> state;
  for (std::size_t i = 0; i < parameters_.size(); ++i) state.emplace(parameters_[i].name, averages_[i]);
  return state;
}

void WeightAverage::restore(const std::map<std::string, LazyTensor>& state) {
  std::vector<LazyTensor> averages;
  for (const Parameter& p : parameters_) {
    const auto found = state.find(p.name);
    if (found == state.end() || found->second.shape() != p.tensor->shape() ||
        found->second.dtype() != p.tensor->dtype())
      throw ValueError(fmt::format("WeightAverage: the saved state has no average of {} that fits", p.name));
    averages.push_back(found->second);
  }
  if (state.size() != averages.size())
    throw ValueError("WeightAverage: the saved state has averages of other parameters");
  averages_ = std::move(averages);
}

void WeightAverage::exchange() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) std::swap(*parameters_[i].tensor, averages_[i]);
}

}  // namespace caldera
