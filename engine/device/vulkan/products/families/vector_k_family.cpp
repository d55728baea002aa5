// "vector-k" and "vector-k-shared": few rows of C, A and B contiguous along K
// (shaders/matmul/matmul_vector_k.glsl).
#include <fmt/core.h>

#include <algorithm>

#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/products/families/product_family.h"

namespace caldera::vulkan {
namespace {

constexpr std::int64_t kMostVectorKRows = 8;
constexpr std::int64_t kMostLanes = 128;
constexpr int kSharedLanes = 256;
/// Times what a load takes whose neighbours are elsewhere; where vectors are no faster, also if they are 16
/// bytes apart (on lavapipe `plain` takes a third to two thirds of the time).
constexpr double kScatteredLoadsAlongK = 8;
constexpr double kApart = 12;

bool is_shared(const ProductVariant& variant) { return variant.lanes != 0; }

class VectorKFamily final : public ProductFamily {
 public:
  std::vector<ProductVariant> variants() const override {
    return {
        {.name = "vector-k",
         .purpose = "up to 8 rows, A and B contiguous along K: 2 or 4 columns a subgroup, 16 bytes a load"},
        {.name = "vector-k-shared",
         .purpose = "the same, a workgroup's subgroups sharing K: for a large GPU and few columns",
         .lanes = kSharedLanes}};
  }

  std::string why_not(const ProductVariant& variant, const ProductShape& shape,
                      const Capabilities& can) const override {
    if (is_shared(variant) && (!can.subgroup_size_control || can.subgroup_size * 2 > kSharedLanes))
      return "needs workgroups of several subgroups of a known size";
    if (!can.subgroup_arithmetic) return "needs subgroup arithmetic in compute shaders";
    if (shape.type == DType::i64) return "is for sums that subgroups add up, and few devices do so for i64";
    return {};
  }

  ProductExtents extents(const ProductVariant& variant, const ProductShape& shape,
                         const Capabilities& can) const override {
    std::int64_t rows = 1;
    while (rows < std::min(shape.m, kMostVectorKRows)) rows *= 2;
    if (is_shared(variant)) {
      const std::int64_t columns = rows <= 2 ? 4 : 2, segments = shape.segments;
      const std::int64_t subgroups = kSharedLanes / std::max<std::int64_t>(can.subgroup_size, 1);
      return {.lanes = kSharedLanes,
              .rows = rows,
              .columns = columns,
              .shared_bytes = subgroups * rows * columns * static_cast<std::int64_t>(size_of(shape.type)),
              .loops = 12 * segments + 12 + shape.k / kSharedLanes + 2 * segments + 16 + subgroups};
    }
    const std::int64_t subgroup = std::clamp<std::int64_t>(can.subgroup_size, 1, kMostLanes);
    const std::int64_t lanes = std::max<std::int64_t>(
        std::min<std::int64_t>(kMostLanes, can.max_invocations) / subgroup * subgroup, subgroup);
    const std::int64_t segments = shape.segments;
    return {.lanes = lanes,
            .rows = rows,
            .columns = rows <= 2 ? 4 : 2,
            .units = lanes / subgroup,
            .loops = 12 * segments + 12 + shape.k / subgroup + 2 * segments + 16};
  }

  ProductKernel kernel(const ProductVariant& v, const ProductShape& shape, const Capabilities& can,
                       const ProductRates& /*rates*/) const override {
    const ProductExtents e = extents(v, shape, can);
    const std::vector<std::int32_t> constants{static_cast<std::int32_t>(e.lanes),
                                              static_cast<std::int32_t>(e.rows),
                                              static_cast<std::int32_t>(e.columns)};
    ProductKernel kernel{.constants = constants, .adds = true};
    if (is_shared(v)) {
      kernel.definitions = fmt::format("#define SUBGROUPS {}\n", kSharedLanes / can.subgroup_size);
      kernel.full_subgroups = true;
    } else if (shape.type == DType::f32) {
      kernel.embedded = "matmul_vector_k_{}";
      kernel.embedded_constants = constants;
    }
    return kernel;
  }

  double cost(const ProductVariant& v, const ProductShape& shape, const Capabilities& can,
              const ProductRates& rates) const override {
    if (shape.k < kShortSum) return kNotMeant;
    const ProductExtents e = extents(v, shape, can);
    const bool meant = shape.b_layout == ProductLayout::along_k;
    // A, which all subgroups read, is in a cache.
    const double a = 0.5 / static_cast<double>(e.columns), b = 1 / static_cast<double>(e.rows);
    const double loads = (a + b) * (!meant ? kScatteredLoadsAlongK : rates.vector_loads ? 0.25 : kApart);
    // Sums that are shared cost two barriers.
    return estimated_time(e, shape, rates, shape.k, 1 + loads * rates.load) +
           (is_shared(v) ? estimated_time(e, shape, rates, 1, 2 * rates.barrier + 64) : 0);
  }

  bool is_candidate(const ProductVariant& /*variant*/, const ProductShape& shape) const override {
    // Each row of tiles reads B again.
    return shape.m <= 4 * kMostVectorKRows && shape.k >= kShortSum;
  }

  std::string text() const override { return whole_shader_text("matmul_vector_k"); }
};

}  // namespace

const ProductFamily& vector_k_family();
const ProductFamily& vector_k_family() {
  static const VectorKFamily kFamily;
  return kFamily;
}

}  // namespace caldera::vulkan
