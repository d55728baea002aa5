#include "engine/device/vulkan/products/product_families.h"

// A line a family: families/NAME_family.cpp defines NAME_family(). Where nothing else decides, earlier ones
// are taken.
#define CALDERA_PRODUCT_FAMILIES(FAMILY) \
  FAMILY(tile)                           \
  FAMILY(subgroup)                       \
  FAMILY(vector_k)                       \
  FAMILY(vector)                         \
  FAMILY(shared)                         \
  FAMILY(cooperative)

namespace caldera::vulkan {

#define CALDERA_DECLARE(name) const ProductFamily& name##_family();
CALDERA_PRODUCT_FAMILIES(CALDERA_DECLARE)
#undef CALDERA_DECLARE

const std::vector<const ProductFamily*>& product_families() {
#define CALDERA_LIST(name) &name##_family(),
  static const std::vector<const ProductFamily*> kAll{CALDERA_PRODUCT_FAMILIES(CALDERA_LIST)};
#undef CALDERA_LIST
  return kAll;
}

}  // namespace caldera::vulkan
