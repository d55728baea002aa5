#include "training/trainer/resumable.h"

#include <fmt/format.h>

#include "engine/base/error.h"

namespace caldera::detail {

void check_resumable(const TrainState& from, const ResumedRun& run) {
  if (from.data_fingerprint != run.data_fingerprint)
    throw ValueError(
        "the run to go on with trained on other data, or with another tokenizer, sequence length or mask: go "
        "on with what it began with");
  const auto refuse = [](const std::string& what) {
    throw ValueError(
        fmt::format("the run to go on with {}: go on with the options that it began with", what));
  };
  for (const Parameter& p : run.parameters) {
    const auto found = from.parameters.find(p.name);
    if (found == from.parameters.end()) refuse(fmt::format("did not train {}", p.name));
    if (found->second.shape() != p.tensor->shape() || found->second.dtype() != p.tensor->dtype())
      refuse(fmt::format("has {} as {} {}, this one as {} {}", p.name, name(found->second.dtype()),
                         found->second.shape().to_string(), name(p.tensor->dtype()),
                         p.tensor->shape().to_string()));
  }
  if (from.parameters.size() != run.parameters.size()) refuse("trained further parameters");
  if (from.loss_scaler.has_value() != run.is_scaled) refuse("computed in another dtype");
  if (from.averages.empty() == run.is_averaged)
    refuse(run.is_averaged ? "kept no moving average" : "kept a moving average");
  if (from.step > run.iterations) refuse(fmt::format("has done {} steps of {}", from.step, run.iterations));
}

}  // namespace caldera::detail
