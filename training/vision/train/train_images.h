// train_images: trains a network on images.
#pragma once

#include <cstdint>
#include <functional>

#include "training/optim/optimizer.h"
#include "training/optim/optimizer_options.h"
#include "training/optim/schedule.h"
#include "training/vision/data/data_loader.h"
#include "training/vision/train/image_metrics.h"

namespace caldera::vision {

/// Makes a step: the loss (the mean cross-entropy), its gradients, the new parameters and running statistics,
/// all in one plan. Returns the loss, evaluated. `learning_rate` replaces the optimiser's own.
struct ImageStepOptions {
  double learning_rate = 0.01;
  double max_grad_norm = 0;  ///< 0 does not clip
  double label_smoothing = 0;
};
LazyTensor image_step(Layer& model, Optimizer& optimizer, const ImageBatch& batch,
                      const ImageStepOptions& options);

struct ImageTrainOptions {
  std::int64_t epochs = 5;
  std::int64_t iterations = 0;  ///< ends after so many steps; 0: by epochs alone
  ScheduleKind schedule = ScheduleKind::cosine;
  ScheduleShape schedule_shape{};
  std::int64_t warmup = 0;       ///< steps
  OptimizerOptions optimizer{};  ///< its learning rate is the schedule's peak
  double max_grad_norm = 0;
  double label_smoothing = 0;
  std::uint64_t seed = 0;  ///< of dropout
};

/// A step, as it is told to who watches.
struct ImageStepRecord {
  std::int64_t step = 0;   ///< counts from 1
  std::int64_t total = 0;  ///< steps of the run
  std::int64_t epoch = 0;  ///< counts from 0
  double loss = 0;
  double learning_rate = 0;
  double images_per_second = 0;  ///< of this step
  bool ends_epoch = false;
};

struct ImageTrainResult {
  std::int64_t steps = 0;
  double images_per_second = 0;  ///< of all steps
  double waited_share = 0;       ///< of the time of all steps: waiting for batches
};

/// Trains by the batches of a loader. `watch` is called after each step, and ends the training by false.
/// Throws ValueError for options out of their domains and a loss that is not finite.
ImageTrainResult train_images(Layer& model, DataLoader& loader, const ImageTrainOptions& options,
                              const std::function<bool(const ImageStepRecord&)>& watch = {});

}  // namespace caldera::vision
