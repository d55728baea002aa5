#include "training/vision/train/image_step.h"

#include "ops/loss/cross_entropy.h"
#include "training/optim/clip.h"
#include "training/vision/layers/batch_norm2d.h"

namespace caldera::vision {
namespace {

LazyTensor loss_of(const LazyTensor& logits, const ImageBatch& batch, double label_smoothing) {
  const CrossEntropyOptions smoothing{.label_smoothing = label_smoothing};
  LazyTensor own = mean_cross_entropy(logits, batch.labels, smoothing);
  if (!batch.other_labels.defined()) return own;
  return own * batch.share + mean_cross_entropy(logits, batch.other_labels, smoothing) * (1 - batch.share);
}

}  // namespace

LazyTensor image_step(Layer& model, Optimizer& optimizer, const ImageBatch& batch,
                      const ImageStepOptions& options) {
  const LazyTensor loss = loss_of(model(batch.images), batch, options.label_smoothing);
  std::vector<LazyTensor> grads = grad(loss, optimizer.parameters());
  if (options.max_grad_value > 0) clip_grad_value(grads, options.max_grad_value);
  if (options.max_grad_norm > 0) clip_grad_norm(grads, options.max_grad_norm);
  optimizer.update(grads, options.learning_rate);
  std::vector<LazyTensor> results = running_statistics(model);
  if (options.average != nullptr) {
    options.average->update();
    const std::vector<LazyTensor>& averages = options.average->outputs();
    results.insert(results.end(), averages.begin(), averages.end());
  }
  results.push_back(loss);
  eval(results, optimizer);
  for (const Parameter& p : model.parameters()) *p.tensor = p.tensor->detach();
  return loss.detach();
}

}  // namespace caldera::vision
