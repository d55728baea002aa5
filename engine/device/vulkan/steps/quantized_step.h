// Encodes steps over quantised matrices.
#pragma once

#include "engine/device/vulkan/steps/encoder.h"

namespace caldera::vulkan {

void encode_quantized(Encoder& encoder, const Step& step, const QuantizedStep& quantized);

}  // namespace caldera::vulkan
