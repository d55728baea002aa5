// OptimizerFlags: what updates the parameters, and at which rate.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "training/trainer/trainer.h"

namespace caldera::cli {

/// The flags of the optimiser, the schedule and clipping, for commands that train.
class OptimizerFlags {
 public:
  /// Declares them; `options` has the command's defaults, and gets the values that need no check.
  void declare(Arguments& args, TrainOptions& options);
  /// Declares --lora-plus-ratio, of commands that train adapters.
  void declare_lora_plus(Arguments& args);
  /// Puts the others into `options`. Throws UsageError.
  void apply(TrainOptions& options) const;
  /// Sets the warm-up, once the number of steps is known. Throws UsageError.
  void apply_warmup(TrainOptions& options) const;

 private:
  std::string schedule_ = "constant";
  std::string warmup_ = "0";
  std::vector<std::string> optimizer_options_;
  std::vector<std::string> groups_;
  double lora_plus_ratio_ = 1;
};

}  // namespace caldera::cli
