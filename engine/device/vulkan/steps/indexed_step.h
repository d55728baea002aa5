// Gathers and scatters to dispatches.
#pragma once

#include "engine/device/vulkan/steps/encoder.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

void encode_gather(Encoder& encoder, const Step& step, const GatherStep& gather);
void encode_scatter(Encoder& encoder, const Step& step, const ScatterStep& scatter);

}  // namespace caldera::vulkan
