// Measures how long a variant of the matrix product takes, on scratch memory.
#pragma once

#include <optional>

#include "engine/device/vulkan/products/product_variants.h"
#include "engine/device/vulkan/steps/context.h"
#include "engine/plan/plan.h"

namespace caldera::vulkan {

/// Seconds for one run of the contraction by the variant, by the device's clock where it has one: the best of
/// a few runs of part of it (product_trial.h), in proportion. No more than one or two runs where that is more
/// than `stop_at`. Nothing where the scratch memory would be large or cannot be had. Makes the pipeline if it
/// is missing.
std::optional<double> time_product(Context& context, const Plan& plan, const Step& step,
                                   const ProductVariant& variant, double stop_at);

}  // namespace caldera::vulkan
