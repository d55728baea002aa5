// Attention steps to dispatches.
#pragma once

#include "engine/device/vulkan/steps/encoder.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

void encode_attention(Encoder& encoder, const Step& step, const AttentionStep& attention);

}  // namespace caldera::vulkan
