// A training run that several processes share, which mpirun or srun has started.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments/settings_file.h"
#include "engine/tensor/device.h"
#include "training/trainer/train_options.h"

namespace caldera::cli {

/// Joins them, and sees to it that each has a batch of every step: where there are fewer, the rows of a step
/// become more batches, which `settings` then say too. `reduction` and `timeout` are the flags'. Throws
/// UsageError where there are fewer rows than processes. Nothing where this process is alone.
void share_among_ranks(TrainOptions& options, std::vector<Setting>& settings, const std::string& reduction,
                       double timeout);

/// Says which rank is on which device of which machine. All ranks call it.
std::string describe_ranks(Device device);

}  // namespace caldera::cli
