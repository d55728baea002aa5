// Contractions to dispatches of matrix products.
#pragma once

#include "engine/device/vulkan/steps/encoder.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// Takes the variant that the encoder forces, or the tuner's choice.
void encode_contract(Encoder& encoder, const Step& step, const ContractStep& contract);

}  // namespace caldera::vulkan
