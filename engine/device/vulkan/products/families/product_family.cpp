#include "engine/device/vulkan/products/families/product_family.h"

#include <algorithm>

namespace caldera::vulkan {

std::string ProductFamily::why_not(const ProductVariant& /*variant*/, const ProductShape& /*shape*/,
                                   const Capabilities& /*can*/) const {
  return {};
}

bool ProductFamily::is_candidate(const ProductVariant& /*variant*/, const ProductShape& /*shape*/) const {
  return true;
}

ProductShape ProductFamily::typical_product() const { return {.m = 64, .n = 64, .k = 64}; }

std::int64_t ProductExtents::tiles(const ProductShape& shape) const {
  return ceil_div(shape.m, rows) * ceil_div(shape.n, columns) * shape.batches;
}

std::int64_t ProductExtents::iterations(const ProductShape& shape, std::int64_t groups) const {
  return ceil_div(tiles(shape), groups * units) * loops;
}

double estimated_time(const ProductExtents& extents, const ProductShape& shape, const ProductRates& rates,
                      std::int64_t steps, double each) {
  const auto area = static_cast<double>(extents.rows * extents.columns);
  const double all = static_cast<double>(extents.tiles(shape)) * area / rates.busy_lanes;
  const double one = area * static_cast<double>(extents.units) / static_cast<double>(extents.lanes);
  return std::max(all, one) * static_cast<double>(steps) * each;
}

}  // namespace caldera::vulkan
