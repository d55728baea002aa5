#include "training/vision/train/train_images.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "engine/base/error.h"
#include "ops/loss/cross_entropy.h"
#include "training/optim/clip.h"
#include "training/optim/registry.h"
#include "training/vision/layers/batch_norm2d.h"

namespace caldera::vision {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

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
  if (options.max_grad_norm > 0) clip_grad_norm(grads, options.max_grad_norm);
  optimizer.update(grads, options.learning_rate);
  std::vector<LazyTensor> results = running_statistics(model);
  results.push_back(loss);
  eval(results, optimizer);
  for (const Parameter& p : model.parameters()) *p.tensor = p.tensor->detach();
  return loss.detach();
}

ImageTrainResult train_images(Layer& model, DataLoader& loader, const ImageTrainOptions& options,
                              const std::function<bool(const ImageStepRecord&)>& watch) {
  if (options.epochs < 1 || options.iterations < 0)
    throw ValueError(
        fmt::format("train_images: {} epochs, {} iterations", options.epochs, options.iterations));
  const auto optimizer = make_optimizer(model.trainable_parameters(), options.optimizer);
  std::int64_t total = options.epochs * loader.batches();
  if (options.iterations > 0) total = options.iterations;
  const Schedule schedule{.kind = options.schedule,
                          .peak = optimizer->learning_rate(),
                          .warmup_steps = options.warmup,
                          .total_steps = total,
                          .shape = options.schedule_shape};
  schedule.validate();
  model.set_training(true);
  ImageTrainResult result;
  double images = 0, waited = 0, spent = 0;
  for (std::int64_t epoch = 0; result.steps < total; ++epoch) {
    loader.begin(epoch);
    double waited_before = 0;
    for (auto begin = Clock::now();; begin = Clock::now()) {
      const auto batch = loader.next();
      if (!batch || result.steps == total) break;
      ImageStepRecord record{.step = result.steps + 1, .total = total, .epoch = epoch};
      record.learning_rate = schedule.learning_rate(result.steps);
      model.set_random_seed(mix_seed(options.seed, static_cast<std::uint64_t>(result.steps)));
      record.loss = image_step(model, *optimizer, *batch,
                               {.learning_rate = record.learning_rate,
                                .max_grad_norm = options.max_grad_norm,
                                .label_smoothing = options.label_smoothing})
                        .item<double>();
      if (!std::isfinite(record.loss))
        throw ValueError(
            fmt::format("the loss of step {} is {}: lower the learning rate", record.step, record.loss));
      const double seconds = seconds_since(begin);
      const auto count = static_cast<double>(batch->labels.numel());
      record.images_per_second = count / seconds;
      if (result.steps > 0) {  // the first makes the plan
        images += count;
        spent += seconds;
        waited += loader.waited_seconds() - waited_before;
      }
      waited_before = loader.waited_seconds();
      record.ends_epoch = ++result.steps % loader.batches() == 0;
      if (watch && !watch(record)) {
        total = result.steps;
        break;
      }
    }
  }
  result.images_per_second = spent > 0 ? images / spent : 0;
  result.waited_share = spent > 0 ? waited / spent : 0;
  return result;
}

}  // namespace caldera::vision
