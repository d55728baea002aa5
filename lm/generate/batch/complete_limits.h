// Fills in what BatchLimits leave to the model. Private to lm/generate/.
#pragma once

#include "lm/formats/config/model_config.h"
#include "lm/generate/batch/batch_request.h"

namespace caldera::detail {

/// The limits with every 0 that stands for a default replaced, and with whole pages. Throws ValueError,
/// naming the limit, for one out of its domain.
BatchLimits completed(BatchLimits limits, const ModelConfig& config);

}  // namespace caldera::detail
