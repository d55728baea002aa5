#include "training/vision/train/image_trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <map>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "training/checkpoints/train_state.h"
#include "training/optim/registry.h"
#include "training/vision/train/image_step.h"

namespace caldera::vision {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::map<std::string, LazyTensor> named_tensors(Module& model) {
  std::map<std::string, LazyTensor> tensors;
  for (const Parameter& p : model.parameters()) tensors.emplace(p.name, *p.tensor);
  return tensors;
}

}  // namespace

ImageTrainer::ImageTrainer(Layer& model, DataLoader& loader, const ImageTrainOptions& options)
    : model_(model), loader_(loader), options_(options) {
  if (options.epochs < 1 || options.iterations < 0)
    throw ValueError(
        fmt::format("train_images: {} epochs, {} iterations", options.epochs, options.iterations));
  if (options.iterations == 0 && options.epochs > (std::int64_t{1} << 53) / loader.batches())
    throw ValueError(fmt::format("train_images: {} epochs of {} batches are more than 2^53 steps",
                                 options.epochs, loader.batches()));
  optimizer_ = make_optimizer(model.trainable_parameters(), options.optimizer);
  if (options.ema_decay != 0) average_.emplace(optimizer_->parameters(), options.ema_decay);
  schedule_ = {.kind = options.schedule,
               .peak = optimizer_->learning_rate(),
               .warmup_steps = options.warmup,
               .total_steps = options.iterations > 0 ? options.iterations : options.epochs * loader.batches(),
               .shape = options.schedule_shape};
  schedule_.validate();
}

ImageTrainResult ImageTrainer::train(const std::function<bool(const ImageStepRecord&)>& watch) {
  model_.set_training(true);
  ImageTrainResult result;
  double images = 0, waited = 0, spent = 0;
  const std::int64_t first = step_, batches = loader_.batches();
  for (bool goes_on = true; goes_on && step_ < total_steps();) {
    const std::int64_t epoch = step_ / batches;
    loader_.begin(epoch, step_ % batches);
    double waited_before = 0;
    for (auto begin = Clock::now(); goes_on && step_ < total_steps(); begin = Clock::now()) {
      const auto batch = loader_.next();
      if (!batch) break;
      ImageStepRecord record{.step = step_ + 1, .total = total_steps(), .epoch = epoch};
      record.learning_rate = schedule_.learning_rate(step_);
      model_.set_random_seed(mix_seed(options_.seed, static_cast<std::uint64_t>(step_)));
      record.loss = image_step(model_, *optimizer_, *batch,
                               {.learning_rate = record.learning_rate,
                                .max_grad_norm = options_.max_grad_norm,
                                .max_grad_value = options_.max_grad_value,
                                .label_smoothing = options_.label_smoothing,
                                .average = average_ ? &*average_ : nullptr})
                        .item<double>();
      if (!std::isfinite(record.loss))
        throw ValueError(
            fmt::format("the loss of step {} is {}: lower the learning rate", record.step, record.loss));
      const double seconds = seconds_since(begin);
      const auto count = static_cast<double>(batch->labels.numel());
      record.images_per_second = count / seconds;
      if (step_ > first) {  // the first makes the plan
        images += count;
        spent += seconds;
        waited += loader_.waited_seconds() - waited_before;
      }
      waited_before = loader_.waited_seconds();
      record.ends_epoch = ++step_ % batches == 0;
      goes_on = !watch || watch(record);
    }
  }
  result.steps = step_;
  result.images_per_second = spent > 0 ? images / spent : 0;
  result.waited_share = spent > 0 ? waited / spent : 0;
  return result;
}

void ImageTrainer::exchange_averages() {
  if (average_) average_->exchange();
}

std::string ImageTrainer::described() const {
  return fmt::format("batches of {} from {} images of {} classes, {} an epoch, ordered by seed {}",
                     loader_.options().batch_size, loader_.data().size(), loader_.data().classes(),
                     loader_.batches(), loader_.options().seed);
}

void ImageTrainer::save(const std::filesystem::path& path) const {
  TrainState state{.step = step_,
                   .parameters = named_tensors(model_),
                   .optimizer = optimizer_->state(),
                   .data = {.seed = options_.seed, .size = static_cast<std::uint64_t>(loader_.data().size())},
                   .data_fingerprint = described()};
  if (average_) state.averages = average_->state();
  StagedFiles files;
  write_train_state(files, path, state);
  files.commit();
}

void ImageTrainer::load(const std::filesystem::path& path) {
  const std::vector<Parameter> parameters = model_.parameters();
  const TrainState state = read_train_state(path, parameters.front().tensor->device());
  const auto refuse = [&](const std::string& what) {
    throw FileError(
        fmt::format("{}: {}: go on with the options that the run began with", path.string(), what));
  };
  for (const Parameter& p : parameters) {
    const auto found = state.parameters.find(p.name);
    if (found == state.parameters.end()) refuse(fmt::format("it has no '{}'", p.name));
    if (found->second.shape() != p.tensor->shape() || found->second.dtype() != p.tensor->dtype())
      refuse(fmt::format("its '{}' is {} of {}, and the network's {} of {}", p.name,
                         found->second.shape().to_string(), name(found->second.dtype()),
                         p.tensor->shape().to_string(), name(p.tensor->dtype())));
  }
  if (state.parameters.size() != parameters.size()) refuse("it is of another network");
  if (state.data_fingerprint != described())
    refuse(fmt::format("it trained with {}, and this run does with {}", state.data_fingerprint, described()));
  if (state.data.seed != options_.seed)
    refuse(fmt::format("its seed was {}, and this run's is {}", state.data.seed, options_.seed));
  if (state.averages.empty() == average_.has_value())
    refuse(average_ ? "it kept no moving average" : "it kept a moving average");
  if (state.step < 0) refuse("its number of steps is none");
  const OptimizerState before = optimizer_->state();
  try {
    optimizer_->restore(state.optimizer);
    if (average_) average_->restore(state.averages);
  } catch (const Error& error) {
    optimizer_->restore(before);
    refuse(error.what());
  }
  for (const Parameter& p : parameters) *p.tensor = state.parameters.at(p.name);
  step_ = state.step;
}

}  // namespace caldera::vision
