#include "training/optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "engine/autodiff/autodiff.h"
#include "lm/base/regex/regex.h"
#include "lm/nn/precision.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "training/optim/option_check.h"

namespace caldera {
namespace {

/// What the update of a parameter is computed in, and its state kept in.
DType state_dtype(DType parameter) { return parameter == DType::f64 ? DType::f64 : DType::f32; }

/// The last step whose number a double holds exactly: bias corrections are worked out in double.
constexpr std::int64_t kLastStep = std::int64_t{1} << 53;

void check_rate(const std::string& optimizer, double rate) {
  detail::OptionCheck{optimizer.c_str()}(rate >= 0 && std::isfinite(rate), "learning_rate", rate,
                                         "finite and at least 0");
}

/// Throws unless `saved`, the state called `state`, is what the optimiser itself would keep.
void check_saved(const std::string& optimizer, const std::string& state, const LazyTensor& saved,
                 const Shape& shape, DType dtype, Device device) {
  if (!saved.defined()) throw ValueError(fmt::format("{}: {} of the saved state is empty", optimizer, state));
  if (saved.shape() != shape)
    throw ShapeError(fmt::format("{}: {} has shape {}, this optimiser's {}", optimizer, state,
                                 saved.shape().to_string(), shape.to_string()));
  if (saved.dtype() != dtype)
    throw DTypeError(fmt::format("{}: {} is {}, but the state of this parameter is {}; convert it", optimizer,
                                 state, name(saved.dtype()), name(dtype)));
  if (saved.device() != device)
    throw DeviceError(fmt::format("{}: {} lies on {}, the parameter on {}; move it there", optimizer, state,
                                  saved.device().to_string(), device.to_string()));
}

detail::Regex compiled_pattern(const std::string& optimizer, const std::string& pattern) try {
  return detail::Regex(pattern, detail::Regex::Syntax::pcre, "");
} catch (const FileError& error) {
  throw ValueError(fmt::format("{}: '{}' is no regular expression{}", optimizer, pattern, error.what()));
}

std::vector<LazyTensor> tensors_of(const std::vector<Parameter>& parameters) {
  std::vector<LazyTensor> tensors;
  tensors.reserve(parameters.size());
  for (const Parameter& p : parameters) tensors.push_back(*p.tensor);
  return tensors;
}

}  // namespace

std::vector<Optimizer::Slot> Optimizer::slots_like(const LazyTensor& parameter,
                                                   const std::vector<std::string>& names) {
  std::vector<Slot> slots;
  slots.reserve(names.size());
  for (const std::string& name : names)
    slots.push_back({name, parameter.shape(), state_dtype(parameter.dtype())});
  return slots;
}

Optimizer::Optimizer(std::string name, std::vector<Parameter> parameters,
                     const std::vector<std::string>& slots, double learning_rate, double weight_decay)
    : Optimizer(
          std::move(name), std::move(parameters),
          [&](const LazyTensor& parameter) { return slots_like(parameter, slots); }, learning_rate,
          weight_decay) {}

Optimizer::Optimizer(std::string name, std::vector<Parameter> parameters, const Slots& slots,
                     double learning_rate, double weight_decay)
    : name_(std::move(name)),
      parameters_(std::move(parameters)),
      groups_(1),
      group_of_(parameters_.size(), 0),
      learning_rate_(learning_rate),
      weight_decay_(weight_decay) {
  check_rate(name_, learning_rate);
  check_parameters();
  for (const Parameter& p : parameters_) slot_kinds_.push_back(slots(*p.tensor));
  reset();
}

void Optimizer::set_groups(const std::vector<ParameterGroup>& groups, std::span<const Parameter> others) {
  std::vector<std::size_t> group_of(parameters_.size(), 0);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const ParameterGroup& group = groups[g];
    const detail::OptionCheck require{name_.c_str()};
    const auto is_rate = [](double value) { return value >= 0 && std::isfinite(value); };
    require(is_rate(group.learning_rate_factor), "a group's learning_rate_factor", group.learning_rate_factor,
            "finite and at least 0");
    require(is_rate(group.weight_decay.value_or(0)), "a group's weight_decay", group.weight_decay.value_or(0),
            "finite and at least 0");
    const detail::Regex pattern = compiled_pattern(name_, group.pattern);
    const auto is_found_in = [&](const std::string& text) {
      bool found = false;
      pattern.for_each_match(text, [&](const detail::Regex::Match&) { found = true; });
      return found;
    };
    bool found = std::ranges::any_of(others, is_found_in, &Parameter::name);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const bool matches = is_found_in(parameters_[i].name);
      found = found || matches;
      if (matches && group_of[i] == 0) group_of[i] = g + 1;
    }
    if (!found)
      throw ValueError(fmt::format("{}: no parameter's name has '{}' (the first is '{}')", name_,
                                   group.pattern, parameters_.front().name));
  }
  groups_.assign(1, {});
  groups_.insert(groups_.end(), groups.begin(), groups.end());
  group_of_ = std::move(group_of);
}

