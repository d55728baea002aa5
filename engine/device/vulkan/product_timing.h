// How long a variant of the matrix product takes, on scratch memory.
#pragma once

#include <optional>

#include "engine/compile/plan.h"
#include "engine/device/vulkan/context.h"
#include "engine/device/vulkan/product_variants.h"

namespace caldera::vulkan {

/// Seconds for one run of the contraction by the variant: the best of a few, by the host's clock. Nothing
/// where the scratch memory would be large or cannot be had. Makes the pipeline if it is missing.
std::optional<double> time_product(Context& context, const Plan& plan, const Step& step,
                                   const ProductVariant& variant);

}  // namespace caldera::vulkan
