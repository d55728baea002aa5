#include "training/vision/train/train_images.h"

namespace caldera::vision {

ImageTrainResult train_images(Layer& model, DataLoader& loader, const ImageTrainOptions& options,
                              const std::function<bool(const ImageStepRecord&)>& watch) {
  ImageTrainer trainer(model, loader, options);
  ImageTrainResult result = trainer.train(watch);
  trainer.exchange_averages();
  return result;
}

}  // namespace caldera::vision
