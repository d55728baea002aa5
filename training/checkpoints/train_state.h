// TrainState: everything that a run needs to go on as if it had never stopped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "training/data/batch_iterator.h"
#include "training/objectives/metric.h"
#include "training/optim/loss_scaler.h"
#include "training/optim/optimizer.h"

namespace caldera {

class StagedFiles;

/// A validation loss, and the step after which it was measured.
struct BestValidation {
  std::int64_t step = 0;
  double loss = 0;
  double score =
      0;  ///< by which it was compared, the lower the better: the loss, or a metric with its sign changed
};

/// The state of a run between two steps, and nothing that two equal runs differ in, such as times. Dropout
/// masks follow from the seed and the step, the learning rate from the step.
struct TrainState {
  std::int64_t step = 0;                         ///< steps done
  std::map<std::string, LazyTensor> parameters;  ///< those that are trained, in the dtype of training
  OptimizerState optimizer;
  std::map<std::string, LazyTensor> averages;  ///< of the parameters, where the run keeps them
  BatchPosition data;
  double loss = 0;               ///< of the last step
  double grad_norm = 0;          ///< of the last step
  std::string data_fingerprint;  ///< of the tokens, to notice other data
  std::optional<LossScaler::State> loss_scaler;
  std::optional<double> initial_val_loss;
  std::optional<double> val_loss;      ///< of the last validation
  std::vector<Metric> val_metrics;     ///< of the last validation
  std::int64_t validated_step = -1;    ///< after which it was; -1: none yet
  std::optional<BestValidation> best;  ///< of the validations after the first step
  std::int64_t misses = 0;             ///< validations in a row that were not the best
  std::int64_t tokens = 0;             ///< trained on so far
};

/// The name of the file in a checkpoint's folder.
inline constexpr const char* kTrainStateFile = "training_state.safetensors";

/// Adds `path`, a safetensors file, to `files`: "parameter.NAME", "optimizer.NAME.SLOT", "average.NAME", and
/// all numbers as JSON in its metadata, where they lose no bit. Throws FileError.
void write_train_state(StagedFiles& files, const std::filesystem::path& path, const TrainState& state);

/// Reads such a file, with its tensors on `device`. Throws FileError for a file that is missing, damaged or
/// of a later version.
TrainState read_train_state(const std::filesystem::path& path, Device device);

/// Reads it without its tensors.
TrainState read_train_numbers(const std::filesystem::path& path);

}  // namespace caldera
