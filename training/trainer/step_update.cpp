#include "training/trainer/step_update.h"

#include <utility>

#include "engine/autodiff/autodiff.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/shape/joining.h"
#include "training/optim/clip.h"

namespace caldera::detail {
namespace {

/// Adds the gradients of a loss. The sums wait for further batches: attached to what they were computed from,
/// they would hold the data of batches that are done.
void add_gradients(GradientSums& sums, const LazyTensor& loss, const StepParts& parts, int sums_due) {
  std::vector<LazyTensor> grads = grad(loss, parts.optimizer.inputs());
  for (; sums_due > 0; --sums_due) {
    for (std::size_t i = 0; i < grads.size(); ++i) grads[i] = sums.back()[i] + grads[i];
    sums.pop_back();
  }
  for (LazyTensor& g : grads) g = stop_gradient(g);
  sums.push_back(std::move(grads));
}

/// Clips the gradients and replaces what a step changes, which it adds to `outputs`. Returns their norm.
LazyTensor update_parts(const StepParts& parts, std::vector<LazyTensor>& grads, const TrainOptions& options,
                        double learning_rate, std::vector<LazyTensor>& outputs) {
  if (parts.scaler != nullptr) parts.scaler->unscale(grads);
  if (options.max_grad_value > 0) clip_grad_value(grads, options.max_grad_value);
  LazyTensor norm =
      options.max_grad_norm > 0 ? clip_grad_norm(grads, options.max_grad_norm) : global_norm(grads);
  if (parts.scaler != nullptr)
    parts.optimizer.update_if(is_finite_scalar(norm), grads, learning_rate);
  else
    parts.optimizer.update(grads, learning_rate);
  outputs = parts.optimizer.outputs();
  if (parts.average != nullptr) {
    parts.average->update();
    outputs.insert(outputs.end(), parts.average->outputs().begin(), parts.average->outputs().end());
  }
  return norm;
}

}  // namespace

std::vector<LazyTensor> batch_outputs(const StepParts& parts, ObjectiveSums& sums, GradientSums& grads,
                                      const TrainOptions& options, const BatchPlace& place) {
  // Nothing stays with the caller that could be computed again only from the parameters as they were: without
  // it, the new parameters take the memory of the old ones.
  const LazyTensor loss = std::exchange(sums.loss, {}) * (1.0 / static_cast<double>(place.count));
  add_gradients(grads, parts.scaler != nullptr ? parts.scaler->scaled(loss) : loss, parts, place.sums_due);
  std::vector<LazyTensor> outputs, figures{loss};
  if (place.is_last) {
    std::vector<LazyTensor> total = std::move(grads.back());
    grads.clear();
    if (parts.exchange != nullptr) total = parts.exchange->summed(std::move(total));
    figures.push_back(update_parts(parts, total, options, place.learning_rate, outputs));
    if (parts.exchange != nullptr)
      outputs.insert(outputs.end(), parts.exchange->kept().begin(), parts.exchange->kept().end());
  } else {
    outputs = grads.back();
  }
  for (MetricSum& metric : sums.metrics) figures.push_back(std::exchange(metric.sum, {}));
  for (LazyTensor& figure : figures) figure = astype(figure, DType::f32);
  outputs.push_back(stack(figures, 0));  // one tensor, so that the host reads once a batch
  return outputs;
}

StepRestored::StepRestored(const StepParts& parts)
    : parts_(parts), parameters_(parts.optimizer.inputs()), state_(parts.optimizer.own_state()) {
  if (parts.average != nullptr) averages_ = parts.average->state();
  if (parts.exchange != nullptr) kept_ = parts.exchange->kept();
}

StepRestored::~StepRestored() {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    *parts_.optimizer.parameters()[i].tensor = parameters_[i];
  parts_.optimizer.restore_own(state_);
  if (parts_.exchange != nullptr) parts_.exchange->restore(kept_);
  if (parts_.average != nullptr) parts_.average->restore(averages_);
}

}  // namespace caldera::detail