void Optimizer::check_parameters() const {
  if (parameters_.empty())
    throw ValueError(fmt::format("{}: there is nothing to train: the list of parameters is empty", name_));
  std::set<std::string> names;
  std::map<const LazyTensor*, std::string> tensors;
  for (const Parameter& p : parameters_) {
    if (p.tensor == nullptr || !p.tensor->defined())
      throw ValueError(fmt::format("{}: parameter '{}' has no tensor", name_, p.name));
    if (!is_floating(p.tensor->dtype()))
      throw DTypeError(
          fmt::format("{}: {} is {}, not floating", name_, p.name, caldera::name(p.tensor->dtype())));
    // One of two updates would be lost, or one of two states when they are saved by name.
    const auto [same, fresh] = tensors.emplace(p.tensor, p.name);
    if (!fresh)
      throw ValueError(fmt::format("{}: parameters '{}' and '{}' are the same tensor; list it once", name_,
                                   same->second, p.name));
    if (!names.insert(p.name).second)
      throw ValueError(fmt::format(
          "{}: two parameters are called '{}'; state is saved by name, so give each a name of its own", name_,
          p.name));
  }
}

std::vector<LazyTensor> Optimizer::inputs() const { return tensors_of(parameters_); }

void Optimizer::check_grads(std::span<const LazyTensor> grads) const {
  if (grads.size() != parameters_.size())
    throw ShapeError(
        fmt::format("{}: {} gradients for {} parameters", name_, grads.size(), parameters_.size()));
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Parameter& p = parameters_[i];
    if (!grads[i].defined())
      throw ValueError(fmt::format(
          "{}: the gradient of '{}' is empty; pass zeros of its shape, or leave the parameter out "
          "of the optimiser's list",
          name_, p.name));
    if (grads[i].shape() != p.tensor->shape())
      throw ShapeError(fmt::format("{}: the gradient of '{}' has shape {}, the parameter {}", name_, p.name,
                                   grads[i].shape().to_string(), p.tensor->shape().to_string()));
  }
}

std::vector<Optimizer::Updated> Optimizer::next(std::span<const LazyTensor> grads, double learning_rate) {
  check_rate(name_, learning_rate);
  check_grads(grads);
  std::vector<Updated> results(parameters_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (std::ranges::find(group_of_, g) == group_of_.end()) continue;
    prepare({.learning_rate = learning_rate * groups_[g].learning_rate_factor,
             .weight_decay = groups_[g].weight_decay.value_or(weight_decay_),
             .step = step_ + 1});
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (group_of_[i] != g) continue;
      const LazyTensor& parameter = *parameters_[i].tensor;
      const DType dtype = state_dtype(parameter.dtype());
      results[i] = updated(
          {.parameter = in_dtype(parameter, dtype), .grad = in_dtype(grads[i], dtype), .slots = slots_[i]});
      results[i].parameter = in_dtype(results[i].parameter, parameter.dtype());
    }
  }
  return results;
}

/// What an update gives is a constant to whatever is differentiated next.
void Optimizer::commit(std::vector<Updated> results) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    *parameters_[i].tensor = stop_gradient(results[i].parameter);
    for (std::size_t s = 0; s < slots_[i].size(); ++s) slots_[i][s] = stop_gradient(results[i].slots[s]);
  }
  ++step_;
}

