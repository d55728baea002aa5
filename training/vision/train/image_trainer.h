// ImageTrainer: a run of training on images that can be saved between two steps, and go on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "training/optim/optimizer.h"
#include "training/optim/optimizer_options.h"
#include "training/optim/schedule.h"
#include "training/optim/weight_average.h"
#include "training/vision/data/data_loader.h"

namespace caldera::vision {

struct ImageTrainOptions {
  std::int64_t epochs = 5;
  std::int64_t iterations = 0;  ///< ends after so many steps; 0: by epochs alone
  ScheduleKind schedule = ScheduleKind::cosine;
  ScheduleShape schedule_shape{};
  std::int64_t warmup = 0;       ///< steps
  OptimizerOptions optimizer{};  ///< its learning rate is the schedule's peak
  double max_grad_norm = 0;
  double max_grad_value = 0;
  double ema_decay = 0;  ///< of the parameters' moving average; 0: none
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
  std::int64_t steps = 0;        ///< done in all
  double images_per_second = 0;  ///< of all steps
  double waited_share = 0;       ///< of the time of all steps: waiting for batches
};

/// Trains a model by the batches of a loader. A saved run that goes on with the same model, loader and
/// options does so to the last bit. Keeps references to both. One thread at a time.
class ImageTrainer {
 public:
  /// Throws ValueError for options out of their domains.
  ImageTrainer(Layer& model, DataLoader& loader, const ImageTrainOptions& options);

  /// Goes on to the last step. `watch` is called after each step, and ends the training by false. Throws
  /// ValueError for a loss that is not finite, and what loading a batch throws.
  ImageTrainResult train(const std::function<bool(const ImageStepRecord&)>& watch = {});

  std::int64_t steps_done() const { return step_; }
  std::int64_t total_steps() const { return schedule_.total_steps; }

  /// Exchanges the model's parameters and their averages, where the run keeps such. Called twice it changes
  /// nothing; steps and save() need the parameters.
  void exchange_averages();

  /// Writes everything that the run's future depends on, in one safetensors file, at once or not at all.
  /// Throws FileError.
  void save(const std::filesystem::path& path) const;
  /// Goes on from such a file. Throws FileError for a file that is none, and one of a run with other
  /// parameters, images, batches or options; nothing is changed then.
  void load(const std::filesystem::path& path);

 private:
  std::string described() const;

  Layer& model_;
  DataLoader& loader_;
  ImageTrainOptions options_;
  std::unique_ptr<Optimizer> optimizer_;
  std::optional<WeightAverage> average_;
  Schedule schedule_;
  std::int64_t step_ = 0;
};

}  // namespace caldera::vision
