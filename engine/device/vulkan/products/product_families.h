// The list of families of kernels for matrix products.
#pragma once

#include <vector>

#include "engine/device/vulkan/products/families/product_family.h"

namespace caldera::vulkan {

/// All families, those that every device runs first. They live as long as the program.
const std::vector<const ProductFamily*>& product_families();

}  // namespace caldera::vulkan
