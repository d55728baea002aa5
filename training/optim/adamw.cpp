#include "training/optim/adamw.h"

#include <fmt/format.h>

#include "ops/core/selection.h"
#include "ops/nn/optimizer_updates.h"

namespace caldera {
namespace {

DType moment_dtype(DType parameter) { return parameter == DType::f64 ? DType::f64 : DType::f32; }

void check_moment(const Parameter& p, const LazyTensor& moment) {
  if (moment.shape() != p.tensor->shape())
    throw ShapeError(fmt::format("AdamW: a moment of {} has shape {}, the parameter {}", p.name,
                                 moment.shape().to_string(), p.tensor->shape().to_string()));
}

void check_count(const char* what, std::size_t got, std::size_t expected) {
  if (got != expected) throw ShapeError(fmt::format("AdamW: {} {} for {} parameters", got, what, expected));
}

}  // namespace

void AdamWOptions::validate() const {
  const auto require = [](bool ok, const char* field, double value, const char* domain) {
    if (!ok) throw ValueError(fmt::format("AdamW: {} is {}, but must be {}", field, value, domain));
  };
  require(learning_rate >= 0, "learning_rate", learning_rate, "at least 0");
  require(beta1 >= 0 && beta1 < 1, "beta1", beta1, "in [0, 1)");
  require(beta2 >= 0 && beta2 < 1, "beta2", beta2, "in [0, 1)");
  require(eps >= 0, "eps", eps, "at least 0");
  require(weight_decay >= 0, "weight_decay", weight_decay, "at least 0");
}

AdamW::AdamW(std::vector<Parameter> parameters, const AdamWOptions& options)
    : options_(options), parameters_(std::move(parameters)) {
  options_.validate();
  if (parameters_.empty())
    throw ValueError("AdamW: there is nothing to train: the list of parameters is empty");
  for (const Parameter& p : parameters_)
    if (!is_floating(p.tensor->dtype()))
      throw DTypeError(fmt::format("AdamW: {} is {}, not floating", p.name, name(p.tensor->dtype())));
  reset();
}

std::vector<LazyTensor> AdamW::inputs() const {
  std::vector<LazyTensor> tensors;
  tensors.reserve(parameters_.size());
  for (const Parameter& p : parameters_) tensors.push_back(*p.tensor);
  return tensors;
}

void AdamW::step(std::span<const LazyTensor> grads, double learning_rate) {
  check_count("gradients", grads.size(), parameters_.size());
  const AdamWScalars scalars{.learning_rate = learning_rate,
                             .beta1 = options_.beta1,
                             .beta2 = options_.beta2,
                             .eps = options_.eps,
                             .weight_decay = options_.weight_decay,
                             .step = step_ + 1};
  std::vector<AdamWUpdate> updates;
  updates.reserve(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    updates.push_back(adamw_update(*parameters_[i].tensor, grads[i], first_[i], second_[i], scalars));
  // Only now, when every gradient has passed its checks, does anything change.
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    *parameters_[i].tensor = std::move(updates[i].param);
    first_[i] = std::move(updates[i].m);
    second_[i] = std::move(updates[i].v);
  }
  ++step_;
}

void AdamW::step_if(const LazyTensor& apply, std::span<const LazyTensor> grads, double learning_rate) {
  const std::vector<LazyTensor> parameters = inputs(), first = first_, second = second_;
  step(grads, learning_rate);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    *parameters_[i].tensor = where(apply, *parameters_[i].tensor, parameters[i]);
    first_[i] = where(apply, first_[i], first[i]);
    second_[i] = where(apply, second_[i], second[i]);
  }
}

std::vector<LazyTensor> AdamW::state() const {
  std::vector<LazyTensor> all = inputs();
  all.insert(all.end(), first_.begin(), first_.end());
  all.insert(all.end(), second_.begin(), second_.end());
  return all;
}

void AdamW::detach() {
  for (const Parameter& p : parameters_) *p.tensor = p.tensor->detach();
  for (LazyTensor& m : first_) m = m.detach();
  for (LazyTensor& v : second_) v = v.detach();
}

void AdamW::restore(std::int64_t step, std::vector<LazyTensor> first, std::vector<LazyTensor> second) {
  if (step < 0) throw ValueError(fmt::format("AdamW: cannot continue from step {}", step));
  check_count("first moments", first.size(), parameters_.size());
  check_count("second moments", second.size(), parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    check_moment(parameters_[i], first[i]);
    check_moment(parameters_[i], second[i]);
  }
  step_ = step;
  first_ = std::move(first);
  second_ = std::move(second);
}

void AdamW::reset() {
  step_ = 0;
  first_.clear();
  second_.clear();
  for (const Parameter& p : parameters_) {
    const DType dtype = moment_dtype(p.tensor->dtype());
    first_.push_back(LazyTensor::zeros(p.tensor->shape(), dtype, p.tensor->device()));
    second_.push_back(LazyTensor::zeros(p.tensor->shape(), dtype, p.tensor->device()));
  }
  // Leaves from the start, so that the first step has the plan of all later ones.
  std::vector<LazyTensor> moments = first_;
  moments.insert(moments.end(), second_.begin(), second_.end());
  eval(moments);
  for (LazyTensor& m : first_) m = m.detach();
  for (LazyTensor& v : second_) v = v.detach();
}

}  // namespace caldera
