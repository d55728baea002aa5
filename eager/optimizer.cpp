#include "eager/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "eager/errors.h"
#include "ops/nn/optimizer_updates.h"

namespace caldera::v1 {

namespace {

AdamWScalars scalars(const AdamWConfig& config, std::int64_t step) {
  return {.learning_rate = config.learning_rate,
          .beta1 = config.beta1,
          .beta2 = config.beta2,
          .eps = config.eps,
          .weight_decay = config.weight_decay,
          .step = step};
}

/// A value of the optimiser is a constant to whatever is differentiated next.
Tensor settled(const LazyTensor& value) { return Tensor(value.detach()); }

void require(bool good, const char* field, double value, const char* want) {
  if (!good) throw TrainingError::invalid_config(fmt::format("{} is {}, want it {}", field, value, want));
}

}  // namespace

void AdamWConfig::validate() const {
  // Written so that NaN is refused too.
  require(learning_rate >= 0 && std::isfinite(learning_rate), "learning_rate", learning_rate,
          "finite and not negative");
  require(beta1 >= 0 && beta1 < 1, "beta1", beta1, "in [0, 1)");
  require(beta2 >= 0 && beta2 < 1, "beta2", beta2, "in [0, 1)");
  require(eps > 0 && std::isfinite(eps), "eps", eps, "positive");
  require(weight_decay >= 0 && std::isfinite(weight_decay), "weight_decay", weight_decay,
          "finite and not negative");
}

AdamW::AdamW(const AdamWConfig& config) : config_(config) { config_.validate(); }

Tensor AdamW::zero_moment(const Tensor& param) {
  if (!is_floating(param.dtype()))
    throw TrainingError::gradient(
        fmt::format("a parameter of dtype {} cannot be trained; want a floating one", name(param.dtype())));
  // Sixteen bits do not hold a running mean of squares.
  const DType dtype = param.dtype() == DType::f64 ? DType::f64 : DType::f32;
  return Tensor::zeros(param.shape(), dtype, param.device());
}

AdamW::State AdamW::fresh_state(const Tensor& param) {
  const Tensor zeros = zero_moment(param);
  return {zeros, zeros, 0};
}

std::optional<AdamW::Moments> AdamW::moments(const Var& variable) const {
  const auto found = variables_.find(variable);
  if (found == variables_.end() || found->second.step == 0) return std::nullopt;
  return found->second;
}

void AdamW::restore(const Var& variable, const Moments& moments) {
  for (const Tensor* tensor : {&moments.m, &moments.v})
    if (tensor->shape() != variable.shape())
      throw ShapeError(fmt::format("AdamW::restore: moments {} of a variable {}", tensor->shape().to_string(),
                                   variable.shape().to_string()));
  variables_[variable] = moments;
  step_count_ = std::max(step_count_, moments.step);
}

void AdamW::add_parameter(const std::string& name, const Tensor& param) {
  State state = fresh_state(param);
  if (!named_.emplace(name, std::move(state)).second)
    throw TrainingError::state(fmt::format("parameter '{}' was added before; names must differ", name));
}

Tensor AdamW::step(const std::string& name, const Tensor& param, const Tensor& grad) {
  const auto found = named_.find(name);
  if (found == named_.end())
    throw TrainingError::state(fmt::format("parameter '{}' is unknown; call add_parameter first", name));
  State& state = found->second;
  const AdamWUpdate update = adamw_update(param.lazy(), grad.lazy(), state.m.lazy(), state.v.lazy(),
                                          scalars(config_, state.step + 1));
  eval({update.param, update.m, update.v});
  state = {settled(update.m), settled(update.v), state.step + 1};
  step_count_ = std::max(step_count_, state.step);
  return settled(update.param);
}

void AdamW::step_var(const Var& variable, const Tensor& grad) { step({&variable, 1}, {&grad, 1}); }

void AdamW::step(std::span<const Var> variables, std::span<const Tensor> grads) {
  if (variables.size() != grads.size())
    throw TrainingError::gradient(
        fmt::format("{} gradients for {} variables; give one each", grads.size(), variables.size()));
  std::vector<State*> states;
  std::vector<LazyTensor> outputs;  // param, m, v of each variable in turn
  std::optional<AdamWStep> update;  // of those that have seen as many steps
  std::int64_t number = 0;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Tensor& param = variables[i].tensor();
    auto found = variables_.find(variables[i]);
    if (found == variables_.end()) found = variables_.emplace(variables[i], fresh_state(param)).first;
    State& state = found->second;
    if (std::find(states.begin(), states.end(), &state) != states.end())
      throw TrainingError::state("a variable occurs twice in one step; add its gradients up first");
    if (std::exchange(number, state.step + 1) != state.step + 1) update.emplace(scalars(config_, number));
    AdamWUpdate next = (*update)(param.lazy(), grads[i].lazy(), state.m.lazy(), state.v.lazy());
    states.push_back(&state);
    outputs.insert(outputs.end(), {std::move(next.param), std::move(next.m), std::move(next.v)});
  }
  eval(outputs);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    variables[i].set(settled(outputs[3 * i]));
    *states[i] = {settled(outputs[3 * i + 1]), settled(outputs[3 * i + 2]), states[i]->step + 1};
    step_count_ = std::max(step_count_, states[i]->step);
  }
}

void AdamW::set_lr(double learning_rate) {
  AdamWConfig next = config_;
  next.learning_rate = learning_rate;
  next.validate();
  config_ = next;
}

void AdamW::reset_state() {
  step_count_ = 0;
  for (auto& [name, state] : named_) state = fresh_state(state.m);
  for (auto& [variable, state] : variables_) state = fresh_state(state.m);
}

}  // namespace caldera::v1
