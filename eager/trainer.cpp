#include "eager/trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "eager/errors.h"
#include "training/optim/clip.h"

namespace caldera::v1 {

void TrainingConfig::validate() const {
  if (num_epochs < 1)
    throw TrainingError::invalid_config(fmt::format("num_epochs is {}, want it positive", num_epochs));
  if (!(max_grad_norm >= 0 && std::isfinite(max_grad_norm)))
    throw TrainingError::invalid_config(
        fmt::format("max_grad_norm is {}, want it finite and not negative (0 does not clip)", max_grad_norm));
  optimizer_config.validate();
}

TrainingStep::TrainingStep(std::vector<Var> variables, AdamW& optimizer, double max_grad_norm)
    : variables_(std::move(variables)), optimizer_(optimizer), max_grad_norm_(max_grad_norm) {}

StepMetrics TrainingStep::run(const std::function<Tensor()>& loss) {
  auto [value, grads] = value_and_grad(loss, variables_);
  std::vector<LazyTensor> lazy;
  lazy.reserve(grads.size());
  for (const Tensor& grad : grads) lazy.push_back(grad.lazy());
  const LazyTensor norm = max_grad_norm_ > 0 ? clip_grad_norm(lazy, max_grad_norm_) : global_norm(lazy);
  StepMetrics metrics{.loss = value.item<double>(),
                      .learning_rate = optimizer_.learning_rate(),
                      .grad_norm = norm.item<double>()};
  if (!std::isfinite(metrics.loss) || !std::isfinite(metrics.grad_norm))
    throw TrainingError::failed(
        fmt::format("the loss is {} and the norm of its gradient {}; try a lower "
                    "learning rate",
                    metrics.loss, metrics.grad_norm));
  for (std::size_t i = 0; i < grads.size(); ++i) grads[i] = Tensor(lazy[i].detach());
  optimizer_.step(variables_, grads);
  metrics.step = optimizer_.step_count();
  return metrics;
}

Trainer::Trainer(std::vector<Var> variables, const TrainingConfig& config)
    : config_(config),
      variables_(std::move(variables)),
      optimizer_(config.optimizer_config),
      step_(variables_, optimizer_, config.max_grad_norm) {
  config.validate();
  if (variables_.empty()) throw TrainingError::state("there is no variable to train");
}

void Trainer::check_batches(std::size_t count) {
  if (count == 0) throw TrainingError::failed("there is no batch to train on");
}

StepMetrics Trainer::step(const std::function<Tensor()>& loss) {
  if (config_.lr_scheduler) optimizer_.set_lr(config_.lr_scheduler->get_lr(global_step_));
  StepMetrics metrics = step_.run(loss);
  metrics.step = ++global_step_;
  return metrics;
}

}  // namespace caldera::v1
