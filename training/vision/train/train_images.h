// train_images: trains a network on images.
#pragma once

#include <functional>

#include "training/vision/train/image_step.h"
#include "training/vision/train/image_trainer.h"

namespace caldera::vision {

/// Trains by the batches of a loader, as an ImageTrainer that is not saved; with an ema_decay the model is
/// left with the averages. `watch` is called after each step, and ends the training by false. Throws
/// ValueError for options out of their domains and a loss that is not finite.
ImageTrainResult train_images(Layer& model, DataLoader& loader, const ImageTrainOptions& options,
                              const std::function<bool(const ImageStepRecord&)>& watch = {});

}  // namespace caldera::vision
