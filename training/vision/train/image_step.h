// image_step: one step of training on images, as a plan.
#pragma once

#include "training/optim/optimizer.h"
#include "training/optim/weight_average.h"
#include "training/vision/data/data_loader.h"

namespace caldera::vision {

/// Makes a step: the loss (the mean cross-entropy), its gradients, the new parameters and running statistics,
/// all in one plan. Returns the loss, evaluated. `learning_rate` replaces the optimiser's own.
struct ImageStepOptions {
  double learning_rate = 0.01;
  double max_grad_norm = 0;   ///< 0 does not clip
  double max_grad_value = 0;  ///< clips each element of a gradient, before the norm is; 0 does not
  double label_smoothing = 0;
  WeightAverage* average = nullptr;  ///< takes in the new parameters, where there is one
};
LazyTensor image_step(Layer& model, Optimizer& optimizer, const ImageBatch& batch,
                      const ImageStepOptions& options);

}  // namespace caldera::vision
