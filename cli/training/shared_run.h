// A training run that several processes share, which mpirun or srun has started.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "cli/arguments/settings_file.h"
#include "engine/tensor/device.h"
#include "training/trainer/train_options.h"

namespace caldera {
class CausalLM;
}  // namespace caldera

namespace caldera::cli {

/// The flags that say how they share it.
struct SharingFlags {
  std::string reduction = "fixed";
  double timeout = 600;
  bool shard_optimizer = false;
  bool shard_base = false;  ///< where declare_shard_base() declared it
  std::int64_t sync_every = 0;
  double outer_learning_rate = SharingOptions().outer_learning_rate;
  double outer_momentum = SharingOptions().outer_momentum;
  std::string gradient_type = "f32";
  double top_gradients = 1;

  void declare(Arguments& args);
  void declare_shard_base(Arguments& args);
  /// Puts them into `options`, joins the processes, and sees to it that each has a batch of every step: where
  /// there are fewer, the rows of a step become more batches, which `settings` then say too. Throws
  /// UsageError for flags that exclude each other, and where there are fewer rows than processes.
  void apply(TrainOptions& options, std::vector<Setting>& settings) const;
  /// Divides the model's weights among the processes; says of how many parameters.
  static std::string divide(CausalLM& model);
};

/// Says which rank is on which device of which machine. All ranks call it.
std::string describe_ranks(Device device);

}  // namespace caldera::cli
