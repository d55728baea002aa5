// Says whether a run can go on from a saved state. Private to training/trainer/.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lm/nn/module.h"
#include "training/checkpoints/train_state.h"

namespace caldera::detail {

/// Describes the run that is to go on.
struct ResumedRun {
  std::string data_fingerprint;
  std::span<const Parameter> parameters;
  bool is_scaled = false;    ///< computes with a loss scale
  bool is_averaged = false;  ///< keeps a moving average
  std::int64_t iterations = 0;
};

/// Throws ValueError that names what differs, where the state is not of such a run.
void check_resumable(const TrainState& from, const ResumedRun& run);

}  // namespace caldera::detail
