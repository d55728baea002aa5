// "subgroup": a subgroup of eight a workgroup, which passes the elements of A around
// (shaders/matmul/matmul_subgroup.glsl).
#include <fmt/core.h>

#include <algorithm>

#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/products/families/product_family.h"

namespace caldera::vulkan {
namespace {

// As in shaders/matmul/matmul_subgroup.glsl.
constexpr std::int64_t kSteps = 8;
constexpr std::int64_t kMostSubgroupRows = 16;
constexpr std::int64_t kSubgroupLanes = 8;
/// Of fewer rows too little is passed around.
constexpr std::int64_t kFewestRows = 4;

class SubgroupFamily final : public ProductFamily {
 public:
  std::vector<ProductVariant> variants() const override {
    return {{.name = "subgroup",
             .purpose =
                 "what software devices take: 16 x 32 elements a subgroup of 8, which passes the elements of "
                 "A around",
             .lanes = static_cast<int>(kSubgroupLanes)}};
  }

  std::string why_not(const ProductVariant& /*variant*/, const ProductShape& shape,
                      const Capabilities& can) const override {
    if (!can.subgroup_ballot) return "needs subgroup broadcasts in compute shaders";
    if (can.subgroup_size != kSubgroupLanes)
      return fmt::format("needs subgroups of {}, the device's have {}", kSubgroupLanes, can.subgroup_size);
    // A software device has no other way to run a workgroup of as many.
    if (!can.subgroup_size_control && !can.software) return "needs pipelines that ask for full subgroups";
    if (shape.type != DType::f32) return "is for sums of f32";
    return {};
  }

  ProductExtents extents(const ProductVariant& /*variant*/, const ProductShape& shape,
                         const Capabilities& /*can*/) const override {
    std::int64_t rows = 1;
    while (rows < std::min(shape.m, kMostSubgroupRows)) rows *= 2;
    const std::int64_t segments = shape.segments;
    return {.lanes = kSubgroupLanes,
            .rows = rows,
            .columns = 4 * kSubgroupLanes,
            .loops = 12 * segments + 12 + shape.k / kSteps + (kSteps - 1) * segments + rows};
  }

  ProductKernel kernel(const ProductVariant& variant, const ProductShape& shape, const Capabilities& can,
                       const ProductRates& /*rates*/) const override {
    const auto rows = static_cast<std::int32_t>(extents(variant, shape, can).rows);
    const std::vector<std::int32_t> constants{static_cast<std::int32_t>(kSubgroupLanes), rows};
    return {.constants = constants,
            .full_subgroups = true,
            .broadcasts = true,
            .embedded = "matmul_subgroup_{}",
            .embedded_constants = constants};
  }

  double cost(const ProductVariant& variant, const ProductShape& shape, const Capabilities& can,
              const ProductRates& rates) const override {
    if (shape.m < kFewestRows || shape.k < kSteps) return kNotMeant;
    const ProductExtents e = extents(variant, shape, can);
    // A broadcast a row and step, and loads as four for eight steps of columns.
    const double loads = 1.0 / static_cast<double>(e.rows) + 1.0 / static_cast<double>(4 * kSteps);
    return estimated_time(e, shape, rates, shape.k, 2 + loads * rates.load);
  }

  std::string text() const override { return whole_shader_text("matmul_subgroup"); }
};

}  // namespace

const ProductFamily& subgroup_family();
const ProductFamily& subgroup_family() {
  static const SubgroupFamily kFamily;
  return kFamily;
}

}  // namespace caldera::vulkan
