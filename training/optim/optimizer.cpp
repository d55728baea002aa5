#include "training/optim/optimizer.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "engine/autodiff/autodiff.h"
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

/// Throws unless `saved`, the state called `state`, is what the optimiser itself would keep for `parameter`.
void check_saved(const std::string& optimizer, const std::string& state, const LazyTensor& saved,
                 const LazyTensor& parameter) {
  if (!saved.defined()) throw ValueError(fmt::format("{}: {} of the saved state is empty", optimizer, state));
  if (saved.shape() != parameter.shape())
    throw ShapeError(fmt::format("{}: {} has shape {}, the parameter {}", optimizer, state,
                                 saved.shape().to_string(), parameter.shape().to_string()));
  const DType dtype = state_dtype(parameter.dtype());
  if (saved.dtype() != dtype)
    throw DTypeError(fmt::format("{}: {} is {}, but the state of this parameter is {}; convert it", optimizer,
                                 state, name(saved.dtype()), name(dtype)));
  if (saved.device() != parameter.device())
    throw DeviceError(fmt::format("{}: {} lies on {}, the parameter on {}; move it there", optimizer, state,
                                  saved.device().to_string(), parameter.device().to_string()));
}

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
  check_rate(name_, learning_rate);
  check_parameters();
  reset();
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
  prepare(learning_rate, step_ + 1);
  std::vector<Updated> results;
  results.reserve(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const LazyTensor& parameter = *parameters_[i].tensor;
    const DType dtype = state_dtype(parameter.dtype());
    Step step{.parameter = in_dtype(parameter, dtype),
              .grad = in_dtype(grads[i], dtype),
              .slots = {},
              .learning_rate = learning_rate,
              .number = step_ + 1};
    for (const std::vector<LazyTensor>& slot : slots_) step.slots.push_back(slot[i]);
    results.push_back(updated(step));
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    results[i].parameter = in_dtype(results[i].parameter, parameters_[i].tensor->dtype());
  return results;
}

/// What an update gives is a constant to whatever is differentiated next.
void Optimizer::commit(std::vector<Updated> results) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    *parameters_[i].tensor = stop_gradient(results[i].parameter);
    for (std::size_t s = 0; s < slots_.size(); ++s) slots_[s][i] = stop_gradient(results[i].slots[s]);
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
    for (std::size_t s = 0; s < slots_.size(); ++s)
      results[i].slots[s] = where(apply, results[i].slots[s], slots_[s][i]);
  }
  commit(std::move(results));
}

void Optimizer::skip_update() {
  if (step_ == 0) throw ValueError(fmt::format("{}: skip_update: there is no update to take back", name_));
  --step_;
}

std::vector<LazyTensor> Optimizer::outputs() const {
  std::vector<LazyTensor> all = inputs();
  for (const std::vector<LazyTensor>& slot : slots_) all.insert(all.end(), slot.begin(), slot.end());
  return all;
}

OptimizerState Optimizer::state() const {
  OptimizerState state{.step = step_, .tensors = {}};
  for (std::size_t s = 0; s < slots_.size(); ++s)
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      state.tensors.emplace(join_name(parameters_[i].name, slot_names_[s]), slots_[s][i]);
  return state;
}

void Optimizer::restore(const OptimizerState& state) {
  if (state.step < 0 || state.step > kLastStep)
    throw ValueError(
        fmt::format("{}: cannot continue from step {}: it must lie in 0..2^53", name_, state.step));
  std::vector<std::vector<LazyTensor>> slots(slots_.size());
  for (std::size_t s = 0; s < slots_.size(); ++s)
    for (const Parameter& p : parameters_) {
      const auto found = state.tensors.find(join_name(p.name, slot_names_[s]));
      if (found == state.tensors.end())
        throw ValueError(fmt::format("{}: the saved state lacks {} of {}", name_, slot_names_[s], p.name));
      check_saved(name_, found->first, found->second, *p.tensor);
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
