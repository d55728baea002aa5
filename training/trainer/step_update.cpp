#include "training/trainer/step_update.h"

#include "training/optim/clip.h"

namespace caldera::detail {

StepUpdate update_parts(const StepParts& parts, std::vector<LazyTensor>& grads, const TrainOptions& options,
                        double learning_rate) {
  if (parts.scaler != nullptr) parts.scaler->unscale(grads);
  if (options.max_grad_value > 0) clip_grad_value(grads, options.max_grad_value);
  StepUpdate update{
      .norm = options.max_grad_norm > 0 ? clip_grad_norm(grads, options.max_grad_norm) : global_norm(grads),
      .outputs = {}};
  if (parts.scaler != nullptr)
    parts.optimizer.update_if(is_finite_scalar(update.norm), grads, learning_rate);
  else
    parts.optimizer.update(grads, learning_rate);
  update.outputs = parts.optimizer.outputs();
  if (parts.average != nullptr) {
    parts.average->update();
    update.outputs.insert(update.outputs.end(), parts.average->outputs().begin(),
                          parts.average->outputs().end());
  }
  return update;
}

StepRestored::StepRestored(const StepParts& parts)
    : parts_(parts), parameters_(parts.optimizer.inputs()), state_(parts.optimizer.state()) {
  if (parts.average != nullptr) averages_ = parts.average->state();
}

StepRestored::~StepRestored() {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    *parts_.optimizer.parameters()[i].tensor = parameters_[i];
  parts_.optimizer.restore(state_);
  if (parts_.average != nullptr) parts_.average->restore(averages_);
}

}  // namespace caldera::detail
