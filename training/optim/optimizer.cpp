#include "training/optim/optimizer.h"

#include <fmt/format.h>

#include "engine/autodiff/autodiff.h"
#include "ops/core/selection.h"
#include "training/nn/precision.h"
#include "training/optim/option_check.h"

namespace caldera {
namespace {

/// What the update of a parameter is computed in, and its state kept in.
DType state_dtype(DType parameter) { return parameter == DType::f64 ? DType::f64 : DType::f32; }

std::vector<LazyTensor> tensors_of(const std::vector<Parameter>& parameters) {
  std::vector<LazyTensor> tensors;
  tensors.reserve(parameters.size());
  for (const Parameter& p : parameters) tensors.push_back(*p.tensor);
  return tensors;
}

}  // namespace

Optimizer::Optimizer(std::string name, std::vector<Parameter> parameters, std::vector<std::string> slots,
                     double learning_rate)
    : name_(std::move(name)),
      parameters_(std::move(parameters)),
      slot_names_(std::move(slots)),
      learning_rate_(learning_rate) {
  detail::OptionCheck{name_.c_str()}(learning_rate >= 0, "learning_rate", learning_rate, "at least 0");
  if (parameters_.empty())
    throw ValueError(fmt::format("{}: there is nothing to train: the list of parameters is empty", name_));
  for (const Parameter& p : parameters_)
    if (!is_floating(p.tensor->dtype()))
      throw DTypeError(
          fmt::format("{}: {} is {}, not floating", name_, p.name, caldera::name(p.tensor->dtype())));
  reset();
}

std::vector<LazyTensor> Optimizer::inputs() const { return tensors_of(parameters_); }

void Optimizer::update(std::span<const LazyTensor> grads, double learning_rate) {
  if (grads.size() != parameters_.size())
    throw ShapeError(
        fmt::format("{}: {} gradients for {} parameters", name_, grads.size(), parameters_.size()));
  std::vector<Updated> results;
  results.reserve(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const LazyTensor& parameter = *parameters_[i].tensor;
    if (grads[i].shape() != parameter.shape())
      throw ShapeError(fmt::format("{}: the gradient of {} has shape {}, the parameter {}", name_,
                                   parameters_[i].name, grads[i].shape().to_string(),
                                   parameter.shape().to_string()));
    const DType dtype = state_dtype(parameter.dtype());
    Step step{.parameter = in_dtype(parameter, dtype),
              .grad = in_dtype(grads[i], dtype),
              .slots = {},
              .learning_rate = learning_rate,
              .number = step_ + 1};
    for (const std::vector<LazyTensor>& slot : slots_) step.slots.push_back(slot[i]);
    results.push_back(updated(step));
  }
  // Only now, when every gradient has passed its checks, does anything change.
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    LazyTensor& parameter = *parameters_[i].tensor;
    parameter = in_dtype(results[i].parameter, parameter.dtype());
    for (std::size_t s = 0; s < slots_.size(); ++s) slots_[s][i] = std::move(results[i].slots[s]);
  }
  ++step_;
}

void Optimizer::update_if(const LazyTensor& apply, std::span<const LazyTensor> grads, double learning_rate) {
  const std::vector<LazyTensor> parameters = inputs();
  const std::vector<std::vector<LazyTensor>> slots = slots_;
  update(grads, learning_rate);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    *parameters_[i].tensor = where(apply, *parameters_[i].tensor, parameters[i]);
    for (std::size_t s = 0; s < slots_.size(); ++s) slots_[s][i] = where(apply, slots_[s][i], slots[s][i]);
  }
}

std::vector<LazyTensor> Optimizer::outputs() const {
  std::vector<LazyTensor> all = inputs();
  for (const std::vector<LazyTensor>& slot : slots_) all.insert(all.end(), slot.begin(), slot.end());
  return all;
}

void Optimizer::detach() {
  for (const Parameter& p : parameters_) *p.tensor = p.tensor->detach();
  for (std::vector<LazyTensor>& slot : slots_)
    for (LazyTensor& tensor : slot) tensor = tensor.detach();
}

OptimizerState Optimizer::state() const {
  OptimizerState state{.step = step_, .tensors = {}};
  for (std::size_t s = 0; s < slots_.size(); ++s)
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      state.tensors.emplace(join_name(parameters_[i].name, slot_names_[s]), slots_[s][i]);
  return state;
}

void Optimizer::restore(const OptimizerState& state) {
  if (state.step < 0) throw ValueError(fmt::format("{}: cannot continue from step {}", name_, state.step));
  std::vector<std::vector<LazyTensor>> slots(slots_.size());
  for (std::size_t s = 0; s < slots_.size(); ++s)
    for (const Parameter& p : parameters_) {
      const auto found = state.tensors.find(join_name(p.name, slot_names_[s]));
      if (found == state.tensors.end())
        throw ValueError(fmt::format("{}: the saved state lacks {} of {}", name_, slot_names_[s], p.name));
      if (found->second.shape() != p.tensor->shape())
        throw ShapeError(fmt::format("{}: {} has shape {}, the parameter {}", name_, found->first,
                                     found->second.shape().to_string(), p.tensor->shape().to_string()));
      slots[s].push_back(found->second);
    }
  if (state.tensors.size() != slots_.size() * parameters_.size())
    throw ValueError(
        fmt::format("{}: the saved state holds {} tensors, the parameters have {}; is it another "
                    "optimiser's, or another model's?",
                    name_, state.tensors.size(), slots_.size() * parameters_.size()));
  step_ = state.step;
  slots_ = std::move(slots);
}

void Optimizer::reset() {
  step_ = 0;
  slots_.assign(slot_names_.size(), {});
  std::vector<LazyTensor> all;
  for (std::vector<LazyTensor>& slot : slots_)
    for (const Parameter& p : parameters_) {
      const DType dtype = state_dtype(p.tensor->dtype());
      slot.push_back(LazyTensor::zeros(p.tensor->shape(), dtype, p.tensor->device()));
      all.push_back(slot.back());
    }
  // Leaves from the start, so that the first step has the plan of all later ones.
  caldera::eval(all);
  for (std::vector<LazyTensor>& slot : slots_)
    for (LazyTensor& tensor : slot) tensor = tensor.detach();
}

void eval(std::span<const LazyTensor> results, Optimizer& optimizer) {
  std::vector<LazyTensor> all = optimizer.outputs();
  all.insert(all.end(), results.begin(), results.end());
  eval(all);
  optimizer.detach();
}

void eval(std::initializer_list<LazyTensor> results, Optimizer& optimizer) {
  eval(std::span(results.begin(), results.size()), optimizer);
}

void eval(const LazyTensor& loss, Optimizer& optimizer) { eval({loss}, optimizer); }

std::vector<LazyTensor> grad(const LazyTensor& loss, const std::vector<Parameter>& parameters) {
  return grad(loss, tensors_of(parameters));
}

}  // namespace caldera
