// Contractions to dispatches of matrix products.
#pragma once

#include <span>

#include "engine/device/vulkan/steps/encoder.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// Contractions that share a dispatch, which are more than one where their kernels differ for this device.
/// Takes the variant that the encoder forces, or the tuner's choice for the largest.
void encode_contract(Encoder& encoder, std::span<const Step> joined);

}  // namespace caldera::vulkan
