// Attention steps to dispatches.
#pragma once

#include "engine/device/vulkan/attention/families/attention_family.h"
#include "engine/device/vulkan/steps/encoder.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// Shares an attention step among workgroups, by the family that the device takes. `memory`: of the matrices
/// q, k, v and go.
AttentionBlocking blocking_of(const Context& context, const AttentionStep& attention,
                              const AttentionSpace& space, DType memory);

void encode_attention(Encoder& encoder, const Step& step, const AttentionStep& attention);

}  // namespace caldera::vulkan
