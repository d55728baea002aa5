#include "engine/device/vulkan/products/product_variants.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "engine/device/vulkan/products/product_families.h"

namespace caldera::vulkan {

std::span<const ProductVariant> product_variants() {
  static const std::vector<ProductVariant> kTable = [] {
    std::vector<ProductVariant> table;
    for (const ProductFamily* family : product_families()) {
      for (ProductVariant& variant : family->variants()) {
        variant.family = family;
        table.push_back(std::move(variant));
      }
    }
    return table;
  }();
  return kTable;
}

const ProductVariant* find_product_variant(std::string_view name) {
  const std::span<const ProductVariant> all = product_variants();
  const auto found = std::ranges::find(all, name, &ProductVariant::name);
  return found != all.end() ? &*found : nullptr;
}

std::string why_not(const ProductVariant& variant, const ProductShape& shape, const Capabilities& can) {
  if (std::string reason = variant.family->why_not(variant, shape, can); !reason.empty()) return reason;
  const ProductExtents e = variant.family->extents(variant, shape, can);
  if (e.lanes > can.max_invocations)
    return fmt::format("needs workgroups of {} invocations, the device has {}", e.lanes, can.max_invocations);
  if (e.shared_bytes > can.shared_memory)
    return fmt::format("needs {} bytes of shared memory, the device has {}", e.shared_bytes,
                       can.shared_memory);
  if (can.loop_limit > 0) {
    const std::int64_t wanted = ceil_div(e.tiles(shape), e.units);
    const std::int64_t loops = e.iterations(shape, std::clamp<std::int64_t>(wanted, 1, can.max_groups));
    if (loops > can.loop_limit)
      return fmt::format("needs {} loop iterations an invocation, the driver stops at {}", loops,
                         can.loop_limit);
  }
  return {};
}

ProductShape typical_product(const ProductVariant& variant) { return variant.family->typical_product(); }

const ProductVariant& default_product_variant(const ProductShape& shape, const Capabilities& can,
                                              const ProductRates& rates) {
  const ProductVariant* best = nullptr;
  double best_cost = 0;
  for (const ProductVariant& variant : product_variants()) {
    const double cost = variant.family->cost(variant, shape, can, rates);
    if (best != nullptr && !(cost < best_cost)) continue;
    if (!why_not(variant, shape, can).empty()) continue;
    best = &variant;
    best_cost = cost;
  }
  return best != nullptr ? *best : product_variants().front();
}

}  // namespace caldera::vulkan
