// The table of all variants of the matrix product: what the families have, and which one is taken where
// nothing was measured.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/device/vulkan/open/capabilities.h"
#include "engine/device/vulkan/products/families/product_family.h"

namespace caldera::vulkan {

/// All of them, the plain one (which every device runs) first.
std::span<const ProductVariant> product_variants();
/// nullptr if there is none of that name.
const ProductVariant* find_product_variant(std::string_view name);

/// Why a device cannot run the variant for a product; empty if it can. Any variant that can is right for any
/// product.
std::string why_not(const ProductVariant& variant, const ProductShape& shape, const Capabilities& can);

/// A product that the variant is for: what a device lacks for it, it lacks for any.
ProductShape typical_product(const ProductVariant& variant);

/// The choice without measurements: what is estimated to take least, of those that run.
const ProductVariant& default_product_variant(const ProductShape& shape, const Capabilities& can,
                                              const ProductRates& rates);

}  // namespace caldera::vulkan