void Optimizer::update(std::span<const LazyTensor> grads, double learning_rate) {
  commit(next(grads, learning_rate));
}

void Optimizer::update_if(const LazyTensor& apply, std::span<const LazyTensor> grads, double learning_rate) {
  const auto what = [&] { return fmt::format("{}: update_if: the condition", name_); };
  if (!apply.defined()) throw ValueError(what() + " is empty");
  if (apply.dtype() != DType::boolean)
    throw DTypeError(fmt::format("{} is {}, not boolean", what(), caldera::name(apply.dtype())));
  if (apply.rank() != 0)
    throw ShapeError(
        fmt::format("{} has shape {}, but must be a scalar of rank 0", what(), apply.shape().to_string()));
  std::vector<Updated> results = next(grads, learning_rate);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    results[i].parameter = where(apply, results[i].parameter, *parameters_[i].tensor);
    for (std::size_t s = 0; s < slots_[i].size(); ++s)
      results[i].slots[s] = where(apply, results[i].slots[s], slots_[i][s]);
  }
  commit(std::move(results));
}

void Optimizer::skip_update() {
  if (step_ == 0) throw ValueError(fmt::format("{}: skip_update: there is no update to take back", name_));
  --step_;
}

std::vector<LazyTensor> Optimizer::outputs() const {
  std::vector<LazyTensor> all = inputs();
  for (const std::vector<LazyTensor>& slots : slots_) all.insert(all.end(), slots.begin(), slots.end());
  return all;
}

OptimizerState Optimizer::state() const {
  OptimizerState state{.step = step_, .tensors = {}};
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    for (std::size_t s = 0; s < slots_[i].size(); ++s)
      state.tensors.emplace(join_name(parameters_[i].name, slot_kinds_[i][s].name), slots_[i][s]);
  return state;
}

void Optimizer::restore(const OptimizerState& state) {
  if (state.step < 0 || state.step > kLastStep)
    throw ValueError(
        fmt::format("{}: cannot continue from step {}: it must lie in 0..2^53", name_, state.step));
  std::vector<std::vector<LazyTensor>> slots(parameters_.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    for (const Slot& slot : slot_kinds_[i]) {
      const Parameter& p = parameters_[i];
      const auto found = state.tensors.find(join_name(p.name, slot.name));
      if (found == state.tensors.end())
        throw ValueError(fmt::format("{}: the saved state lacks {} of {}", name_, slot.name, p.name));
      check_saved(name_, found->first, found->second, slot.shape, slot.dtype, p.tensor->device());
      slots[i].push_back(found->second);
      ++count;
    }
  if (state.tensors.size() != count)
    throw ValueError(
        fmt::format("{}: the saved state holds {} tensors, the parameters have {}; is it another "
                    "optimiser's, or another model's?",
                    name_, state.tensors.size(), count));
  step_ = state.step;
  slots_ = std::move(slots);
}

void Optimizer::reset() {
  step_ = 0;
  slots_.assign(parameters_.size(), {});
  std::vector<LazyTensor> all;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    for (const Slot& slot : slot_kinds_[i]) {
      slots_[i].push_back(LazyTensor::zeros(slot.shape, slot.dtype, parameters_[i].tensor->device()));
      all.push_back(slots_[i].back());
    }
  // Leaves from the start, so that the first step has the plan of all later ones.
  caldera::eval(all);
}

void eval(std::span<const LazyTensor> results, Optimizer& optimizer) {
  std::vector<LazyTensor> all = optimizer.outputs();
  all.insert(all.end(), results.begin(), results.end());
  eval(all);
}

void eval(std::initializer_list<LazyTensor> results, Optimizer& optimizer) {
  eval(std::span(results.begin(), results.size()), optimizer);
}

void eval(const LazyTensor& loss, Optimizer& optimizer) { eval({loss}, optimizer); }

std::vector<LazyTensor> grad(const LazyTensor& loss, const std::vector<Parameter>& parameters) {
  return grad(loss, tensors_of(parameters));
}

}  // namespace caldera
